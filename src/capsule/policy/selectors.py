"""One index for each argument or guard key that rules speak of: which of them hold for the values of a call.

As grants every value must be covered, in its real form and past the floors. As bars any value will do, in its real
form or as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from capsule.calls import Access, ConcreteCall, ConcretePath, World
from capsule.policy import floors
from capsule.policy.commands import CommandConstraint, CommandIndex
from capsule.policy.paths import BoundPattern, PathConstraint
from capsule.policy.rules import Constraint, Selector
from capsule.policy.trie import PatternIndex
from capsule.policy.urls import UrlConstraint, UrlIndex

Numbered: TypeAlias = tuple[int, Constraint]
"""A constraint with the number of its rule."""

Found: TypeAlias = tuple[set[int], int | None]
"""The rules whose constraint holds, and the smallest code of those whose constraint does not."""

_LISTING = "fs.list"


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
        self, selector: Selector, numbered: Sequence[tuple[int, PathConstraint]], world: World, *, as_bars: bool
    ) -> None:
        self._selector = selector
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
        values = [
            path for path in call.paths if self._selector.covers(path.argument, call.definition.guards[path.argument])
        ]
        listing = call.tool == _LISTING
        look = self._bars if self._as_bars else self._grants
        return _joined([look(path, hangs=listing) for path in values], self._rules, 1001, as_bars=self._as_bars)

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
    def __init__(self, selector: Selector, numbered: Sequence[tuple[int, UrlConstraint]], *, as_bars: bool) -> None:
        self._selector = selector
        self._as_bars = as_bars
        self._rules = {rule for rule, _ in numbered}
        self._index = UrlIndex.build((constraint, rule) for rule, constraint in numbered)

    def match(self, call: ConcreteCall) -> Found:
        guards = call.definition.guards
        values = [url for url in call.urls if self._selector.covers(url.argument, guards[url.argument])]
        return _joined([self._index.matches(url) for url in values], self._rules, 1002, as_bars=self._as_bars)


class CommandSelector:
    """Keeps the patterns apart from `deny_tokens`, whose failure has a code of its own."""

    def __init__(
        self, selector: Selector, numbered: Sequence[tuple[int, CommandConstraint]], world: World, *, as_bars: bool
    ) -> None:
        self._selector = selector
        self._as_bars = as_bars
        self._rules = {rule for rule, _ in numbered}
        self._index = _commands(numbered, world)
        has_tokens = any(constraint.deny_tokens for _, constraint in numbered)
        untold = [(rule, replace(constraint, deny_tokens=None)) for rule, constraint in numbered]
        self._patterns = _commands(untold, world) if has_tokens else self._index

    def match(self, call: ConcreteCall) -> Found:
        guards = call.definition.guards
        values = [each for each in call.commands if self._selector.covers(each.argument, guards[each.argument])]
        found, code = _joined([self._index.matches(each) for each in values], self._rules, 1003, as_bars=self._as_bars)
        if code is not None and self._patterns is not self._index and values:
            by_pattern = set[int].intersection(*(self._patterns.matches(each) for each in values))
            code = 1003 if len(by_pattern) < len(self._rules) else 1004
        return found, code


def _commands(numbered: Sequence[tuple[int, CommandConstraint]], world: World) -> CommandIndex[int]:
    return CommandIndex.build((each.bind(world.places, world.directory), rule) for rule, each in numbered)


def _joined(found: Sequence[set[int]], rules: set[int], code: int, *, as_bars: bool) -> Found:
    """Over the values of one selector: a grant needs all of them, a bar any; no value at all fails."""
    if as_bars:
        return set[int]().union(*found), None
    granted = set[int].intersection(*found) if found else set()
    return granted, None if len(granted) == len(rules) else code


def selector_index(
    selector: Selector, constraints: Sequence[Numbered], world: World, *, as_bars: bool
) -> SelectorIndex:
    """Constraints of one selector are of one kind: the tool says what the argument is."""
    paths = [(rule, constraint) for rule, constraint in constraints if isinstance(constraint, PathConstraint)]
    urls = [(rule, constraint) for rule, constraint in constraints if isinstance(constraint, UrlConstraint)]
    commands = [(rule, constraint) for rule, constraint in constraints if isinstance(constraint, CommandConstraint)]
    if paths:
        return PathSelector(selector, paths, world, as_bars=as_bars)
    if urls:
        return UrlSelector(selector, urls, as_bars=as_bars)
    return CommandSelector(selector, commands, world, as_bars=as_bars)
