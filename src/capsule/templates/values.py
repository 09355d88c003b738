"""What evaluation does to values: their text, their size, and the refusals with code 3003.

Text and order never depend on how a value was built, only on what it is as JSON, so that a run and its replay from the
journal (which keeps `1.0` as `1` and sorts keys) render the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from capsule.canon import MAX_DEPTH, MAX_INTEGER, Json, canonical
from capsule.errors import PlanError

MAX_RESULT = 16 * 1024 * 1024  # bytes of what one value may become: the largest tool output, base64-encoded, fits
_LEAST = 8  # bytes that even `1` counts for, because a list needs a pointer for it


class Undefined:
    """What is not there; only the `default` filter may touch it."""

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what


def refused(message: str, *, hint: str | None = None) -> PlanError:
    return PlanError(3003, message, hint=hint)


def defined(value: Json | Undefined) -> Json:
    if isinstance(value, Undefined):
        raise refused(value.what, hint="give it a value, or add `| default(…)`")
    return value


def kind(value: Json) -> str:
    """A value's type as plans name it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "an object" if isinstance(value, Mapping) else "a list"


def is_list(value: Json) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def too_large() -> PlanError:
    return refused(f"the value would be over {MAX_RESULT // 1024 // 1024} MiB", hint="use a smaller part of it")


def bounded(text: str) -> str:
    if len(text) > MAX_RESULT or utf8_size(text) > MAX_RESULT:
        raise too_large()
    return text


def weigh(value: Json, spent: int = 0) -> int:
    """Add the size of a value to what is spent already; refuse as soon as it is too much or too deep."""
    waiting: list[tuple[Json, int]] = [(value, 0)]
    while waiting:
        value, depth = waiting.pop()
        spent += _LEAST
        if isinstance(value, str):
            spent += utf8_size(value)
        elif isinstance(value, Mapping):
            spent += sum(map(utf8_size, value))
            waiting.extend((child, depth + 1) for child in value.values())
        elif isinstance(value, Sequence):
            waiting.extend((child, depth + 1) for child in value)
        if spent + len(waiting) * _LEAST > MAX_RESULT:
            raise too_large()
        if depth > MAX_DEPTH:
            raise refused(f"the value is nested deeper than {MAX_DEPTH} levels")
    return spent


def number(value: int | float) -> int | float:
    if isinstance(value, int):
        if -MAX_INTEGER <= value <= MAX_INTEGER:
            return value
        raise refused("an integer beyond ±(2^53-1) is not kept exactly", hint="keep it as text")
    if not math.isfinite(value):
        raise refused("the number is too large")
    return value


def as_text(value: Json) -> str:
    """As Jinja2 prints it, but numbers as JSON writes them and the keys of objects in order."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return canonical(value).decode()
    if value is None or isinstance(value, int):
        return str(value)
    weigh(value)
    return bounded(repr(plain(value)))


def joined(parts: Iterable[str], separator: str = "") -> str:
    """`separator.join(parts)` that stops before it is too large."""
    kept: list[str] = []
    spent = 0
    for part in parts:
        spent += utf8_size(part) + (utf8_size(separator) if kept else 0)
        if spent > MAX_RESULT:
            raise too_large()
        kept.append(part)
    return separator.join(kept)


def items(value: Json) -> Sequence[Json]:
    """What iterating over a value gives: characters, items, or keys in order."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return sorted(value)
    if isinstance(value, Sequence):
        return value
    raise refused(f"{kind(value)} has no items", hint="text, a list or an object is needed")


def plain(value: Json) -> Json:
    """The same value as dicts with sorted keys, lists, and integers where a float is one."""
    if isinstance(value, Mapping):
        return {key: plain(value[key]) for key in sorted(value)}
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_INTEGER:
        return int(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value
