"""Calls decided one after the other without a run, as if each that is not denied were let through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from capsule.calls import BUILTIN, Decision, Effect, LayerState, RunState, Source, ToolCall, ToolDefinition, World
from capsule.policy.counters import advance
from capsule.policy.decide import resolve_and_decide
from capsule.policy.layer import Layer, search_path
from capsule.policy.resolve import definition_of, resolve


class InOrder:
    def __init__(
        self, layers: Sequence[Layer], world: World, definitions: Mapping[str, ToolDefinition] = BUILTIN
    ) -> None:
        self._layers = layers
        self._world = world
        self._definitions = definitions
        self._search = search_path(layers)
        self._state = RunState(layers=tuple(LayerState() for _ in layers))

    @property
    def now_ms(self) -> int:
        """How long plans' calls have waited for their rates."""
        return self._state.now_ms

    def decide(self, call: ToolCall) -> Decision:
        """ToolError 2001 or 2002 for what never reaches a policy. A plan's call over a rate waits, as in a run."""
        decision = self._decided(call)
        while decision.retry_after_ms and call.source is Source.PLAN:
            self._state = replace(self._state, now_ms=self._state.now_ms + decision.retry_after_ms)
            decision = self._decided(call)
        if decision.effect is not Effect.DENY:
            self._state = advance(self._state, decision, now_ms=self._state.now_ms)
        return decision

    def _decided(self, call: ToolCall) -> Decision:
        definition = definition_of(call.tool, self._definitions)
        return resolve_and_decide(
            self._layers, lambda: resolve(call, definition, self._world, search=self._search), self._state
        )[1]
