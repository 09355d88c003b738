"""Any value a caller or a tool hands over as one that has a canonical form, so that nothing escapes the record.

A number that does not fit becomes text; so does whatever JSON has no word for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from capsule.canon import MAX_INTEGER, Json

MAX_DEPTH = 100  # documents stop at 64; an argument nested deeper than this is nobody's data
_TOO_DEEP = "…"


def recordable(value: object, depth: int = MAX_DEPTH) -> Json:
    if isinstance(value, Mapping | list | tuple):
        return _branch(value, depth - 1) if depth else _TOO_DEEP
    return _leaf(value)


def _branch(value: Mapping[object, object] | Sequence[object], depth: int) -> Json:
    if isinstance(value, Mapping):
        return {text(str(name)): recordable(inner, depth) for name, inner in value.items()}
    return [recordable(inner, depth) for inner in value]


def _leaf(value: object) -> Json:
    match value:
        case None | bool():
            return value
        case str():
            return text(value)
        case int():
            return value if abs(value) <= MAX_INTEGER else _integer_text(value)
        case float():
            return value if math.isfinite(value) else repr(value)
        case _:
            return text(repr(value))


def text(value: str) -> str:
    """Lone surrogates, which no encoding can write, are spelled out."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode(errors="backslashreplace").decode()
    return value


def _integer_text(value: int) -> str:
    """Decimal where the interpreter agrees to write it, else hexadecimal, which has no limit of digits."""
    try:
        return str(value)
    except ValueError:
        return hex(value)
