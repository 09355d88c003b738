"""Why a call is decided as it is: the enforcer's own answer, and rule by rule what matched and what did not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capsule.calls import ConcreteCall, Decision, RunState, World
from capsule.canon import Json
from capsule.policy.advice import cut
from capsule.policy.decide import decide
from capsule.policy.layer import Layer
from capsule.policy.rules import Action, Constraint, Rule, Selector
from capsule.policy.selectors import About, needs_cover, selector_index
from capsule.policy.values import ValueConstraint


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleStory:
    """One rule and how it stands to the call; `because` names the first thing that keeps it from matching."""

    rule: str
    action: str
    matched: bool
    because: str

    def as_json(self) -> dict[str, Json]:
        return {"rule": self.rule, "action": self.action, "matched": self.matched, "because": self.because}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    decision: Decision
    stories: tuple[RuleStory, ...]

    def as_json(self) -> dict[str, Json]:
        decision = self.decision.as_json()
        limits: dict[str, Json] = dict(self.decision.limit_rules)
        return {**decision, "limits": limits, "rules": [story.as_json() for story in self.stories]}


def explain(layers: Sequence[Layer], call: ConcreteCall, state: RunState) -> Explanation:
    stories = tuple(_story(layer, rule, call, tainted=state.tainted) for layer in layers for rule in layer.rules.rules)
    return Explanation(decision=decide(layers, call, state), stories=stories)


def _story(layer: Layer, rule: Rule, call: ConcreteCall, *, tainted: bool) -> RuleStory:
    because = _away(rule, call, tainted=tainted)
    if because is None:
        matched = layer.rule_matches(rule, call)
        because = "it matches" if matched else _mismatch(layer, rule, call)
        return RuleStory(rule=rule.id, action=rule.action.value, matched=matched, because=because)
    return RuleStory(rule=rule.id, action=rule.action.value, matched=False, because=because)


def _away(rule: Rule, call: ConcreteCall, *, tainted: bool) -> str | None:
    """Why the rule takes no part at all."""
    if not rule.names(call.tool):
        return f"it does not name {call.tool}"
    if rule.when_sources is not None and call.source not in rule.when_sources:
        return f"it is for source {', '.join(sorted(rule.when_sources))}, not {call.source.value}"
    if rule.when_tainted and not tainted:
        return "it is for a tainted run, and this one is not"
    return None


def _mismatch(layer: Layer, rule: Rule, call: ConcreteCall) -> str:
    as_bars = rule.action in (Action.DENY, Action.LIMIT)
    constraints = rule.bars if as_bars else rule.grants
    for selector, constraint in constraints:
        if not _holds(selector, constraint, call, layer.world, as_bars=as_bars):
            return f"{selector.name}: {_values(selector, call)} is not covered"
    uncovered = [
        argument
        for argument, guard in needs_cover(call)
        if not any(selector.covers(argument, guard) for selector, _ in constraints)
    ]
    return f"it says nothing of {', '.join(uncovered)}" if uncovered else "its constraints do not hold together"


def _holds(selector: Selector, constraint: Constraint, call: ConcreteCall, world: World, *, as_bars: bool) -> bool:
    if isinstance(constraint, ValueConstraint):
        value = call.args.get(selector.name)
        return value is not None and constraint.mismatch(value) is None
    about = About.of(selector, call.definition)
    return bool(selector_index(about, [(0, constraint)], world, as_bars=as_bars).match(call)[0])


def _values(selector: Selector, call: ConcreteCall) -> str:
    guards = call.definition.guards
    texts = [path.text for path in call.paths if selector.covers(path.argument, guards[path.argument])]
    texts += [url.text for url in call.urls if selector.covers(url.argument, guards[url.argument])]
    texts += [
        " ".join(command.argv)
        for command in call.commands
        if selector.covers(command.argument, guards[command.argument])
    ]
    if texts:
        return ", ".join(repr(cut(text)) for text in texts)
    value = call.args.get(selector.name)
    return "what is absent" if value is None else cut(repr(value))
