"""What SPEC §3 says about one call, as plainly as it can be said: every rule is asked every time, order means nothing.

Documents are valid and their rules have ids, calls are concrete; nothing here looks at the world.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from capsule.calls import Components, ConcreteCall, Effect, Guard, LayerState, Limits, Places, SandboxGrant
from reference import bounds, matching
from reference.matching import Data

FILES, URLS, COMMANDS = (Guard.READ_PATH, Guard.WRITE_PATH), (Guard.URL,), (Guard.COMMAND,)
GUARD_KEYS = {"paths": FILES, "read_paths": FILES[:1], "write_paths": FILES[1:], "urls": URLS, "commands": COMMANDS}
CODES: Mapping[Any, int] = dict.fromkeys(FILES, 1001) | dict.fromkeys(URLS, 1002) | dict.fromkeys(COMMANDS, 1003)
LIMITS = ("max_bytes", "max_calls", "rate_limit", "timeout", "max_output_bytes", "sandbox")
EFFECTS, REDACT = (Effect.ALLOW, Effect.ASK, Effect.DENY), ("off", "secrets", "personal")  # the strictest last
LEVELS = ("any", None, "seatbelt", "landlock", "namespaces")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    effect: Effect
    code: int | None = None
    rule: str | None = None
    limits: Limits | None = None  # from here on: what an allow or an ask grants
    paths: tuple[tuple[str, Components, bool], ...] = ()  # argument, real path, runs later
    hosts: tuple[tuple[str, str, int], ...] = ()  # argument, host, port
    secrets: tuple[str, ...] = ()
    redact: str = "secrets"
    level: str | None = None
    sandbox: SandboxGrant = field(default_factory=SandboxGrant)  # absolute paths, sorted, none beneath another


def code_of(argument: str, call: ConcreteCall) -> int:
    return CODES.get(call.definition.guards.get(argument), 1009)


def check(argument: str, want: Any, call: ConcreteCall, places: Places, *, deny: bool) -> int | None:
    """The code of a constraint that does not hold; of several values an allow needs all, a deny any."""
    guard, some, code = call.definition.guards.get(argument), any if deny else all, code_of(argument, call)
    if call.args.get(argument) is None:
        return code
    if guard in FILES:
        paths, listing = [path for path in call.paths if path.argument == argument], call.tool == "fs.list"
        good = some(matching.path_holds(want, path, places, deny=deny, listing=listing) for path in paths)
    elif guard is Guard.URL:
        good = some(matching.url_holds(want, url, deny=deny) for url in call.urls if url.argument == argument)
    elif guard is Guard.COMMAND:
        [command] = [command for command in call.commands if command.argument == argument]
        known = matching.patterns(want) + [[name, "**"] for name in want.get("executables", [])]
        good = any(matching.command_holds(pattern, command, places, deny=deny) for pattern in known)
        belt = any(matching.token(bad, word) for word in command.argv for bad in want.get("deny_tokens", []))
        good, code = (False, 1004) if good and belt and not deny else (good, code)
    else:
        good = matching.valid(want, call.args[argument])
    return None if good else code


def keys(rule: Data, call: ConcreteCall) -> Iterator[tuple[list[str], Any]]:
    """Each argument key of a rule: the arguments of the call that it stands for, and what it wants of them."""
    for key, want in rule.get("constraints", {}).items():
        guarded = call.definition.guards.items()
        if key in GUARD_KEYS:
            yield [name for name, guard in guarded if guard in GUARD_KEYS[key] and name in call.args], want
        elif key not in LIMITS:
            yield [key.removeprefix("args.")], want


def needed(call: ConcreteCall) -> Iterator[str]:
    """The guarded arguments that an allow has to cover."""
    for name, guard in call.definition.guards.items():
        value: Any = call.args.get(name)
        if guard is Guard.HEADERS:
            value = {header.lower() for header in value or ()} & {"authorization", "cookie"}
        if value:
            yield name


def failures(rule: Data, call: ConcreteCall, places: Places) -> set[int]:
    """Why a rule does not match as an allow does."""
    asked = [(name, want) for names, want in keys(rule, call) for name in names]
    codes = [check(name, want, call, places, deny=False) for name, want in asked]
    uncovered = {*needed(call)} - {name for name, _ in asked}
    return {code for code in codes if code} | {code_of(name, call) for name in uncovered}


def hits(rule: Data, call: ConcreteCall, places: Places) -> bool:
    """Whether a rule matches as a deny does."""
    found = [[check(name, want, call, places, deny=True) for name in names] for names, want in keys(rule, call)]
    return all(None in codes for codes in found)


def applies(rule: Data, call: ConcreteCall, *, tainted: bool) -> bool:
    when = rule.get("when", {})
    named = any(matching.token(tool, call.tool) for tool in matching.as_list(rule["tool"]))
    return named and call.source in when.get("source", [call.source]) and (tainted or "tainted" not in when)


def bare_failures(call: ConcreteCall, places: Places) -> set[int]:
    """What stands against a call that only `default_action: ask` lets through: floors, and what needs a constraint."""
    floors = {1001 for path in call.paths if not matching.above_floors(path, places)}
    required: Any = call.definition.args_schema["required"]
    optional = {code_of(name, call) for name in needed(call) if name not in required}
    return floors | {1002 for url in call.urls if not url.public} | optional


def refuse(found: Sequence[tuple[int, str | None]]) -> Verdict:
    """The smallest code, and of the rules with it the smallest id."""
    code, _, rule = min((code, not rule, rule or "") for code, rule in found)
    return Verdict(effect=Effect.DENY, code=code, rule=rule or None)


def denied_by(rule: Data, call: ConcreteCall) -> Verdict:
    codes = [code_of(name, call) for names, _ in keys(rule, call) for name in names]
    return refuse([(1008 if "tainted" in rule.get("when", {}) else min(codes, default=1000), rule["id"])])


def granted(call: ConcreteCall, places: Places, granting: list[Data], strict: list[Data]) -> Verdict:
    """What rules that match allow together; an ask in `strict` matches as a deny does and grants nothing of its own."""
    matched, tool = granting + strict, call.definition
    asks = [rule for rule in matched if rule["action"] == "ask"]
    asked = [rule for rule in strict if rule["action"] == "ask"]
    named = bounds.boxes(granting, places) and bounds.boxes(granting + asked, places)
    redact = [
        rule["redact"]
        for rule in matched
        if rule.get("redact", "off") != "off" or (rule in granting and "redact" in rule)
    ]
    levels = [
        rule["sandbox_level"]
        for rule in matched
        if rule.get("sandbox_level", "any") != "any" or (rule in granting and "sandbox_level" in rule)
    ]
    return Verdict(
        effect=Effect.ASK if asks or not granting else Effect.ALLOW,
        rule=min((rule["id"] for rule in (asks or granting) if granting), default=None),
        limits=Limits(
            timeout_ms=bounds.least(granting, strict, "timeout", tool.timeout_ms)[0],
            max_bytes=bounds.least(granting, strict, "max_bytes", tool.max_bytes)[0],
            max_output_bytes=bounds.least(granting, strict, "max_output_bytes", tool.max_output_bytes)[0],
        ),
        paths=tuple((path.argument, path.real, matching.runs_later(path) != []) for path in call.paths),
        hosts=tuple((url.argument, url.host, url.port) for url in call.urls),
        secrets=tuple(sorted({name for name, _ in bounds.handles(call)})),
        redact=max(redact, key=REDACT.index, default="secrets"),
        level=max(levels, key=LEVELS.index, default=None) if call.commands else None,
        sandbox=bounds.meet(named if call.commands else []),
    )


def decide(
    document: Data, call: ConcreteCall, state: LayerState, *, now_ms: int, tainted: bool, places: Places
) -> Verdict:
    broken: list[tuple[int, str | None]] = [(1001, None) for path in call.paths if path.problem]
    broken += [(1002, None) for url in call.urls if url.problem]
    broken += [(1003, None) for command in call.commands if command.problem]
    if call.marker or broken:
        return refuse([(1009, None)] if call.marker else broken)
    rules = [rule for rule in document.get("rules", []) if applies(rule, call, tainted=tainted)]
    denies = [rule for rule in rules if rule["action"] == "deny" and hits(rule, call, places)]
    if denies:
        return denied_by(min(denies, key=lambda rule: str(rule["id"])), call)
    tried = [(rule, failures(rule, call, places)) for rule in rules if rule["action"] in ("allow", "ask")]
    granting = [rule for rule, codes in tried if not codes]
    others = [rule for rule in rules if rule["action"] in ("ask", "limit") and rule not in granting]
    strict = [rule for rule in others if hits(rule, call, places)]
    if not granting:
        asks = document.get("default_action") == "ask" and any(
            rule["action"] in ("allow", "ask") for rule in document.get("rules", [])
        )
        against = bare_failures(call, places) if asks else set().union(*(codes for _, codes in tried)) or {1000}
        if against:
            return refuse([(min(against), None)])
    refused = bounds.refusals(document, call, state, now_ms, granting, granting + strict)
    return refuse(refused) if refused else granted(call, places, granting, strict)


def decide_layers(documents: Sequence[Data], call: ConcreteCall, states: Sequence[LayerState], **run: Any) -> Verdict:
    """Each layer alone, then the strictest of everything; `run` is `now_ms`, `tainted` and `places`."""
    each = [decide(document, call, state, **run) for document, state in zip(documents, states, strict=True)]
    effect = max((verdict.effect for verdict in each), key=EFFECTS.index, default=Effect.DENY)
    worst = [verdict for verdict in each if verdict.effect is effect]
    if effect is Effect.DENY:
        return refuse([(verdict.code or 1000, verdict.rule) for verdict in worst] or [(1000, None)])

    def smallest(name: str) -> Any:
        values = [getattr(verdict.limits, name) for verdict in each]
        return min((value for value in values if value is not None), default=None)

    return replace(
        each[0],
        effect=effect,
        rule=min((verdict.rule for verdict in worst if verdict.rule), default=None),
        limits=Limits(**{name: smallest(name) for name in ("timeout_ms", "max_bytes", "max_output_bytes")}),
        redact=max((verdict.redact for verdict in each), key=REDACT.index),
        level=max((verdict.level for verdict in each), key=LEVELS.index),
        sandbox=bounds.meet([verdict.sandbox for verdict in each]),
    )
