"""Allow, ask or deny: pure, and an exception anywhere inside is a deny.

1  a redaction marker, or a limit of the whole run that is used up, denies before any rule is asked
2  bars: every deny that matches, and every matching rule whose quota is used up, denies
3  grants: an allow or ask rule that covers the whole call; none is `default_action`
4  the strictest of all layers holds, with the smallest limits and the narrowest jail
5  what the terms themselves forbid: too many bytes, a secret that no rule lends
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from capsule.calls import ConcreteCall, Decision, Effect, LayerState, RunState
from capsule.canon import Json
from capsule.policy.advice import advice, unmatched_reason
from capsule.policy.counters import MINUTE_MS, within_a_minute
from capsule.policy.grants import NO_TERMS, Terms, grant_of, limit_rules, limits_of, meet, terms_of
from capsule.policy.layer import Layer
from capsule.policy.matching import Matches, code_of
from capsule.policy.rules import Action, Rule

_STRICTNESS = {Effect.ALLOW: 0, Effect.ASK: 1, Effect.DENY: 2}

_HANDLE = "secret:"  # how a call names a secret without holding it
_SECRET_PLACES = frozenset({"headers", "env", "stdin"})


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
    """The whole answer; `state` has one `LayerState` for each layer."""
    try:
        return _decide(layers, call, state)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong inside a policy must deny
        reason = f"the policy could not be evaluated: {type(error).__name__}: {error}"
        return Decision(effect=Effect.DENY, code=1000, reason=reason, resolved=call.resolved)


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
        return _denied(call, ruling)
    terms = meet([opinion.terms for opinion in opinions]) if len(opinions) > 1 else ruling.terms
    objection = _over_size(call, terms) or _unlent_secret(call, terms)
    if objection is not None:
        return _denied(call, objection)
    return Decision(
        effect=ruling.effect,
        resolved=call.resolved,
        reason=ruling.reason,
        rule=ruling.rule,
        flags=call.flags,
        grant=grant_of(terms, call, layers[0].places),
        counted=tuple((number, rule) for number, opinion in enumerate(opinions) for rule in opinion.counted),
        limit_rules=limit_rules(terms),
    )


_MARKER = Opinion(
    effect=Effect.DENY,
    code=1009,
    reason="an argument holds a redaction marker: the value it stands for was masked and cannot be used again",
    suggestion="pass the original value, or let a rule read it with `redact: off`",
)


def _by_strictness(opinion: Opinion) -> tuple[int, int, str]:
    return (-_STRICTNESS[opinion.effect], opinion.code or 0, opinion.rule or "")


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
    book = layer.book(call.definition, call.source, tainted=tainted)
    granting = book.grants.match(call)
    barring = book.bars.match(call).rules
    matched = {rule.id: rule for rule in (*granting.rules, *barring) if rule.action is not Action.DENY}
    counted = [rule for rule in matched.values() if rule.limits.counted]
    barred = _barred(layer, barring, counted, counters, now_ms)
    if barred is not None:
        return barred
    if not granting.rules and (book.default is None or not book.default.match(call).rules):
        return _unmatched(layer, call, granting)
    effect, rule, reason = _effect([rule for rule in matched.values() if rule.action is Action.ASK], granting.rules)
    grants = {rule.id for rule in granting.rules}
    limiting = [rule for rule in matched.values() if rule.id not in grants]
    return Opinion(
        effect=effect,
        rule=rule,
        reason=reason,
        terms=terms_of(granting.rules, limiting, call),
        counted=tuple(rule.id for rule in counted),
    )


def _effect(asking: Sequence[Rule], granting: Sequence[Rule]) -> tuple[Effect, str | None, str]:
    if not granting:
        return Effect.ASK, None, "no rule matches, and the default is to ask"
    if asking:
        rule = min(rule.id for rule in asking)
        return Effect.ASK, rule, f"rule {rule} asks"
    rule = min(rule.id for rule in granting)
    return Effect.ALLOW, rule, f"rule {rule} allows it"


def _barred(
    layer: Layer, barring: Iterable[Rule], counted: Iterable[Rule], counters: LayerState, now_ms: int
) -> Opinion | None:
    """A deny that matches or a quota that is used up; of several the smallest id is named."""
    objections = [_deny(rule) for rule in barring if rule.action is Action.DENY]
    objections += [found for rule in counted if (found := _used_up(rule, counters, now_ms)) is not None]
    if objections:
        return min(objections, key=lambda objection: objection.rule or "")
    limit = layer.rules.limits.calls
    if limit is not None and counters.calls >= limit:
        return Opinion(
            effect=Effect.DENY,
            code=1006,
            reason=f"the policy lets {limit} calls through in one run (limits.calls), and they are used up",
            suggestion="raise limits.calls, or start another run",
        )
    return None


def deny_code(rule: Rule) -> int:
    """The smallest code of what the rule names; 1008 where only taint makes it deny."""
    codes = [code_of(constraint) for _, constraint in rule.bars]
    return min(codes, default=1008 if rule.when_tainted else 1000)


def _deny(rule: Rule) -> Opinion:
    because = f": {rule.why}" if rule.why else ""
    return Opinion(
        effect=Effect.DENY,
        code=deny_code(rule),
        rule=rule.id,
        reason=f"rule {rule.id} denies it{because}",
        suggestion=f"no other rule can lift a deny; narrow {rule.id} if this call is meant",
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
        suggestion=f"try again in {wait} ms, or raise rate_limit of {rule.id}",
        retry_after_ms=wait,
    )


def _unmatched(layer: Layer, call: ConcreteCall, matches: Matches) -> Opinion:
    code = matches.failed if matches.failed is not None else 1000
    return Opinion(
        effect=Effect.DENY,
        code=code,
        reason=unmatched_reason(call, code, layer.places),
        suggestion=advice(layer, call, code),
    )


def _over_size(call: ConcreteCall, terms: Terms) -> Opinion | None:
    limit = limits_of(terms, call).max_bytes
    if call.payload_bytes is None or limit is None or call.payload_bytes <= limit:
        return None
    rule = terms.max_bytes[1] if terms.max_bytes else None
    return Opinion(
        effect=Effect.DENY,
        code=1005,
        rule=rule,
        reason=f"{call.payload_bytes} bytes are more than the {limit} that {rule or 'the tool'} lets one call write",
        suggestion=f"raise max_bytes of {rule}" if rule else "name a larger max_bytes in the rule that allows it",
    )


def _unlent_secret(call: ConcreteCall, terms: Terms) -> Opinion | None:
    for argument, value in call.args.items():
        for name, in_place in _handles(argument, value):
            if not in_place or name not in terms.secrets:
                where = "no matching rule lends it" if in_place else f"a secret cannot stand in {argument}"
                return Opinion(
                    effect=Effect.DENY,
                    code=1009,
                    reason=f"secret:{name} is not resolved: {where}",
                    suggestion=f"name it in the rule's `secrets: [{name}]`; it can be a whole header, env entry or stdin",
                )
    return None


def _handles(argument: str, value: Json) -> Iterable[tuple[str, bool]]:
    """Each secret handle among an argument's strings, and whether it stands where one may be resolved."""
    if isinstance(value, str):
        if value.startswith(_HANDLE):
            yield value.removeprefix(_HANDLE), argument in _SECRET_PLACES
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _handles(argument, inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _handles(argument, inner)
