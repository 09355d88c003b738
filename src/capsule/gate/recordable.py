"""Any value a caller or a tool hands over as plain JSON, read once, so that nothing changes under a decision or
escapes the record.

A number that does not fit becomes text; so does whatever JSON has no word for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from capsule.canon import MAX_INTEGER, Json

MAX_DEPTH = 100  # documents stop at 64; an argument nested deeper than this is nobody's data
MAX_VALUES = 250_000  # a value that holds itself twice has no end; the longest listing has a sixth of this
_CUT = "…"
_LONG = 4096  # bits; in decimal the interpreter refuses very long ones


@dataclass(slots=True)
class Copier:
    """Copies a value; `misfit` says what in it was the first that JSON has no word for."""

    misfit: str | None = None
    left: int = MAX_VALUES

    def copy(self, value: object, depth: int = MAX_DEPTH) -> Json:
        self.left -= 1
        if self.left < 0:
            self._note(f"it holds more than {MAX_VALUES} values")
            return _CUT
        if isinstance(value, Mapping | list | tuple):
            if not depth:
                self._note(f"it is nested deeper than {MAX_DEPTH}")
                self.left = 0  # what is this deep most often holds itself
                return _CUT
            return self._branch(value, depth - 1)
        return self._leaf(value)

    def _branch(self, value: Mapping[object, object] | Sequence[object], depth: int) -> Json:
        """Never more of it than may be held: a mapping of foreign make may have no end."""
        bound = max(self.left, 0) + 1
        if not isinstance(value, Mapping):
            return [self.copy(inner, depth) for inner in islice(value, bound)]
        return {self._name(name): self.copy(inner, depth) for name, inner in islice(value.items(), bound)}

    def _name(self, name: object) -> str:
        if not isinstance(name, str):
            kind = self._type_name(name)
            self._note(f"a key is no text but {kind}")
            return f"<{kind}>"
        return self._text(name)

    def _leaf(self, value: object) -> Json:
        match value:
            case None | bool():
                return value
            case str():
                return self._text(value)
            case int() | float():
                return self._number(value)
            case _:
                name = self._type_name(value)
                self._note(f"a value is no JSON but {name}")
                return f"<{name}>"

    def _number(self, value: float) -> Json:
        if isinstance(value, int):
            value = int.__int__(value)
            if abs(value) <= MAX_INTEGER:
                return value
            self._note(f"a number is beyond ±{MAX_INTEGER}")
            return str(value) if value.bit_length() < _LONG else hex(value)
        number = float.__float__(value)  # not what a subclass says of itself
        if math.isfinite(number):
            return number
        self._note(f"{number} is no JSON number")
        return repr(number)

    def _text(self, value: str) -> str:
        plain = str.__str__(value)  # not that of a subclass
        try:
            plain.encode()
        except UnicodeEncodeError:
            self._note("text holds a lone surrogate, which no encoding can write")
            return plain.encode(errors="backslashreplace").decode()
        return plain

    def _type_name(self, value: object) -> str:
        return self._text(type.__dict__["__name__"].__get__(type(value)))  # a metaclass may say anything

    def _note(self, misfit: str) -> None:
        self.misfit = self.misfit or misfit


def recordable(value: object) -> Json:
    return Copier().copy(value)
