"""What commands print: one JSON document, or text with colours where a terminal shows them."""

from __future__ import annotations

import json
import os
import sys
from typing import TextIO

from capsule.canon import Json

_COLOURS = {"green": "32", "red": "31", "yellow": "33", "blue": "34", "dim": "2", "bold": "1"}


def print_json(value: Json) -> None:
    """Exactly one document on standard output."""
    sys.stdout.write(json_text(value, indent=2) + "\n")


def json_text(value: Json, *, indent: int | None = None) -> str:
    """JSON that a terminal can be shown: what is not printable is escaped, and the value is the same."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char if char == "\n" or char.isprintable() else json.dumps(char)[1:-1] for char in text)


def print_line(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def is_plain(stream: TextIO) -> bool:
    return not stream.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"


def coloured(text: str, colour: str, *, stream: TextIO | None = None) -> str:
    if is_plain(stream or sys.stdout):
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
