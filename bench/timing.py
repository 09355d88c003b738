"""Two or more sides, measured in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

_LEAST_ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to measure: `share` of the full counts and of the full time."""

    share: float

    def count(self, full: int) -> int:
        return max(1, round(full * self.share))

    def seconds(self, full: float) -> float:
        return full * self.share


FULL = Effort(share=1)
TOUCH = Effort(share=0.01)  # shows that everything runs; says nothing about speed


def in_turns(
    sides: Mapping[str, Callable[[], object]], *, seconds: float, of: Callable[[Sequence[float]], float] = median
) -> dict[str, float]:
    """The median seconds of each side, over as many rounds as fit; every second round goes the other way round."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        side()  # caches and lazy imports are not what is measured
    end = perf_counter() + seconds
    order = list(sides)
    rounds = 0
    while rounds < _LEAST_ROUNDS or perf_counter() < end:
        for name in order:
            began = perf_counter()
            sides[name]()
            taken[name].append(perf_counter() - began)
        order.reverse()
        rounds += 1
    return {name: of(times) for name, times in taken.items()}


def shown(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
