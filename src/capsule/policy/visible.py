"""What `fs.list` may show: each entry is decided like a listing of its own, without counters and without records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from capsule.calls import Components, ConcreteCall, Effect, RunState
from capsule.policy.decide import decide
from capsule.policy.layer import Layer


def visible_entries(layers: Sequence[Layer], call: ConcreteCall, state: RunState) -> Callable[[Components], bool]:
    """A predicate over real paths. An entry that would have to be asked about is shown only where the listing was."""
    uncounted = replace(state, layers=tuple(replace(layer, calls=0, rules={}) for layer in state.layers))
    enough = decide(layers, call, uncounted).effect

    def visible(entry: Components) -> bool:
        paths = tuple(replace(path, real=entry, written=entry) for path in call.paths)
        effect = decide(layers, replace(call, paths=paths), uncounted).effect
        return effect is Effect.ALLOW or (effect is Effect.ASK and enough is Effect.ASK)

    return visible
