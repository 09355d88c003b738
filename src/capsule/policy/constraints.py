"""The `constraints` of one rule: which argument each speaks of, of what kind it is, and the limits beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from capsule.calls import Guard, SandboxGrant, ToolDefinition
from capsule.canon import Json
from capsule.documents import Document, schema, suggest, units
from capsule.documents.effort import Effort
from capsule.errors import PlanError
from capsule.policy.commands import CommandConstraint
from capsule.policy.globs import Room
from capsule.policy.paths import PathConstraint, PathPattern
from capsule.policy.rules import (
    GUARD_KEYS,
    Action,
    Constraint,
    Constraints,
    DocumentPath,
    RuleLimits,
    Selector,
)
from capsule.policy.schema import COMMAND_CONSTRAINT, LIMIT_KEYS, PATH_CONSTRAINT, URL_CONSTRAINT
from capsule.policy.tool_names import ToolName
from capsule.policy.urls import UrlConstraint
from capsule.policy.values import ValueConstraint

_PATHS = frozenset({Guard.READ_PATH, Guard.WRITE_PATH})

_ARGUMENT_PREFIX = "args."  # for an argument that is called like a limit or a guard key


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all rules of one policy share: the bounds of what reading them may cost."""

    room: Room = field(default_factory=Room)
    effort: Effort = field(default_factory=Effort)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReader:
    """Reads one rule's constraints; knows the rule's tools, because they say what an argument is."""

    document: Document
    rule_id: str
    action: Action
    place: DocumentPath
    tools: tuple[ToolName, ...]
    known: tuple[ToolDefinition, ...]
    shared: Shared

    def constraints(self, raw: Mapping[str, Json], *, as_bars: bool) -> Constraints:
        """The constraints in one of their two readings: what grants a call, or what stands in its way."""
        if not self.known:
            return self._unknown(raw, as_bars=as_bars)
        read = tuple(
            (self._selector(key), self._constraint(key, cast("Mapping[str, Json]", value), as_bars=as_bars))
            for key, value in raw.items()
            if key not in LIMIT_KEYS
        )
        selectors = [selector for selector, _ in read]
        for index, selector in enumerate(selectors):
            if selector in selectors[:index]:
                key = _ARGUMENT_PREFIX + selector.name
                raise self._error(key, f"{selector.name} says the same argument already", hint="keep one", at_key=True)
        if self.action is Action.ALLOW:
            self._covers_something(selectors)
        return read

    def _unknown(self, raw: Mapping[str, Json], *, as_bars: bool) -> Constraints:
        """Of tools that are not there nobody can say what an argument is: nothing is granted, and all is barred."""
        for key in raw.keys() & GUARD_KEYS.keys():
            self._constraint(key, cast("Mapping[str, Json]", raw[key]), as_bars=as_bars)  # what can be told is checked
        if as_bars:
            return ()
        return tuple(
            (self._selector(key), ValueConstraint(schema={"enum": []})) for key in raw if key not in LIMIT_KEYS
        )

    def _error(
        self, key: str, message: str, *, below: DocumentPath = (), hint: str | None = None, at_key: bool = False
    ) -> PlanError:
        path = (*self.place, "constraints", key, *below)
        return self.document.error(path, f"{self.rule_id}: {key}: {message}", hint=hint, key=at_key)

    def _selector(self, key: str) -> Selector:
        if key in GUARD_KEYS:
            return Selector(name=key, is_guard_key=True)
        return Selector(name=key.removeprefix(_ARGUMENT_PREFIX), is_guard_key=False)

    def _guards(self, key: str) -> frozenset[Guard | None]:
        """What the argument reaches in each known tool that has it; empty where no known tool is named."""
        if key in GUARD_KEYS:
            return self._guard_key(key)
        name = key.removeprefix(_ARGUMENT_PREFIX)
        having = [definition for definition in self.known if name in definition.arguments]
        if self.known and not having:
            allowed = sorted({name for definition in self.known for name in definition.arguments})
            near = suggest(name, [*allowed, *GUARD_KEYS, *LIMIT_KEYS])
            meant = f"; did you mean {near}?" if near else ""
            choices = [*allowed, *GUARD_KEYS, *LIMIT_KEYS]
            raise self._error(
                key,
                f"no tool of this rule has an argument of this name{meant}",
                hint=f"allowed: {', '.join(choices)}",
                at_key=True,
            )
        return frozenset(definition.guards.get(name) for definition in having)

    def _guard_key(self, key: str) -> frozenset[Guard | None]:
        if self.known and not any(_speaks_of(self._selector(key), definition) for definition in self.known):
            names = ", ".join(definition.name for definition in self.known)
            raise self._error(key, f"{names} has no argument of this kind", hint="the rule could never match")
        return frozenset(GUARD_KEYS[key])

    def _constraint(self, key: str, raw: Mapping[str, Json], *, as_bars: bool) -> Constraint:
        guards = self._guards(key)
        if guards and guards <= _PATHS:
            return self._path(key, raw, as_bars=as_bars)
        if guards == {Guard.URL}:
            return self._url(key, raw, as_bars=as_bars)
        if guards == {Guard.COMMAND}:
            return self._command(key, raw, as_bars=as_bars)
        if guards & {Guard.READ_PATH, Guard.WRITE_PATH, Guard.URL, Guard.COMMAND}:
            raise self._error(key, "means different things in the tools of this rule", hint="write a rule for each")
        return self._value(key, raw, lower=guards == {Guard.HEADERS})

    def _shape(self, key: str, raw: Json, shape: Mapping[str, Json]) -> None:
        for problem in schema.problems(raw, shape):
            listed = problem.path == ("pattern",) and not problem.key
            hint = "`pattern` is one; several go under `patterns`" if listed else problem.hint
            raise self._error(key, problem.message, below=problem.path, hint=hint, at_key=problem.key)

    def _path(self, key: str, raw: Mapping[str, Json], *, as_bars: bool) -> PathConstraint:
        self._shape(key, raw, PATH_CONSTRAINT)
        patterns = []
        for below, text in _pattern_list(raw):
            try:
                patterns.append(PathPattern.parse(str(text), unanchored_allowed=as_bars, room=self.shared.room))
            except ValueError as error:
                raise self._error(key, str(error), below=below) from error
        return PathConstraint(patterns=tuple(patterns), hidden="hidden" in raw, protected="protected" in raw)

    def _url(self, key: str, raw: Mapping[str, Json], *, as_bars: bool) -> UrlConstraint:
        self._shape(key, raw, URL_CONSTRAINT)
        if as_bars and self.action is Action.ASK:  # it widens what the rule grants, and says nothing of what it bars
            raw = _without(raw, "private_networks")
        try:
            return UrlConstraint.read(raw, deny=as_bars, room=self.shared.room)
        except ValueError as error:
            raise self._error(key, str(error)) from error

    def _command(self, key: str, raw: Mapping[str, Json], *, as_bars: bool) -> CommandConstraint:
        self._shape(key, raw, COMMAND_CONSTRAINT)
        if as_bars and self.action is not Action.DENY:  # tokens take from what a rule grants, not from what it bars
            raw = _without(raw, "deny_tokens")
        try:
            return CommandConstraint.read(raw, deny=as_bars)
        except ValueError as error:
            raise self._error(key, str(error)) from error

    def _value(self, key: str, raw: Mapping[str, Json], *, lower: bool) -> ValueConstraint:
        for problem in schema.unsupported(raw, self.shared.effort):
            raise self._error(key, problem.message, below=problem.path, hint=problem.hint, at_key=problem.key)
        return ValueConstraint(schema=_lower_properties(raw) if lower else raw)

    def _covers_something(self, selectors: Sequence[Selector]) -> None:
        """An allow that constrains none of its tool's guarded arguments would allow everything, or nothing."""
        guarded = [definition for definition in self.known if definition.guards]
        if not guarded or any(_speaks_of(selector, definition) for definition in guarded for selector in selectors):
            return
        names = sorted({name for definition in guarded for name in definition.guards})
        raise self.document.error(
            self.place,
            f"{self.rule_id}: an allow must say which {' or '.join(names)} it means",
            hint="add `constraints:` with a pattern; ** means all of the workdir, /** all of the file system",
        )

    def limits(self, constraints: Mapping[str, Json]) -> RuleLimits:
        raw = {key: constraints[key] for key in constraints if key in LIMIT_KEYS}
        if raw and self.action is Action.DENY:
            key = next(iter(raw))
            raise self._error(key, "a deny has no limits", hint="write a rule with `action: limit` beside it")
        if self.action is Action.LIMIT and not raw:
            raise self.document.error(
                self.place,
                f"{self.rule_id}: a limit rule names no limit",
                hint=f"add one of {', '.join(key for key in LIMIT_KEYS if key != 'sandbox')} to its constraints",
            )
        rate = cast("Mapping[str, int]", raw.get("rate_limit", {}))
        return RuleLimits(
            max_bytes=self._size("max_bytes", raw),
            max_calls=cast("int | None", raw.get("max_calls")),
            per_minute=rate.get("requests_per_minute"),
            timeout_ms=self._duration("timeout", raw),
            max_output_bytes=self._size("max_output_bytes", raw),
            sandbox=self._sandbox(raw),
        )

    def _size(self, key: str, raw: Mapping[str, Json]) -> int | None:
        try:
            return units.size(cast("str | int", raw[key])) if key in raw else None
        except ValueError as error:
            raise self._error(key, str(error)) from error

    def _duration(self, key: str, raw: Mapping[str, Json]) -> int | None:
        try:
            return duration(raw[key]) if key in raw else None
        except ValueError as error:
            raise self._error(key, str(error)) from error

    def _sandbox(self, raw: Mapping[str, Json]) -> SandboxGrant | None:
        if "sandbox" not in raw:
            return None
        if self.action is Action.LIMIT:
            raise self._error("sandbox", "a limit rule grants nothing", hint="put `sandbox` on the allow or ask rule")
        written = cast("Mapping[str, Json]", raw["sandbox"])
        for key in ("read", "write"):
            for index, path in enumerate(cast("Sequence[str]", written.get(key, ()))):
                if any(sign in path for sign in "*?[{\\"):
                    raise self._error(
                        "sandbox", f"{path!r} is not a literal path", below=(key, index), hint="name each path"
                    )
        return SandboxGrant(
            read=tuple(cast("Sequence[str]", written.get("read", ()))),
            write=tuple(cast("Sequence[str]", written.get("write", ()))),
            network=written.get("network") == "allow",
            protected=written.get("protected") == "allow",
        )


def duration(written: Json) -> int:
    """Milliseconds; a bare number does not say of what."""
    if not isinstance(written, str) or written.isdecimal():
        raise ValueError(f"found {written} without a unit; write {written}s or {written}ms")
    return units.duration_ms(written)


def _without(raw: Mapping[str, Json], key: str) -> Mapping[str, Json]:
    return {name: value for name, value in raw.items() if name != key}


def _pattern_list(raw: Mapping[str, Json]) -> list[tuple[DocumentPath, Json]]:
    """`pattern` and `patterns` as one list, each with its place."""
    found: list[tuple[DocumentPath, Json]] = [(("pattern",), raw["pattern"])] if "pattern" in raw else []
    patterns = cast("Sequence[Json]", raw.get("patterns", ()))
    return found + [(("patterns", index), text) for index, text in enumerate(patterns)]


def _speaks_of(selector: Selector, definition: ToolDefinition) -> bool:
    return any(selector.covers(argument, guard) for argument, guard in definition.guards.items())


def _lower_properties(raw: Mapping[str, Json]) -> Mapping[str, Json]:
    """Header names are compared in lower case; a rule may spell them as it likes."""
    lowered = dict(raw)
    if isinstance(properties := raw.get("properties"), Mapping):
        lowered["properties"] = {name.lower(): inner for name, inner in properties.items()}
    if isinstance(required := raw.get("required"), Sequence):
        lowered["required"] = [str(name).lower() for name in required]
    return lowered
