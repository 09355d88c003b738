"""One index for each argument or guard key that rules speak of: which of them hold for the values of a call.

As grants every value must be covered, in its real form and past the floors. As bars any value will do, in its real
form or as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from capsule.calls import Access, ConcreteCall, ConcretePath, Guard, ToolDefinition, World
from capsule.calls.builtin import FS_LIST
from capsule.policy import floors
from capsule.policy.commands import CommandConstraint, CommandIndex
from capsule.policy.paths import BoundPattern, PathConstraint
from capsule.policy.rules import Constraint, Selector
from capsule.policy.trie import PatternIndex
from capsule.policy.urls import UrlConstraint, UrlIndex
from capsule.policy.values import ValueConstraint

Numbered: TypeAlias = tuple[int, Constraint]
"""A constraint with the number of its rule."""

Found: TypeAlias = tuple[set[int], int | None]
"""The rules whose constraint holds, and the smallest code of those whose constraint does not."""


def needs_cover(call: ConcreteCall) -> tuple[tuple[str, Guard], ...]:
    """The guarded arguments of this call that a grant must cover."""
    return tuple(
        (name, guard) for name, guard in call.definition.guards.items() if _reaches(call, guard, call.args.get(name))
    )


def _reaches(call: ConcreteCall, guard: Guard, value: object) -> bool:
    if value is None:
        return False  # a cwd left out is the workdir
    if guard is Guard.ENV:
        return bool(value)
    return guard is not Guard.HEADERS or call.carries_credentials()


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """A selector in one tool: the arguments that it speaks of there."""

    arguments: frozenset[str]
    is_guard_key: bool

    @classmethod
    def of(cls, selector: Selector, definition: ToolDefinition) -> About:
        return cls(
            arguments=frozenset(name for name, guard in definition.guards.items() if selector.covers(name, guard)),
            is_guard_key=selector.is_guard_key,
        )


class SelectorIndex(Protocol):
    def match(self, call: ConcreteCall) -> Found: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    rule: int
    pattern: BoundPattern
    constraint: PathConstraint


class PathSelector:
    """The path patterns of many rules for one argument or guard key."""

    def __init__(
        self, about: About, numbered: Sequence[tuple[int, PathConstraint]], world: World, *, as_bars: bool
    ) -> None:
        self._about = about
        self._arguments = about.arguments
        self._as_bars = as_bars
        self._places = world.places
        self._rules = {rule for rule, _ in numbered}
        self._entries = [
            _Entry(rule=rule, pattern=pattern, constraint=constraint)
            for rule, constraint in numbered
            for written in constraint.patterns
            for pattern in written.bind(world.places, world.directory, as_written_too=as_bars)
        ]
        self._any_dot = self._index(lambda entry: as_bars or entry.constraint.hidden)
        self._spelled_dot = self._index(lambda entry: not (as_bars or entry.constraint.hidden))

    def _index(self, keep: Callable[[_Entry], bool]) -> PatternIndex[int]:
        return PatternIndex.build((entry.pattern, number) for number, entry in enumerate(self._entries) if keep(entry))

    def match(self, call: ConcreteCall) -> Found:
        values = [path for path in call.paths if path.argument in self._arguments]
        listing = call.tool == FS_LIST.name
        if self._as_bars:
            return _bars_any([self._bars(path, hangs=listing) for path in values])
        granted = [self._grants(path, hangs=listing) for path in values]
        return _grants_all(granted, self._rules, 1001, absent_will_do=_absent_will_do(self._about, call))

    def held_back(self, path: ConcretePath, *, hangs: bool) -> tuple[int, str] | None:
        """The first rule with a pattern that covers the path but for a floor, and that floor in words."""
        if path.argument not in self._arguments:
            return None
        covering = self._any_dot.matches(path.real, hangs=hangs) | self._spelled_dot.matches(path.real, hangs=hangs)
        for entry in sorted((self._entries[number] for number in covering), key=lambda entry: entry.rule):
            floor = floors.held_back(path, entry.pattern, entry.constraint, hangs=hangs)
            if floor is not None:
                return entry.rule, floor
        return None

    def _bars(self, path: ConcretePath, *, hangs: bool) -> set[int]:
        found: set[int] = set()
        for form in {path.real, path.written} if path.problem is None else {path.written}:
            found |= self._any_dot.matches(form, beneath=True, hangs=hangs, folded=path.folded)
        return {self._entries[number].rule for number in found}

    def _grants(self, path: ConcretePath, *, hangs: bool) -> set[int]:
        if path.problem is not None or floors.unreadable(path, self._places) is not None:
            return set()
        found = self._any_dot.matches(path.real, hangs=hangs)
        found |= self._spelled_dot.matches(path.real, hidden=False, hangs=hangs)
        entries = [self._entries[number] for number in found]
        if path.access is Access.WRITE:
            entries = [
                entry for entry in entries if floors.writable(path, entry.pattern, entry.constraint, self._places)
            ]
        return {entry.rule for entry in entries}


class UrlSelector:
    def __init__(self, about: About, numbered: Sequence[tuple[int, UrlConstraint]], *, as_bars: bool) -> None:
        self._about = about
        self._arguments = about.arguments
        self._as_bars = as_bars
        self._rules = {rule for rule, _ in numbered}
        self._index = UrlIndex.build((constraint, rule) for rule, constraint in numbered)

    def match(self, call: ConcreteCall) -> Found:
        values = [url for url in call.urls if url.argument in self._arguments]
        found = [self._index.matches(url) for url in values]
        if self._as_bars:
            return _bars_any(found)
        return _grants_all(found, self._rules, 1002, absent_will_do=_absent_will_do(self._about, call))


class CommandSelector:
    """Keeps the patterns apart from `deny_tokens`, whose failure has a code of its own."""

    def __init__(
        self, about: About, numbered: Sequence[tuple[int, CommandConstraint]], world: World, *, as_bars: bool
    ) -> None:
        self._about = about
        self._arguments = about.arguments
        self._as_bars = as_bars
        self._rules = {rule for rule, _ in numbered}
        self._index = _commands(numbered, world)
        has_tokens = any(constraint.deny_tokens for _, constraint in numbered)
        untold = [(rule, replace(constraint, deny_tokens=None)) for rule, constraint in numbered]
        self._patterns = _commands(untold, world) if has_tokens else self._index

    def match(self, call: ConcreteCall) -> Found:
        values = [each for each in call.commands if each.argument in self._arguments]
        matched = [self._index.matches(each) for each in values]
        if self._as_bars:
            return _bars_any(matched)
        absent = _absent_will_do(self._about, call)
        found, code = _grants_all(matched, self._rules, 1003, absent_will_do=absent)
        if code is not None and self._patterns is not self._index and values:
            by_pattern = set[int].intersection(*(self._patterns.matches(each) for each in values))
            code = 1003 if len(by_pattern) < len(self._rules) else 1004
        return found, code


def _commands(numbered: Sequence[tuple[int, CommandConstraint]], world: World) -> CommandIndex[int]:
    return CommandIndex.build((each.bind(world.places, world.directory), rule) for rule, each in numbered)


def _bars_any(found: Sequence[set[int]]) -> Found:
    return set[int]().union(*found), None


def _grants_all(found: Sequence[set[int]], rules: set[int], code: int, *, absent_will_do: bool) -> Found:
    """Over the values of one selector; none at all fails, but for a guard key beside arguments that are covered."""
    if not found:
        return (rules, None) if absent_will_do else (set(), code)
    granted = set[int].intersection(*found)
    return granted, None if len(granted) == len(rules) else code


def _absent_will_do(about: About, call: ConcreteCall) -> bool:
    """A rule for several tools may hold guard keys that only some of them have arguments for."""
    return about.is_guard_key and bool(needs_cover(call))


def constraint_holds(
    selector: Selector, constraint: Constraint, call: ConcreteCall, world: World, *, as_bars: bool
) -> bool:
    """One constraint of one rule alone."""
    if isinstance(constraint, ValueConstraint):
        value = call.args.get(selector.name)
        return value is not None and constraint.mismatch(value) is None
    about = About.of(selector, call.definition)
    return bool(selector_index(about, [(0, constraint)], world, as_bars=as_bars).match(call)[0])


def selector_index(about: About, constraints: Sequence[Numbered], world: World, *, as_bars: bool) -> SelectorIndex:
    """Constraints of one selector are of one kind: the tool says what the argument is."""
    paths = [(rule, constraint) for rule, constraint in constraints if isinstance(constraint, PathConstraint)]
    urls = [(rule, constraint) for rule, constraint in constraints if isinstance(constraint, UrlConstraint)]
    commands = [(rule, constraint) for rule, constraint in constraints if isinstance(constraint, CommandConstraint)]
    if paths:
        return PathSelector(about, paths, world, as_bars=as_bars)
    if urls:
        return UrlSelector(about, urls, as_bars=as_bars)
    return CommandSelector(about, commands, world, as_bars=as_bars)
