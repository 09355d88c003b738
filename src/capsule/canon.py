"""One canonical byte form (RFC 8785) and one digest for every value that is stored, hashed or compared.

>>> from capsule.canon import canonical, digest_of
>>> canonical({"b": [1.0, True], "a": "é"}).decode()
'{"a":"é","b":[1,true]}'
>>> digest_of({"a": 1}) == digest_of({"a": 1.0})
True
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring
from typing import TypeAlias

__all__ = ["MAX_DEPTH", "MAX_INTEGER", "Json", "NotCanonical", "canonical", "digest", "digest_of"]

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None

MAX_INTEGER = 2**53 - 1  # the largest integer that every JSON reader keeps exactly (RFC 8785 §3.2.2.3)
MAX_DEPTH = 200  # far above any document (64) with its record around it, far below the interpreter's own limit

_PART_SHOWN = 60  # characters of a key in a message

_FIRST_RARE = "\ud800"  # below it, order by code point and by UTF-16 unit (RFC 8785 §3.2.3) are the same

# In this range Python writes a float that is not whole as ECMAScript does.
_SAME_FORM_FROM = 1e-4
_SAME_FORM_BELOW = 1e16

_encode: Callable[[object], str] = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


_WORDS = {None: "null", True: "true", False: "false"}

_Container: TypeAlias = dict[str, object] | list[object] | tuple[object, ...]


class NotCanonical(ValueError):
    """The value has no canonical form; the message begins with the path to the part that has none."""

    def __init__(self, problem: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path

    def __str__(self) -> str:
        return f"${''.join(f'[{part!a:.{_PART_SHOWN}}]' for part in self.path)}: {self.problem}"

    def beneath(self, part: str | int) -> NotCanonical:
        return NotCanonical(self.problem, (part, *self.path))


def canonical(value: Json) -> bytes:
    """RFC 8785 bytes of a value; any Mapping is an object, any Sequence but bytes an array."""
    if _is_plain((value,), MAX_DEPTH):
        try:
            return _encode(value).encode()
        except UnicodeEncodeError:
            pass  # half of a surrogate pair: the careful way says where
    return _careful(value, MAX_DEPTH).encode()


def digest(data: bytes) -> str:
    """Lower-case hexadecimal SHA-256."""
    return hashlib.sha256(data).hexdigest()


def digest_of(value: Json) -> str:
    return digest(canonical(value))


def _is_plain(container: _Container, depth: int) -> bool:
    """Whether the interpreter's C encoder writes it canonically; this loop is half of what canonical() costs."""
    values: Iterable[object] = container
    if type(container) is dict:
        if not _sorts_as_it_is(container):
            return False
        values = container.values()
    for value in values:
        kind = type(value)
        if kind is str or value is None or kind is bool:
            continue
        if kind is int:
            if not -MAX_INTEGER <= value <= MAX_INTEGER:  # type: ignore[operator]
                return False
        elif kind is dict or kind is list or kind is tuple:
            if depth == 0 or not _is_plain(value, depth - 1):  # type: ignore[arg-type]
                return False
        elif kind is not float or not _has_same_form(value):  # type: ignore[arg-type]
            return False
    return True


def _sorts_as_it_is(keys: Iterable[str]) -> bool:
    try:
        joined = "".join(keys)
    except TypeError:
        return False
    return joined.isascii() or max(joined) < _FIRST_RARE


def _has_same_form(value: float) -> bool:
    return _SAME_FORM_FROM <= abs(value) < _SAME_FORM_BELOW and not value.is_integer()


def _careful(value: object, depth: int) -> str:
    if isinstance(value, str):
        return encode_basestring(_encodable(value))
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return _object(value, depth - 1)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return _array(value, depth - 1)
    raise NotCanonical(f"{type(value).__name__} is not a JSON value")


def _array(items: Sequence[object], depth: int) -> str:
    _limit(depth)
    written: list[str] = []
    try:
        for item in items:
            written.append(_careful(item, depth))  # noqa: PERF401 - its length tells the place of a problem
    except NotCanonical as problem:
        raise problem.beneath(len(written)) from None
    return f"[{','.join(written)}]"


def _object(members: Mapping[object, object], depth: int) -> str:
    _limit(depth)
    keys = [_key(key) for key in members]
    if not all(map(str.isascii, keys)):
        keys.sort(key=lambda key: key.encode("utf-16-be"))
    else:
        keys.sort()
    written: list[str] = []
    for key in keys:
        try:
            written.append(f"{encode_basestring(key)}:{_careful(members[key], depth)}")
        except NotCanonical as problem:
            raise problem.beneath(key) from None
    return f"{{{','.join(written)}}}"


def _limit(depth: int) -> None:
    if depth < 0:
        raise NotCanonical(f"nested deeper than {MAX_DEPTH} levels")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise NotCanonical(f"a key must be text, found {type(key).__name__}")
    return _encodable(key)


def _encodable(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise NotCanonical(f"half of a surrogate pair (U+{ord(text[error.start]):04X}) is not text") from None
    return text


def _integer(value: int) -> str:
    if not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise NotCanonical("an integer beyond ±(2^53-1) is not kept exactly; give it as text")
    return int.__repr__(value)


def _number(value: float) -> str:
    """ECMAScript's Number::toString, from the digits of Python's shortest form, which are the same."""
    if _has_same_form(value):
        return float.__repr__(value)
    if not math.isfinite(value):
        raise NotCanonical(f"{float.__repr__(value)} has no JSON form")
    if value.is_integer() and abs(value) <= MAX_INTEGER:
        return int.__repr__(int(value))
    mantissa, _, exponent = float.__repr__(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)  # the decimal point stands after this many digits
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    return ("-" if value < 0 else "") + _placed(digits.rstrip("0"), point)


def _placed(digits: str, point: int) -> str:
    """For numbers that are whole or tiny; the digits of all others stand as Python writes them."""
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits))
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    return f"{digits[0]}{'.' if len(digits) > 1 else ''}{digits[1:]}e{point - 1:+d}"
