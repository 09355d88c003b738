"""Allow, ask or deny: pure, and an exception anywhere inside is a deny.

1  what can be nothing but wrong denies: a redaction marker, a path or URL or program that is none
2  bars: every deny that matches
3  grants: an allow or ask rule that covers the whole call; without one, `default_action`
4  what the terms of the grant forbid: too many bytes, a quota that is used up, a secret that no rule lends
5  the strictest of all layers holds, with the smallest limits and the narrowest jail
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from capsule.calls import ConcreteCall, Decision, Effect, LayerState, RunState
from capsule.errors import ToolError
from capsule.policy.advice import unmatched_reason
from capsule.policy.counters import MINUTE_MS, within_a_minute
from capsule.policy.edits import smallest_edit
from capsule.policy.grants import NO_TERMS, Terms, grant_of, limit_rules, meet, terms_of
from capsule.policy.layer import Layer
from capsule.policy.matching import Matches, bare_failures, code_of
from capsule.policy.rules import Action, Rule
from capsule.policy.secrets import secret_handles

_STRICTNESS = {Effect.ALLOW: 0, Effect.ASK: 1, Effect.DENY: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What one layer says of a call."""

    effect: Effect
    reason: str
    code: int | None = None
    rule: str | None = None
    suggestion: str | None = None
    terms: Terms = NO_TERMS
    counted: tuple[str, ...] = ()
    retry_after_ms: int | None = None


def decide(layers: Sequence[Layer], call: ConcreteCall, state: RunState) -> Decision:
    """The whole answer but for advice; `state` has one `LayerState` for each layer."""
    return _answer(layers, lambda: call, state, advise=False)[1]


def _advised(layers: Sequence[Layer], call: ConcreteCall, decision: Decision) -> Decision:
    """With the smallest edit that would allow the call, where the decision does not say what to do already."""
    if decision.effect is not Effect.DENY or decision.suggestion is not None or call.marker:
        return decision
    for layer in layers:
        edit = smallest_edit(layer, call)
        if edit is not None:
            where = f" (in the policy {layer.rules.name})" if len(layers) > 1 else ""
            return replace(decision, suggestion=edit + where)
    return decision


def resolve_and_decide(
    layers: Sequence[Layer], resolve: Callable[[], ConcreteCall], state: RunState
) -> tuple[ConcreteCall | None, Decision]:
    """The answer with the edit that would allow; ToolError: the call is not valid, and reaches no policy."""
    return _answer(layers, resolve, state, advise=True)


def _answer(
    layers: Sequence[Layer], resolve: Callable[[], ConcreteCall], state: RunState, *, advise: bool
) -> tuple[ConcreteCall | None, Decision]:
    """Whatever goes wrong while the world is looked at, or inside a policy, denies."""
    concrete: ConcreteCall | None = None
    try:
        concrete = resolve()
        decision = _decide(layers, concrete, state)
        return concrete, _advised(layers, concrete, decision) if advise else decision
    except ToolError:
        raise
    except Exception as error:  # noqa: BLE001 - an exception anywhere inside is a deny
        reason = f"the call could not be decided: {type(error).__name__}: {error}"
        resolved = layers[0].world.resolved if layers else "disk"
        return concrete, Decision(effect=Effect.DENY, code=1000, reason=reason, resolved=resolved)


def _decide(layers: Sequence[Layer], call: ConcreteCall, state: RunState) -> Decision:
    if not layers:
        return _denied(call, Opinion(effect=Effect.DENY, code=1000, reason="no policy is in force"))
    if call.marker:
        return _denied(call, _MARKER)
    opinions = [
        judge(layer, call, counters, now_ms=state.now_ms, tainted=state.tainted)
        for layer, counters in zip(layers, state.layers, strict=True)
    ]
    ruling = min(opinions, key=_by_strictness)
    if ruling.effect is Effect.DENY:
        denials = [opinion for opinion in opinions if opinion.effect is Effect.DENY]
        return _denied(call, replace(ruling, retry_after_ms=_retry(denials)))
    terms = meet([opinion.terms for opinion in opinions]) if len(opinions) > 1 else ruling.terms
    grant = grant_of(terms, call, layers[0].places)
    return Decision(
        effect=ruling.effect,
        resolved=call.resolved,
        reason=ruling.reason,
        rule=ruling.rule,
        flags=(*call.flags, *(("runs_later",) if any(file.runs_later for file in grant.files) else ())),
        grant=grant,
        counted=tuple((number, rule) for number, opinion in enumerate(opinions) for rule in opinion.counted),
        limit_rules=limit_rules(terms),
    )


_MARKER = Opinion(
    effect=Effect.DENY,
    code=1009,
    reason="an argument holds a redaction marker: the value it stands for was masked and cannot be used again",
    suggestion="pass the original value, or let a rule read it with `redact: off`",
)


def _retry(denials: Sequence[Opinion]) -> int | None:
    """Waiting helps where nothing but rates stands in the way, until the last of them lets the call through."""
    waits = [denial.retry_after_ms for denial in denials]
    return None if None in waits else max(wait for wait in waits if wait is not None)


def _by_strictness(opinion: Opinion) -> tuple[int, int, bool, str]:
    return (-_STRICTNESS[opinion.effect], opinion.code or 0, opinion.rule is None, opinion.rule or "")


def _denied(call: ConcreteCall, opinion: Opinion) -> Decision:
    return Decision(
        effect=Effect.DENY,
        code=opinion.code,
        rule=opinion.rule,
        reason=opinion.reason,
        suggestion=opinion.suggestion,
        resolved=call.resolved,
        flags=call.flags,
        retry_after_ms=opinion.retry_after_ms,
    )


def judge(layer: Layer, call: ConcreteCall, counters: LayerState, *, now_ms: int, tainted: bool) -> Opinion:
    """One layer alone, with its own default and counters."""
    broken = _broken(layer, call)
    if broken is not None:
        return broken
    book = layer.book(call.definition, call.source, tainted=tainted)
    barring = book.bars.match(call).rules
    denying = [rule for rule in barring if rule.action is Action.DENY]
    if denying:
        return _deny(min(denying, key=lambda rule: rule.id))
    granting = book.grants.match(call)
    if not granting.rules:
        unmatched = _unmatched(layer, call, granting)
        if unmatched is not None:
            return unmatched
    grants = {rule.id for rule in granting.rules}
    limiting = [rule for rule in barring if rule.id not in grants]
    matched = (*granting.rules, *limiting)
    terms = terms_of(granting.rules, limiting, call, layer.places)
    objections = _objections(layer, call, matched, terms, counters, now_ms)
    if objections:
        return _foremost(objections)
    effect, rule, reason = _effect([rule for rule in matched if rule.action is Action.ASK], granting.rules)
    counted = tuple(rule.id for rule in matched if rule.limits.counted)
    return Opinion(effect=effect, rule=rule, reason=reason, terms=terms, counted=counted)


def _broken(layer: Layer, call: ConcreteCall) -> Opinion | None:
    """A value that names nothing anywhere."""
    for code, values in ((1001, call.paths), (1002, call.urls), (1003, call.commands)):
        if any(value.problem is not None for value in values):
            return Opinion(effect=Effect.DENY, code=code, reason=unmatched_reason(call, code, layer))
    return None


def _effect(asking: Sequence[Rule], granting: Sequence[Rule]) -> tuple[Effect, str | None, str]:
    if not granting:
        return Effect.ASK, None, "no rule matches, and the default is to ask"
    if asking:
        rule = min(rule.id for rule in asking)
        return Effect.ASK, rule, f"rule {rule} asks"
    rule = min(rule.id for rule in granting)
    return Effect.ALLOW, rule, f"rule {rule} allows it"


def deny_code(rule: Rule) -> int:
    """1008 where taint is what the rule is about, else the smallest code of what it names."""
    if rule.when_tainted:
        return 1008
    return min((code_of(constraint) for _, constraint in rule.bars), default=1000)


def _deny(rule: Rule) -> Opinion:
    because = f": {rule.why}" if rule.why else ""
    return Opinion(
        effect=Effect.DENY,
        code=deny_code(rule),
        rule=rule.id,
        reason=f"rule {rule.id} denies it{because}",
        suggestion=f"no other rule can lift a deny; narrow {rule.id} if this call is meant",
    )


def _unmatched(layer: Layer, call: ConcreteCall, granting: Matches) -> Opinion | None:
    """No rule grants the call: a deny, or with `default_action: ask` and nothing in the way a question."""
    if layer.rules.asks_by_default:
        failed = bare_failures(call, layer.places)
    else:
        failed = {1000 if granting.failed is None else granting.failed}
    if not failed:
        return None
    code = min(failed)
    return Opinion(
        effect=Effect.DENY,
        code=code,
        reason=unmatched_reason(call, code, layer),
    )


def _objections(
    layer: Layer,
    call: ConcreteCall,
    matched: Iterable[Rule],
    terms: Terms,
    counters: LayerState,
    now_ms: int,
) -> list[Opinion]:
    found = [_over_size(call, terms), _calls_used_up(layer, counters), _unlent_secret(call, terms)]
    found += [_used_up(rule, counters, now_ms) for rule in matched if rule.limits.counted]
    return [objection for objection in found if objection is not None]


def _foremost(objections: Sequence[Opinion]) -> Opinion:
    named, wait = min(objections, key=_by_strictness), _retry(objections)
    if wait is None:
        return replace(named, retry_after_ms=None)
    return replace(named, retry_after_ms=wait, suggestion=f"try again in {wait} ms, or {named.suggestion}")


def _calls_used_up(layer: Layer, counters: LayerState) -> Opinion | None:
    limit = layer.rules.limits.calls
    if limit is None or counters.calls < limit:
        return None
    return Opinion(
        effect=Effect.DENY,
        code=1006,
        reason=f"the policy lets {limit} calls through in one run (limits.calls), and they are used up",
        suggestion="raise limits.calls, or start another run",
    )


def _used_up(rule: Rule, counters: LayerState, now_ms: int) -> Opinion | None:
    count = counters.rules.get(rule.id)
    limits = rule.limits
    total = count.total if count else 0
    if limits.max_calls is not None and total >= limits.max_calls:
        return Opinion(
            effect=Effect.DENY,
            code=1006,
            rule=rule.id,
            reason=f"rule {rule.id} lets {limits.max_calls} calls through in one run, and they are used up",
            suggestion=f"raise max_calls of {rule.id}, or start another run",
        )
    if count is None or limits.per_minute is None:
        return None
    recent = within_a_minute(count, now_ms)
    if len(recent) < limits.per_minute:
        return None
    wait = recent[-limits.per_minute] + MINUTE_MS - now_ms
    return Opinion(
        effect=Effect.DENY,
        code=1006,
        rule=rule.id,
        reason=f"rule {rule.id} lets {limits.per_minute} calls a minute through, and they are used up",
        suggestion=f"raise rate_limit of {rule.id}",
        retry_after_ms=wait,
    )


def _over_size(call: ConcreteCall, terms: Terms) -> Opinion | None:
    if call.payload_bytes is None or terms.max_bytes is None or call.payload_bytes <= terms.max_bytes[0]:
        return None
    limit, rule = terms.max_bytes
    return Opinion(
        effect=Effect.DENY,
        code=1005,
        rule=rule or None,
        reason=f"{call.payload_bytes} bytes are more than the {limit} that {rule or 'the tool'} lets one call write",
        suggestion=f"raise max_bytes of {rule}" if rule else "name a larger max_bytes in the rule that allows it",
    )


def _unlent_secret(call: ConcreteCall, terms: Terms) -> Opinion | None:
    for handle in secret_handles(call):
        if not handle.is_lent(terms.secrets):
            return Opinion(
                effect=Effect.DENY,
                code=1009,
                reason=f"secret:{handle.name} is not resolved: {handle.problem}",
                suggestion="a rule lends it with `secrets: [NAME]` as a whole header that it names, env entry or stdin",
            )
    return None
