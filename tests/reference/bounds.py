"""What bounds a call that rules let through, as SPEC §3 says it: limits, counters, secrets, sandbox."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from capsule.calls import ConcreteCall, Guard, LayerState, Places, RuleCount, SandboxGrant
from reference.matching import Data, anchored, text

SIZES = {"": 1, "B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
UNITS = SIZES | {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
HANDLE = re.compile(r"secret:([A-Za-z_]\w*)")
UNBOUNDED = float("inf")


def least(granting: Sequence[Data], strict: Sequence[Data], key: str, default: int | None) -> tuple[Any, str]:
    """The smallest value of a limit and the rule that it is from; only a rule that grants can raise the default."""
    named = any(key in rule.get("constraints", {}) for rule in granting)
    found: list[tuple[Any, str]] = [] if named or default is None else [(default, "")]
    return min(found + values([*granting, *strict], key), default=(default, ""))


def values(rules: Sequence[Data], key: str) -> list[tuple[Any, str]]:
    found: list[tuple[Any, str]] = []
    for rule in rules:
        if key in rule.get("constraints", {}):
            value = str(rule["constraints"][key])
            unit = value.lstrip("0123456789.")
            found.append((int(Fraction(value.removesuffix(unit)) * UNITS[unit]), rule["id"]))
    return found


def used_up(rule: Data, state: LayerState, now_ms: int) -> bool:
    limits, count = rule.get("constraints", {}), state.rules.get(rule["id"], RuleCount())
    recent = [at for at in count.recent_ms if now_ms - at < 60_000]
    rate = limits.get("rate_limit", {}).get("requests_per_minute", UNBOUNDED)
    return bool(count.total >= limits.get("max_calls", UNBOUNDED) or len(recent) >= rate)


def handles(call: ConcreteCall) -> Iterator[tuple[str, str | None]]:
    """Each `secret:NAME` with the header it is for; one that stands where none may has no name."""
    for argument, value in call.args.items():
        guard = call.definition.guards.get(argument)
        inner: Any = value.items() if guard in (Guard.ENV, Guard.HEADERS) else [(None, value)]  # type: ignore[union-attr]
        for key, item in inner:
            whole = HANDLE.fullmatch(str(item)) if key is not None or argument == "stdin" else None
            if whole or HANDLE.search(f"{key} {item}"):
                yield whole[1] if whole else "", key if guard is Guard.HEADERS else None


def resolves(name: str, header: str | None, rule: Data, source: str) -> bool:
    headers = rule.get("constraints", {}).get("headers", {}).get("properties", {})
    trusted = source not in ("agent", "chat", "mcp") or source in rule.get("when", {}).get("source", [])
    return name in rule.get("secrets", []) and trusted and (header is None or header in headers)


def refusals(
    document: Data, call: ConcreteCall, state: LayerState, now_ms: int, granting: list[Data], matched: list[Data]
) -> list[tuple[int, str]]:
    """What is too large, used up, or a secret that does not resolve: codes, and the rules to name."""
    strict = [rule for rule in matched if rule not in granting]
    cap, by = least(granting, strict, "max_bytes", call.definition.max_bytes)
    found = [(1005, by)] if cap is not None and (call.payload_bytes or 0) > cap else []
    found += [(1006, rule["id"]) for rule in matched if used_up(rule, state, now_ms)]
    if state.calls >= document.get("limits", {}).get("calls", UNBOUNDED):
        found.append((1006, ""))
    for name, header in handles(call):
        if not any(resolves(name, header, rule, call.source) for rule in granting):
            found.append((1009, ""))
    return found


def common(lists: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The trees that lie in a tree of every list, without those that lie in another one."""

    def inside(path: str, trees: Iterable[str]) -> bool:
        return any(f"{path}/".startswith(f"{tree}/") for tree in trees)

    shared = {path for paths in lists for path in paths if all(inside(path, trees) for trees in lists)}
    return tuple(sorted(path for path in shared if not inside(path, shared - {path})))


def meet(boxes: Sequence[SandboxGrant]) -> SandboxGrant:
    """What every one of them grants."""
    return SandboxGrant(
        read=common([box.read for box in boxes]),
        write=common([box.write for box in boxes]),
        network=bool(boxes) and all(box.network for box in boxes),
        protected=bool(boxes) and all(box.protected for box in boxes),
    )


def boxes(rules: Sequence[Data], places: Places) -> list[SandboxGrant]:
    """The sandboxes that rules name, with absolute paths."""
    found = []
    for box in [rule["constraints"]["sandbox"] for rule in rules if "sandbox" in rule.get("constraints", {})]:
        read, write = (
            tuple(text((*base, *parts)) for base, parts in (anchored(path, places) for path in box.get(key, [])))
            for key in ("read", "write")
        )
        network, protected = box.get("network") == "allow", box.get("protected") == "allow"
        found.append(SandboxGrant(read=read, write=write, network=network, protected=protected))
    return found
