"""Why a call is decided as it is: the enforcer's own answer, and rule by rule what matched and what did not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from capsule.calls import ConcreteCall, Decision, Effect, RunState
from capsule.canon import Json
from capsule.documents.effort import TooMuch
from capsule.policy.advice import cut
from capsule.policy.decide import resolve_and_decide
from capsule.policy.layer import Layer
from capsule.policy.matching import RuleIndex
from capsule.policy.rules import Action, Rule, Selector
from capsule.policy.selectors import constraint_holds, needs_cover
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
class LimitSource:
    """A limit that holds for the call, and where it came from."""

    name: str
    value: str
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    decision: Decision
    stories: tuple[RuleStory, ...]
    limits: tuple[LimitSource, ...]

    def as_json(self) -> dict[str, Json]:
        decision = self.decision.as_json()
        limits: dict[str, Json] = {limit.name: limit.rule for limit in self.limits}
        return {**decision, "limits": limits, "rules": [story.as_json() for story in self.stories]}


def explain(layers: Sequence[Layer], call: ConcreteCall, state: RunState) -> Explanation:
    stories = tuple(
        story_of(layer, rule, call, tainted=state.tainted) for layer in layers for rule in layer.rules.rules
    )
    decision = resolve_and_decide(layers, lambda: call, state)[1]
    limits = (*_granted_limits(decision), *_counted_limits(layers, decision))
    return Explanation(decision=decision, stories=stories, limits=limits)


def _granted_limits(decision: Decision) -> Iterator[LimitSource]:
    if decision.grant is None:
        return
    limits = decision.grant.limits
    values = {
        "max_bytes": f"{limits.max_bytes} bytes",
        "timeout": f"{limits.timeout_ms} ms",
        "max_output_bytes": f"{limits.max_output_bytes} bytes",
    }
    for name, rule in decision.limit_rules.items():
        yield LimitSource(name=name, value=values[name], rule=rule)


def _counted_limits(layers: Sequence[Layer], decision: Decision) -> Iterator[LimitSource]:
    """The smallest of each kind; each rule counts for itself, so others may be used up before it."""
    rules = [rule for number, name in decision.counted for rule in layers[number].rules.rules if rule.id == name]
    most = [(rule.limits.max_calls, rule.id) for rule in rules if rule.limits.max_calls is not None]
    rates = [(rule.limits.per_minute, rule.id) for rule in rules if rule.limits.per_minute is not None]
    calls = [(layer.rules.limits.calls, "limits.calls") for layer in layers if layer.rules.limits.calls is not None]
    if decision.effect is not Effect.DENY and (most or calls):
        count, rule_id = min([*most, *calls])
        yield LimitSource(name="max_calls", value=f"{count} in one run", rule=rule_id)
    if rates:
        count, rule_id = min(rates)
        yield LimitSource(name="rate_limit", value=f"{count} a minute", rule=rule_id)


def story_of(layer: Layer, rule: Rule, call: ConcreteCall, *, tainted: bool) -> RuleStory:
    because, matched = _away(rule, call, tainted=tainted), False
    if because is None:
        try:
            matched = layer.rule_matches(rule, call)
            because = "it matches" if matched else _mismatch(layer, rule, call)
        except TooMuch as error:
            because = str(error)
    return RuleStory(rule=rule.id, action=rule.action.value, matched=matched, because=because)


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
        if not constraint_holds(selector, constraint, call, layer.world, as_bars=as_bars):
            if isinstance(constraint, ValueConstraint):
                value = call.args.get(selector.name)
                return f"{selector.name}: {'it is absent' if value is None else constraint.mismatch(value)}"
            floor = "" if as_bars else _floor(layer, rule, call)
            return f"{selector.name}: {_values(selector, call)} is not covered{floor}"
    uncovered = [
        argument
        for argument, guard in needs_cover(call)
        if not any(selector.covers(argument, guard) for selector, _ in constraints)
    ]
    return f"it says nothing of {', '.join(uncovered)}" if uncovered else "its constraints do not hold together"


def _floor(layer: Layer, rule: Rule, call: ConcreteCall) -> str:
    """The pattern fits, and something that holds for every rule does not."""
    alone = RuleIndex([rule], call.definition, layer.world, as_bars=False)
    found = [held[1] for path in call.paths if (held := alone.held_back(call, path)) is not None]
    return f": {found[0]}" if found else ""


def _values(selector: Selector, call: ConcreteCall) -> str:
    guards = call.definition.guards
    texts = [path.text for path in call.paths if selector.covers(path.argument, guards[path.argument])]
    texts += [url.text for url in call.urls if selector.covers(url.argument, guards[url.argument])]
    texts += [
        " ".join(command.argv)
        for command in call.commands
        if selector.covers(command.argument, guards[command.argument])
    ]
    return ", ".join(repr(cut(text)) for text in texts) or "what is absent"
