"""A policy file to frozen rules: every mistake is named with its place before a single call is decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

from capsule.calls import Redact, Source, ToolDefinition
from capsule.canon import Json, digest_of
from capsule.documents import Document, check, spell
from capsule.policy.constraints import RuleReader, Shared, duration
from capsule.policy.globs import Room
from capsule.policy.paths import PathPattern
from capsule.policy.rules import (
    DEFAULT_SEARCH,
    Action,
    DocumentPath,
    Examples,
    PolicyLimits,
    PolicyRules,
    PolicyTest,
    Rule,
)
from capsule.policy.schema import POLICY_SCHEMA
from capsule.policy.tool_names import ToolName

_ID_DIGITS = 4
_ID_DIGITS_WHEN_TAKEN = 16


def read_policy(document: Document, definitions: Mapping[str, ToolDefinition]) -> PolicyRules:
    """PlanError 3001, with file:line:column, for the first thing that is wrong."""
    if isinstance(document.value, Mapping) and "steps" in document.value:
        hint = "capsule run PLAN --policy FILE"
        raise document.error(("steps",), "this is a plan, not a policy", hint=hint, key=True)
    check(document, POLICY_SCHEMA)
    raw = cast("Mapping[str, Json]", document.value)
    shared = Shared()
    rules = _rules(document, raw, definitions, shared)
    return PolicyRules(
        name=str(raw.get("name", document.name)),
        digest=digest_of(raw),
        ask_by_default=raw.get("default_action") == "ask",
        rules=rules,
        limits=_limits(document, raw),
        search=_search(document, raw),
        trusted_paths=_trusted(document, raw, shared.room),
        tests=tuple(_test(test, ("tests", index)) for index, test in enumerate(_mappings(raw, "tests"))),
    )


def _mappings(raw: Mapping[str, Json], key: str) -> Sequence[Mapping[str, Json]]:
    return cast("Sequence[Mapping[str, Json]]", raw.get(key, ()))


def _texts(value: Json) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(cast("Sequence[str]", value))


def _rules(
    document: Document, raw: Mapping[str, Json], definitions: Mapping[str, ToolDefinition], shared: Shared
) -> tuple[Rule, ...]:
    """A rule that is there twice, word for word, is one rule."""
    written = _mappings(raw, "rules")
    ids = _ids(document, written)
    first: dict[str, int] = {}
    for index, rule_id in enumerate(ids):
        first.setdefault(rule_id, index)
    return tuple(
        _rule(document, written[index], rule_id, ("rules", index), definitions, shared)
        for rule_id, index in first.items()
    )


def _ids(document: Document, rules: Sequence[Mapping[str, Json]]) -> list[str]:
    """The ids as given, or from the digest, so that neither order nor neighbours change them."""
    short = [_id(rule, _ID_DIGITS) for rule in rules]
    often = Counter(short)
    ids = [
        _id(rule, _ID_DIGITS_WHEN_TAKEN) if often[name] > 1 and "id" not in rule else name
        for rule, name in zip(rules, short, strict=True)
    ]
    first: dict[str, int] = {}
    for index, name in enumerate(ids):
        if name in first and digest_of(rules[first[name]]) != digest_of(rules[index]):
            message = f"rules[{index}]: the id {name!r} is taken by rules[{first[name]}]"
            raise document.error(("rules", index), message, hint="give it an id of its own")
        first.setdefault(name, index)
    return ids


def _id(rule: Mapping[str, Json], digits: int) -> str:
    if "id" in rule:
        return str(rule["id"])
    tools = "+".join(_texts(rule["tool"]))
    return f"{rule['action']}-{tools}-{digest_of(rule)[:digits]}"


def _rule(
    document: Document,
    raw: Mapping[str, Json],
    rule_id: str,
    place: DocumentPath,
    definitions: Mapping[str, ToolDefinition],
    shared: Shared,
) -> Rule:
    action = Action(str(raw["action"]))
    tools = _tool_names(document, raw["tool"], place)
    when = cast("Mapping[str, Json]", raw.get("when", {}))
    if when.get("tainted") and action not in (Action.ASK, Action.DENY):
        raise document.error(
            (*place, "when", "tainted"),
            f"{rule_id}: `when: {{tainted: true}}` is for ask and deny; a rule that {action.value}s says nothing by it",
            hint="write an ask or a deny rule with this `when` beside the rule",
        )
    known = tuple(definition for name, definition in definitions.items() if any(tool.matches(name) for tool in tools))
    reader = RuleReader(
        document=document, rule_id=rule_id, action=action, place=place, tools=tools, known=known, shared=shared
    )
    constraints = cast("Mapping[str, Json]", raw.get("constraints", {}))
    return Rule(
        id=rule_id,
        action=action,
        tools=tools,
        place=place,
        when_tainted=bool(when.get("tainted")),
        when_sources=frozenset(Source(text) for text in _texts(when["source"])) if "source" in when else None,
        grants=reader.constraints(constraints, as_bars=False) if action in (Action.ALLOW, Action.ASK) else (),
        bars=reader.constraints(constraints, as_bars=True) if action is not Action.ALLOW else (),
        limits=reader.limits(constraints),
        secrets=_texts(raw.get("secrets", ())),
        redact=cast("Redact | None", raw.get("redact")),
        sandbox_level=cast("str | None", raw.get("sandbox_level")),
        why=cast("str | None", raw.get("why")),
        examples=_examples(cast("Mapping[str, Json]", raw.get("examples", {}))),
    )


def _tool_names(document: Document, raw: Json, place: DocumentPath) -> tuple[ToolName, ...]:
    names: list[ToolName] = []
    for index, text in enumerate(_texts(raw)):
        at = (*place, "tool") if isinstance(raw, str) else (*place, "tool", index)
        try:
            names.append(ToolName.parse(text))
        except ValueError as error:
            hint = "a list names several: [fs.read, fs.list]"
            raise document.error(at, f"{spell(at)}: {error}", hint=hint) from error
    return tuple(names)


def _examples(raw: Mapping[str, Json]) -> Examples:
    return Examples(match=tuple(_mappings(raw, "match")), no_match=tuple(_mappings(raw, "no_match")))


def _test(raw: Mapping[str, Json], place: DocumentPath) -> PolicyTest:
    return PolicyTest(
        tool=str(raw["tool"]),
        args=cast("Mapping[str, Json]", raw.get("args", {})),
        expect=str(raw["expect"]),
        place=place,
        code=cast("int | None", raw.get("code")),
        source=Source(str(raw.get("source", Source.API))),
        tainted=bool(raw.get("tainted", False)),
    )


def _limits(document: Document, raw: Mapping[str, Json]) -> PolicyLimits:
    limits = cast("Mapping[str, Json]", raw.get("limits", {}))
    wall_time = None
    if "wall_time" in limits:
        try:
            wall_time = duration(limits["wall_time"])
        except ValueError as error:
            raise document.error(("limits", "wall_time"), f"limits.wall_time: {error}") from error
    return PolicyLimits(calls=cast("int | None", limits.get("calls")), wall_time_ms=wall_time)


def _search(document: Document, raw: Mapping[str, Json]) -> tuple[str, ...]:
    if "path" not in raw:
        return DEFAULT_SEARCH
    directories = _texts(raw["path"])
    for index, directory in enumerate(directories):
        if not directory.startswith("/") or ".." in directory.split("/"):
            raise document.error(
                ("path", index),
                f"path[{index}]: {directory!r} is not an absolute directory",
                hint="programs are found on absolute directories outside the workdir, such as /usr/bin",
            )
    return directories


def _trusted(document: Document, raw: Mapping[str, Json], room: Room) -> tuple[PathPattern, ...] | None:
    if "trusted_paths" not in raw:
        return None
    patterns = []
    for index, text in enumerate(_texts(raw["trusted_paths"])):
        try:
            patterns.append(PathPattern.parse(text, unanchored_allowed=False, room=room))
        except ValueError as error:
            raise document.error(("trusted_paths", index), f"trusted_paths[{index}]: {error}") from error
    return tuple(patterns)
