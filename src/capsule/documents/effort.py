"""A bound on what checking takes, where a short schema can ask for much."""

from __future__ import annotations

from typing import Any

_MAX_EFFORT = 2_000_000  # words of an enum to compare, which is a second; the longest policy takes half of it
_INSTRUCTION_EFFORT = 2  # to compile one for RE2


class Effort:
    """What is left of it: words and branches times values, patterns.

    One for each check, or one for all the checks of a document.
    """

    def __init__(self, most: int = _MAX_EFFORT) -> None:
        self._left = most
        self._patterns: set[str] = set()

    def take(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise TooMuch

    def take_pattern(self, pattern: str, compiled: Any) -> None:
        """A program of RE2 takes a moment and some bytes for each of its instructions, once."""
        if pattern not in self._patterns:
            self._patterns.add(pattern)
            self.take(_INSTRUCTION_EFFORT * compiled.programsize)


class TooMuch(ValueError):
    """An effort is used up."""

    def __init__(self) -> None:
        super().__init__(
            "this takes too long to check: it has too many values for its words and branches, or huge patterns"
        )
