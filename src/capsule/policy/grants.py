"""From the rules that matched to the grant of one call: the smallest limits, the narrowest jail, nothing by pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

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
from capsule.policy.rules import Rule, RuleLimits
from capsule.policy.urls import UrlConstraint

DEFAULT_REDIRECTS = 5

_REDACT_ORDER: tuple[Redact, ...] = ("off", "secrets", "personal")
_LEVEL_ORDER = ("any", "landlock", "seatbelt", "namespaces")
_MODEL_SOURCES = frozenset({Source.AGENT, Source.CHAT, Source.MCP})
_NO_SANDBOX = SandboxGrant()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What one layer grants with a call, beside the resources themselves; layers meet in the stricter of each."""

    max_bytes: tuple[int, str] | None = None  # the value and the rule it came from
    timeout_ms: tuple[int, str] | None = None
    max_output_bytes: tuple[int, str] | None = None
    sandbox: SandboxGrant = _NO_SANDBOX
    redact: Redact | None = None
    level: str | None = None
    secrets: frozenset[str] = frozenset()
    private_networks: bool = False
    max_redirects: int = DEFAULT_REDIRECTS


NO_TERMS = Terms()


def terms_of(granting: Sequence[Rule], limiting: Iterable[Rule], call: ConcreteCall) -> Terms:
    """`granting` are the allow and ask rules that grant; `limiting` all others that matched and may tighten."""
    everything = [*granting, *limiting]
    urls = [constraint for rule in granting for _, constraint in rule.grants if isinstance(constraint, UrlConstraint)]
    redirects = [url.max_redirects for url in urls if url.max_redirects is not None]
    return Terms(
        max_bytes=_smallest(everything, lambda limits: limits.max_bytes),
        timeout_ms=_smallest(everything, lambda limits: limits.timeout_ms),
        max_output_bytes=_smallest(everything, lambda limits: limits.max_output_bytes),
        sandbox=_narrowest([rule.limits.sandbox for rule in everything if rule.limits.sandbox is not None]),
        redact=strictest([rule.redact for rule in everything]),
        level=_strongest([rule.sandbox_level for rule in everything]),
        secrets=frozenset(name for rule in granting if _may_use_secrets(rule, call.source) for name in rule.secrets),
        private_networks=any(url.names_private(called) for url in urls for called in call.urls),
        max_redirects=min(redirects, default=DEFAULT_REDIRECTS),
    )


def _may_use_secrets(rule: Rule, source: Source) -> bool:
    """A model may ask for a secret only where a rule names its source."""
    return source not in _MODEL_SOURCES or rule.when_sources is not None


def _smallest(rules: Iterable[Rule], of: Callable[[RuleLimits], int | None]) -> tuple[int, str] | None:
    named = [(value, rule.id) for rule in rules if (value := of(rule.limits)) is not None]
    return min(named, default=None)


def _narrowest(named: Sequence[SandboxGrant]) -> SandboxGrant:
    """A path or the network is granted when every rule that speaks of a sandbox grants it."""
    if not named:
        return _NO_SANDBOX
    first, *others = named
    return SandboxGrant(
        read=tuple(path for path in first.read if all(path in other.read for other in others)),
        write=tuple(path for path in first.write if all(path in other.write for other in others)),
        network=all(sandbox.network for sandbox in named),
        protected=all(sandbox.protected for sandbox in named),
    )


def strictest(named: Iterable[Redact | None]) -> Redact | None:
    return max((value for value in named if value is not None), key=_REDACT_ORDER.index, default=None)


def _strongest(named: Iterable[str | None]) -> str | None:
    return max((value for value in named if value is not None), key=_LEVEL_ORDER.index, default=None)


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


def limits_of(terms: Terms, call: ConcreteCall) -> Limits:
    """Where no rule names a limit, the tool's default holds."""
    definition = call.definition
    return Limits(
        timeout_ms=terms.timeout_ms[0] if terms.timeout_ms else definition.timeout_ms,
        max_bytes=terms.max_bytes[0] if terms.max_bytes else definition.max_bytes,
        max_output_bytes=terms.max_output_bytes[0] if terms.max_output_bytes else definition.max_output_bytes,
    )


def limit_rules(terms: Terms) -> dict[str, str]:
    named = {
        "max_bytes": terms.max_bytes,
        "timeout": terms.timeout_ms,
        "max_output_bytes": terms.max_output_bytes,
    }
    return {limit: found[1] for limit, found in named.items() if found}


def grant_of(terms: Terms, call: ConcreteCall, places: Places) -> Grant:
    return Grant(
        limits=limits_of(terms, call),
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
        secrets=tuple(sorted(terms.secrets)),
    )


def _file(path: ConcretePath, places: Places) -> FileGrant:
    depth = len(places.workdir)
    inside = path.real[:depth] == places.workdir
    return FileGrant(
        argument=path.argument,
        access=path.access,
        anchor="workdir" if inside else "root",
        components=path.real[depth:] if inside else path.real,
        runs_later=path.access is Access.WRITE and floors.runs_later(path.real) is not None,
    )
