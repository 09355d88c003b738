"""Text from outside as a terminal, a prompt or a log line may show it."""

from __future__ import annotations

import re

# Letters and marks that show nothing, and so can hide one text in another; what `str.isprintable` calls unprintable
# (controls, bidi and zero-width characters, odd spaces, tags) is caught by itself. Emoji keep their variation selector.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """The same text on one line, with everything a terminal would obey or hide spelled out: `\\x1b`, `\\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if character.isprintable() and not _INVISIBLE.match(character) else _escaped(character)
        for character in text
    )


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
