"""What became of a run's calls, counted as its records go by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import cast

from capsule.canon import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """`unknown` began and left no outcome; while the run goes on, those are the calls in flight."""

    total: int = 0
    completed: int = 0
    denied: int = 0
    failed: int = 0
    skipped: int = 0
    unknown: int = 0

    def as_json(self) -> dict[str, Json]:
        return asdict(self)


class Tally:
    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._calls = 0
        self._skipped = 0
        self._statuses = {"success": 0, "denied": 0, "error": 0}

    def began_at(self, call: str) -> int:
        """The seq of the intent of a call that has no outcome yet."""
        if call not in self._open:
            raise ValueError(f"call {call!r} has no intent, or has its outcome already")
        return self._open[call]

    def take(self, seq: int, kind: str, body: Mapping[str, Json]) -> None:
        if kind == "intent":
            self._calls += 1
            self._open[str(body["call"])] = seq
        elif kind == "outcome":
            del self._open[str(body["call"])]
            self._statuses[str(body["status"])] += 1
        elif kind == "refused":
            self._calls += 1
            self._statuses[str(body["status"])] += 1
        elif kind == "skipped":
            self._skipped += len(cast("Sequence[Json]", body["steps"]))

    @property
    def counts(self) -> Counts:
        return Counts(
            total=self._calls + self._skipped,
            completed=self._statuses["success"],
            denied=self._statuses["denied"],
            failed=self._statuses["error"],
            skipped=self._skipped,
            unknown=len(self._open),
        )
