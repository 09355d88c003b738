"""Calls decided one after the other without a run, as if each that is not denied were let through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from capsule.calls import BUILTIN, Decision, Effect, LayerState, RunState, ToolCall, ToolDefinition, World
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

    def decide(self, call: ToolCall) -> Decision:
        """ToolError 2001 or 2002 for what never reaches a policy."""
        definition = definition_of(call.tool, self._definitions)
        world, search = self._world, self._search
        _, decision = resolve_and_decide(
            self._layers, lambda: resolve(call, definition, world, search=search), self._state
        )
        if decision.effect is not Effect.DENY:
            self._state = advance(self._state, decision, now_ms=self._state.now_ms)
        return decision
