"""What a benchmark hands back: rows of one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

HEADINGS = ("row", "measured", "goal", "met", "how")


class Skipped(Exception):
    """The benchmark cannot run here; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure; `goal` is the most it may be, or the least where `at_least` says so; None where there is none."""

    what: str
    measured: float
    goal: float | None
    unit: str = "×"
    at_least: bool = False
    how: str = ""

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.measured >= self.goal if self.at_least else self.measured <= self.goal

    def cells(self) -> tuple[str, ...]:
        goal = "–" if self.goal is None else f"{'≥' if self.at_least else '≤'} {_figure(self.goal)} {self.unit}"
        met = {None: "–", True: "yes", False: "NO"}[self.met]
        return (self.what, f"{_figure(self.measured)} {self.unit}", goal, met, self.how)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A row without a figure."""

    what: str
    why: str

    def cells(self) -> tuple[str, ...]:
        return (self.what, "–", "–", "skipped", self.why)


def table(rows: Iterable[Row | Missing]) -> str:
    return aligned([HEADINGS, *(row.cells() for row in rows)])


def aligned(lines: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    ruled = [lines[0], tuple("─" * width for width in widths), *lines[1:]]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in ruled
    )


def _figure(value: float) -> str:
    """Three digits, which is more than a second run would agree with."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
