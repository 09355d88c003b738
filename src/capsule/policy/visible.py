"""What `fs.list` may show: each entry is decided like a listing of its own, without counters and without records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from capsule.calls import Components, ConcreteCall, Effect, RunState, World
from capsule.policy.decide import decide
from capsule.policy.layer import Layer


def visible_entries(
    layers: Sequence[Layer], call: ConcreteCall, state: RunState, world: World
) -> Callable[[Components], bool]:
    """A predicate over real paths below the listed directory.

    An entry goes by its real name and by the name that the listing was asked for with, as a call of its own would. One
    that would have to be asked about is shown only where the listing was.
    """
    uncounted = replace(state, layers=tuple(replace(layer, calls=0, rules={}) for layer in state.layers))
    enough = decide(layers, call, uncounted).effect
    [listed] = call.paths

    def visible(entry: Components) -> bool:
        beneath = entry[len(listed.real) :]
        path = replace(listed, real=entry, written=(*listed.written, *beneath), folded=world.folds(entry))
        effect = decide(layers, replace(call, paths=(path,)), uncounted).effect
        return effect is Effect.ALLOW or (effect is Effect.ASK and enough is Effect.ASK)

    return visible
