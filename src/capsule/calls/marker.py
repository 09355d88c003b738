"""The marker that stands where something was masked, and how to know one again in an argument."""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

import re2

from capsule.calls.texts import strings
from capsule.canon import Json

MARKER = "⟦redacted:[a-z0-9_.-]{1,64}:[0-9]{1,9}⟧"
_OPENING = "⟦redacted:"
_LONGEST = 128  # bytes; a kind is a word, a number has a few digits
_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")


def marker(kind: str, number: int) -> str:
    return f"{_OPENING}{kind}:{number}⟧"


def has_marker(value: Json) -> bool:
    """Whether a marker stands anywhere in a value, plain or as JSON, a URL or base64 would write it."""
    return _marker_pattern().search("\n".join(strings(value)).encode(errors="surrogatepass")) is not None


def joins_to_marker(before: bytes, after: bytes) -> bool:
    """Whether a marker that neither holds stands where they meet."""
    tail, head = before[-_LONGEST:], after[:_LONGEST]
    found = _marker_pattern().finditer(tail + head)
    return any(match.start() < len(tail) < match.end() for match in found)


@cache
def _marker_pattern() -> Any:
    forms = "|".join(re2.escape(form) for encoding in _ENCODINGS for form in base64_forms(_OPENING.encode(encoding)))
    return re2.compile(rf"(?i:{MARKER}|\\u27e6redacted:|%E2%9F%A6redacted(?::|%3A))|{forms}")


def base64_forms(data: bytes) -> list[str]:
    """What base64 of anything that holds the data must contain, whatever stands before and behind it."""
    forms: list[str] = []
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + data).decode()
        sure = encoded[(0, 2, 3)[offset] : (offset + len(data)) * 8 // 6]
        forms += {sure, sure.replace("+", "-").replace("/", "_")}
    return sorted(forms)
