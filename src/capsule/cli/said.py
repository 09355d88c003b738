"""What the command line quotes of inputs, arguments and documents: secrets that a rule knows are masked."""

from __future__ import annotations

from functools import cache

from capsule.canon import Json
from capsule.screen import Screen, printable


def masked(value: Json) -> Json:
    return _screen().screen(value).value


def masked_text(text: str) -> str:
    return str(masked(text))


def said(text: str) -> str:
    """On one line, and with nothing that a terminal would obey."""
    return printable(masked_text(text))


@cache
def _screen() -> Screen:
    return Screen(key=b"")  # what is only shown has no fingerprints that somebody could compare
