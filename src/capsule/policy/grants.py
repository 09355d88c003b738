"""From the rules that matched to the grant of one call: the smallest limits, the narrowest jail, nothing by pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TypeAlias

from capsule.calls import (
    Access,
    CommandGrant,
    ConcreteCall,
    ConcretePath,
    FileGrant,
    Grant,
    Limits,
    Places,
    Redact,
    SandboxGrant,
    Source,
    UrlGrant,
)
from capsule.policy import floors
from capsule.policy.paper import lexical
from capsule.policy.rules import Rule, RuleLimits
from capsule.policy.secrets import Lent, secret_handles
from capsule.policy.urls import UrlConstraint
from capsule.policy.values import ValueConstraint

DEFAULT_REDIRECTS = 5

_REDACT_ORDER: tuple[Redact, ...] = ("off", "secrets", "personal")
_LEVEL_ORDER = ("any", None, "seatbelt", "landlock", "namespaces")  # None is the default of the kind of call
_MODEL_SOURCES = frozenset({Source.AGENT, Source.CHAT, Source.MCP})


Limit: TypeAlias = tuple[int, str]
"""A value and the rule it came from; no rule where it is the tool's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What one layer grants with a call, beside the resources themselves; layers meet in the stricter of each."""

    max_bytes: Limit | None = None
    timeout_ms: Limit | None = None
    max_output_bytes: Limit | None = None
    sandbox: SandboxGrant = SandboxGrant()  # noqa: RUF009 - frozen
    redact: Redact | None = None
    level: str | None = None
    secrets: Lent = frozenset()
    private_networks: bool = False
    max_redirects: int = DEFAULT_REDIRECTS


NO_TERMS = Terms()


def terms_of(granting: Sequence[Rule], limiting: Sequence[Rule], call: ConcreteCall, places: Places) -> Terms:
    """`granting` are the allow and ask rules that grant; `limiting` all others that matched: they only tighten."""
    tool = call.definition
    if all(rule.is_plain for rule in granting) and all(rule.is_plain for rule in limiting):
        return _default_terms(tool.max_bytes, tool.timeout_ms, tool.max_output_bytes)
    smallest = partial(_smallest, granting, limiting)
    urls = [constraint for rule in granting for _, constraint in rule.grants if isinstance(constraint, UrlConstraint)]
    redirects = [url.max_redirects for url in urls if url.max_redirects is not None]
    return Terms(
        max_bytes=smallest(lambda limits: limits.max_bytes, tool.max_bytes),
        timeout_ms=smallest(lambda limits: limits.timeout_ms, tool.timeout_ms),
        max_output_bytes=smallest(lambda limits: limits.max_output_bytes, tool.max_output_bytes),
        sandbox=_sandbox(granting, limiting, places) if call.commands else SandboxGrant(),
        redact=strictest(
            [rule.redact for rule in granting] + [rule.redact for rule in limiting if rule.redact != "off"]
        ),
        level=_strongest(
            [rule.sandbox_level for rule in granting if rule.sandbox_level is not None]
            + [rule.sandbox_level for rule in limiting if rule.sandbox_level not in (None, "any")]
        )
        if call.commands
        else None,
        secrets=frozenset(lent for rule in granting for lent in _lent(rule, call.source)),
        private_networks=any(url.names_private(called) for url in urls for called in call.urls),
        max_redirects=min(redirects, default=DEFAULT_REDIRECTS),
    )


@cache
def _default_terms(max_bytes: int | None, timeout_ms: int, max_output_bytes: int | None) -> Terms:
    """Where no rule says anything; of as many kinds as there are tools."""
    return Terms(
        max_bytes=None if max_bytes is None else (max_bytes, ""),
        timeout_ms=(timeout_ms, ""),
        max_output_bytes=None if max_output_bytes is None else (max_output_bytes, ""),
    )


def _lent(rule: Rule, source: Source) -> Iterator[tuple[str, str | None]]:
    """A model may ask for a secret only where a rule names its source; a header only where the rule names it."""
    if source in _MODEL_SOURCES and rule.when_sources is None:
        return
    headers = [
        header
        for selector, constraint in rule.grants
        if selector.name == "headers" and isinstance(constraint, ValueConstraint)
        for header in constraint.named
    ]
    for name in rule.secrets:
        yield name, None
        for header in headers:
            yield name, header


def _sandbox(granting: Sequence[Rule], limiting: Sequence[Rule], places: Places) -> SandboxGrant:
    """What a rule that grants nothing says of a sandbox can only take from it."""
    named = [_placed(rule.limits.sandbox, places) for rule in granting if rule.limits.sandbox is not None]
    if not named:
        return SandboxGrant()
    return _narrowest(
        named + [_placed(rule.limits.sandbox, places) for rule in limiting if rule.limits.sandbox is not None]
    )


def _placed(sandbox: SandboxGrant, places: Places) -> SandboxGrant:
    return replace(
        sandbox,
        read=tuple(_absolute(path, places) for path in sandbox.read),
        write=tuple(_absolute(path, places) for path in sandbox.write),
    )


def _absolute(path: str, places: Places) -> str:
    return "".join(f"/{name}" for name in lexical(path, places))


def _smallest(
    granting: Sequence[Rule], limiting: Sequence[Rule], of: Callable[[RuleLimits], int | None], default: int | None
) -> Limit | None:
    """Only a rule that grants can raise the tool's default: a limit that is added never allows more."""
    named = [(value, rule.id) for rule in granting if (value := of(rule.limits)) is not None]
    if not named and default is not None:
        named = [(default, "")]
    named += [(value, rule.id) for rule in limiting if (value := of(rule.limits)) is not None]
    return min(named, default=None)


def _narrowest(named: Sequence[SandboxGrant]) -> SandboxGrant:
    """A path or the network is granted when every one of them grants it."""
    return SandboxGrant(
        read=_shared([sandbox.read for sandbox in named]),
        write=_shared([sandbox.write for sandbox in named]),
        network=all(sandbox.network for sandbox in named),
        protected=all(sandbox.protected for sandbox in named),
    )


def _shared(lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The trees that lie in some tree of every list; none that lies in another one."""
    shared = {
        path for paths in lists for path in paths if all(any(_lies_in(path, tree) for tree in trees) for trees in lists)
    }
    return tuple(sorted(path for path in shared if not any(_lies_in(path, other) for other in shared if other != path)))


def _lies_in(path: str, tree: str) -> bool:
    return f"{path}/".startswith(f"{tree}/")


def strictest(named: Iterable[Redact | None]) -> Redact | None:
    return max((value for value in named if value is not None), key=_REDACT_ORDER.index, default=None)


def _strongest(named: Iterable[str | None]) -> str | None:
    return max(named, key=_LEVEL_ORDER.index, default=None)


def meet(layers: Sequence[Terms]) -> Terms:
    """The terms of several layers: what every one of them grants, and the smallest of each limit."""
    redirects = min(terms.max_redirects for terms in layers)
    return Terms(
        max_bytes=min((terms.max_bytes for terms in layers if terms.max_bytes), default=None),
        timeout_ms=min((terms.timeout_ms for terms in layers if terms.timeout_ms), default=None),
        max_output_bytes=min((terms.max_output_bytes for terms in layers if terms.max_output_bytes), default=None),
        sandbox=_narrowest([terms.sandbox for terms in layers]),
        redact=strictest([terms.redact or "secrets" for terms in layers]),
        level=_strongest([terms.level for terms in layers]),
        secrets=frozenset.intersection(*(terms.secrets for terms in layers)),
        private_networks=all(terms.private_networks for terms in layers),
        max_redirects=redirects,
    )


def limit_rules(terms: Terms) -> dict[str, str]:
    """Each limit that a rule set, with that rule."""
    named = {
        "max_bytes": terms.max_bytes,
        "timeout": terms.timeout_ms,
        "max_output_bytes": terms.max_output_bytes,
    }
    return {limit: found[1] for limit, found in named.items() if found and found[1]}


def _limits(terms: Terms) -> Limits:
    assert terms.timeout_ms is not None, "every tool has a default"
    return Limits(
        timeout_ms=terms.timeout_ms[0],
        max_bytes=terms.max_bytes[0] if terms.max_bytes else None,
        max_output_bytes=terms.max_output_bytes[0] if terms.max_output_bytes else None,
    )


def grant_of(terms: Terms, call: ConcreteCall, places: Places) -> Grant:
    return Grant(
        limits=_limits(terms),
        files=tuple(_file(path, places) for path in call.paths),
        urls=tuple(
            UrlGrant(
                argument=url.argument,
                href=url.href,
                host=url.host,
                port=url.port,
                private_networks=terms.private_networks,
                max_redirects=terms.max_redirects,
            )
            for url in call.urls
        ),
        commands=tuple(
            CommandGrant(
                argument=command.argument,
                argv=command.argv,
                program=command.program,
                sandbox=terms.sandbox,
                level=terms.level,
            )
            for command in call.commands
        ),
        redact=terms.redact or "secrets",
        secrets=tuple(sorted({handle.name for handle in secret_handles(call)})) if terms.secrets else (),
    )


def _file(path: ConcretePath, places: Places) -> FileGrant:
    depth = len(places.workdir)
    inside = path.real[:depth] == places.workdir
    return FileGrant(
        argument=path.argument,
        access=path.access,
        anchor="workdir" if inside else "root",
        components=path.real[depth:] if inside else path.real,
        runs_later=path.access is Access.WRITE and floors.is_run_later(path),
    )
