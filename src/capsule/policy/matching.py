"""Which rules match a call, found by index: the cost follows the call, not the number of rules.

One `RuleIndex` holds the rules of one tool in one of two readings. As a *grant* (allow, ask) a rule matches when every
guarded argument is covered and every constraint holds. As a *bar* (deny, limit, ask) it matches when each argument it
names has some value under it; naming none, it matches every call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capsule.calls import Access, ConcreteCall, ConcretePath, Guard, Places, ToolDefinition, World
from capsule.calls.builtin import FS_LIST
from capsule.policy import floors
from capsule.policy.commands import CommandConstraint
from capsule.policy.paths import PathConstraint
from capsule.policy.rules import Constraint, Rule, Selector
from capsule.policy.selectors import About, PathSelector, needs_cover, selector_index
from capsule.policy.urls import UrlConstraint
from capsule.policy.values import ValueConstraint

CODE_OF_GUARD: Mapping[Guard, int] = {
    Guard.READ_PATH: 1001,
    Guard.WRITE_PATH: 1001,
    Guard.URL: 1002,
    Guard.COMMAND: 1003,
    Guard.ENV: 1009,
    Guard.HEADERS: 1009,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """`failed` is the smallest code among the checks that failed, when rules named the tool and none matched."""

    rules: tuple[Rule, ...]
    failed: int | None = None


def code_of(constraint: Constraint) -> int:
    """The code of a check of this kind when it fails."""
    match constraint:
        case PathConstraint():
            return 1001
        case UrlConstraint():
            return 1002
        case CommandConstraint():
            return 1003
        case ValueConstraint():
            return 1009


def bare_failures(call: ConcreteCall, places: Places) -> set[int]:
    """What stands against a call that only `default_action: ask` lets through: floors, and what no rule speaks of.

    The floor for hidden names is about patterns; here a person sees the very path.
    """
    required = call.definition.args_schema.get("required", ())
    assert isinstance(required, Sequence)
    failed = {CODE_OF_GUARD[guard] for argument, guard in needs_cover(call) if argument not in required}
    if any(_is_floored(path, places) for path in call.paths):
        failed.add(1001)
    if not all(url.public for url in call.urls):
        failed.add(1002)
    return failed


def _is_floored(path: ConcretePath, places: Places) -> bool:
    if floors.unreadable(path, places) is not None:
        return True
    if path.access is Access.READ:
        return False
    return floors.is_run_later(path) or floors.protected(path, places) is not None


class RuleIndex:
    """The rules of one tool, as grants or as bars."""

    def __init__(self, rules: Sequence[Rule], definition: ToolDefinition, world: World, *, as_bars: bool) -> None:
        self._rules = rules
        self._as_bars = as_bars
        named: dict[Selector, list[tuple[int, Constraint]]] = {}
        self._values: dict[int, list[tuple[Selector, ValueConstraint]]] = {}
        for number, rule in enumerate(rules):
            for selector, constraint in rule.bars if as_bars else rule.grants:
                if isinstance(constraint, ValueConstraint):
                    self._values.setdefault(number, []).append((selector, constraint))
                else:
                    named.setdefault(selector, []).append((number, constraint))
        self._selected = [
            selector_index(About.of(selector, definition), constraints, world, as_bars=as_bars)
            for selector, constraints in named.items()
        ]
        self._needed = Counter(number for constraints in named.values() for number, _ in constraints)
        self._free = tuple(number for number in range(len(rules)) if number not in self._needed)
        self._uncovered = {} if as_bars else _uncovered(rules, definition)

    def match(self, call: ConcreteCall) -> Matches:
        failed: set[int] = set()
        hits: dict[int, int] = {}
        for selected in self._selected:
            found, code = selected.match(call)
            for number in found:
                hits[number] = hits.get(number, 0) + 1
            if code is not None:
                failed.add(code)
        candidates = [number for number, count in hits.items() if count == self._needed[number]]
        candidates += self._free
        if not self._as_bars:
            candidates = self._covering(call, candidates, failed)
        matched = [self._rules[number] for number in candidates if self._values_hold(number, call, failed)]
        if matched or not self._rules:
            return Matches(rules=tuple(matched))
        return Matches(rules=(), failed=min(failed, default=1000))

    def held_back(self, call: ConcreteCall, path: ConcretePath) -> tuple[str, str] | None:
        """The rule whose pattern covers a path that a floor keeps from it, and that floor in words."""
        hangs = call.tool == FS_LIST.name
        indexes = [selected for selected in self._selected if isinstance(selected, PathSelector)]
        found = [held for index in indexes if (held := index.held_back(path, hangs=hangs)) is not None]
        named = [(self._rules[number].id, why) for number, why in found]
        return min(named, default=None)

    def _covering(self, call: ConcreteCall, candidates: list[int], failed: set[int]) -> list[int]:
        for argument, guard in needs_cover(call):
            without = self._uncovered[argument]
            if without:
                failed.add(CODE_OF_GUARD[guard])
                candidates = [number for number in candidates if number not in without]
        return candidates

    def _values_hold(self, number: int, call: ConcreteCall, failed: set[int]) -> bool:
        for selector, constraint in self._values.get(number, ()):
            value = call.args.get(selector.name)
            if value is None or constraint.mismatch(value) is not None:
                failed.add(1009)
                return False
        return True


def _uncovered(rules: Sequence[Rule], definition: ToolDefinition) -> dict[str, frozenset[int]]:
    """For each guarded argument the rules that say nothing of it, and so can never grant a call that has it."""
    return {
        argument: frozenset(
            number
            for number, rule in enumerate(rules)
            if not any(selector.covers(argument, guard) for selector, _ in rule.grants)
        )
        for argument, guard in definition.guards.items()
    }
