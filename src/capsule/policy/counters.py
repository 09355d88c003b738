"""How a run's counters go on when a call is let through; pure, so that replay and simulate count alike."""

from __future__ import annotations

from dataclasses import replace

from capsule.calls import Decision, LayerState, RuleCount, RunState

MINUTE_MS = 60_000


def advance(state: RunState, decision: Decision, *, now_ms: int) -> RunState:
    """The state after the call of this decision was let through at `now_ms` on the run's clock."""
    layers = tuple(
        _advanced(layer, [rule for number, rule in decision.counted if number == index], now_ms)
        for index, layer in enumerate(state.layers)
    )
    return replace(state, now_ms=now_ms, layers=layers)


def _advanced(layer: LayerState, counted: list[str], now_ms: int) -> LayerState:
    if not counted:
        return replace(layer, calls=layer.calls + 1)
    rules = dict(layer.rules)
    for rule in counted:
        count = rules.get(rule, RuleCount())
        rules[rule] = RuleCount(total=count.total + 1, recent_ms=(*within_a_minute(count, now_ms), now_ms))
    return replace(layer, calls=layer.calls + 1, rules=rules)


def within_a_minute(count: RuleCount, now_ms: int) -> tuple[int, ...]:
    return tuple(time for time in count.recent_ms if time > now_ms - MINUTE_MS)
