"""A policy bound to a world: patterns anchored in real directories, rules indexed tool by tool at first use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capsule.calls import ConcreteCall, Places, Source, ToolDefinition, World
from capsule.policy.matching import RuleIndex
from capsule.policy.paths import is_within
from capsule.policy.rules import Action, PolicyRules, Rule

_NEAREST = 20  # rules; a suggestion must not cost more than the decision that it follows


def search_path(layers: Sequence[Layer]) -> tuple[str, ...]:
    """Where bare program names are found: only where every layer looks for them."""
    first, *others = [layer.rules.search for layer in layers] or [()]
    return tuple(directory for directory in first if all(directory in other for other in others))


def wall_time_ms(layers: Sequence[Layer]) -> int | None:
    """How long the policies let a run take: the smallest `limits.wall_time`."""
    named = [layer.rules.limits.wall_time_ms for layer in layers]
    return min((limit for limit in named if limit is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """The rules that speak of one tool, for one source, of a run that is tainted or not."""

    grants: RuleIndex
    bars: RuleIndex
    nearest: tuple[Rule, ...]  # the first allow rules, by id: where a suggestion may add a pattern


class Layer:
    """One policy of a run; layers are never merged, each decides alone."""

    def __init__(self, rules: PolicyRules, world: World) -> None:
        self.rules = rules
        self.world = world
        self._books: dict[tuple[str, Source, bool], Book] = {}
        self._trusted = [
            bound for pattern in rules.trusted_paths or () for bound in pattern.bind(world.places, world.directory)
        ]

    @property
    def places(self) -> Places:
        return self.world.places

    def book(self, definition: ToolDefinition, source: Source, *, tainted: bool) -> Book:
        key = (definition.name, source, tainted)
        found = self._books.get(key)
        if found is None:
            found = self._books[key] = self._compile(definition, source, tainted=tainted)
        return found

    def _compile(self, definition: ToolDefinition, source: Source, *, tainted: bool) -> Book:
        rules = [rule for rule in self.rules.rules if rule.applies(definition.name, source, tainted=tainted)]
        granting = [rule for rule in rules if rule.action in (Action.ALLOW, Action.ASK)]
        barring = [rule for rule in rules if rule.action is not Action.ALLOW]
        allowing = [rule for rule in granting if rule.action is Action.ALLOW]
        return Book(
            nearest=tuple(sorted(allowing, key=lambda rule: rule.id)[:_NEAREST]),
            grants=RuleIndex(granting, definition, self.world, as_bars=False),
            bars=RuleIndex(barring, definition, self.world, as_bars=True),
        )

    def rule_matches(self, rule: Rule, call: ConcreteCall) -> bool:
        """Whether one rule alone matches, in any of its readings; for examples and `explain`."""
        grants = rule.action in (Action.ALLOW, Action.ASK)
        readings = ([False] if grants else []) + ([True] if rule.action is not Action.ALLOW else [])
        return any(
            RuleIndex([rule], call.definition, self.world, as_bars=as_bars).match(call).rules for as_bars in readings
        )

    def trusts(self, call: ConcreteCall) -> bool:
        """Whether what the call reads lies only where `trusted_paths` says that content does not taint a run."""
        return all(any(pattern.matches(path.real, hangs=True) for pattern in self._trusted) for path in call.paths)

    def in_workdir(self, call: ConcreteCall) -> bool:
        return all(is_within(path.real, self.places.workdir) for path in call.paths)
