"""JSON as RFC 8259 has it, without repeated keys, numbers that do not fit, and halves of surrogate pairs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

from capsule.canon import MAX_INTEGER, Json
from capsule.documents.tokens import MAX_DEPTH, Refused, Token, Unreadable, build, checked_text, too_deep
from capsule.documents.wording import shown

# A string that never ends runs to the end of the text, so that no scan looks at anything twice.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
_BRACKET = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_TOKEN = re.compile(rf"{_STRING}|[\[\]{{}}]|[^\s\[\]{{}}:,\"]+", re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_WORD = re.compile(r'[^\s,:\[\]{}"]{1,60}|.', re.DOTALL)
_MOST_DIGITS = 17  # of an integer that may fit, with its sign


class _Suspect(Exception):
    """Something to be refused whose place the interpreter's parser does not know."""


def json_value(text: str) -> Json:
    _check_depth(text)
    try:
        found: Json = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _explained(text, error) from error
    except _Suspect:
        return build(json_tokens(text))
    return build(json_tokens(text)) if _SURROGATE.search(text) else found


def _check_depth(text: str) -> None:
    depth = 0
    for match in _BRACKET.finditer(text):
        sign = match.group()
        if sign in ("[", "{"):
            depth += 1
            if depth > MAX_DEPTH:
                raise too_deep(match.start())
        elif sign in ("]", "}"):
            depth -= 1


def _members(pairs: list[tuple[str, Json]]) -> Json:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _Suspect
    return members


def _integer(word: str) -> int:
    if len(word) > _MOST_DIGITS or not -MAX_INTEGER <= int(word) <= MAX_INTEGER:
        raise _Suspect
    return int(word)


def _float(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise _Suspect
    return number


def _constant(_word: str) -> Json:
    raise _Suspect


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_integer, parse_float=_float, parse_constant=_constant
)


def json_tokens(text: str) -> Iterator[Token]:
    """Of a text that is known to be JSON up to the place that the reader is after."""
    for match in _TOKEN.finditer(text):
        word = match.group()
        offset = match.start()
        if word == "{":
            yield "mapping", None, offset
        elif word == "[":
            yield "list", None, offset
        elif word in ("}", "]"):
            yield "end", None, offset
        else:
            yield "scalar", _scalar(word, offset), offset


def _scalar(word: str, offset: int) -> Json:
    try:
        found: Json = _DECODER.decode(word)
    except _Suspect:
        allowed = "integers up to ±(2^53-1)" if word.lstrip("-").isdecimal() else "finite numbers"
        raise Refused(f"found {word:.60}, allowed: {allowed}", offset, hint="give it as text") from None
    return checked_text(found, offset) if isinstance(found, str) else found


def _explained(text: str, error: json.JSONDecodeError) -> Unreadable:
    message = f"{error.msg[0].lower()}{error.msg[1:]}"
    if error.msg.startswith(("Expecting", "Extra")):
        word = _WORD.match(text, error.pos)
        message += f", found {shown(word.group()) if word else 'the end'}"
    return Unreadable(
        f"not valid JSON: {message.removesuffix(' at').removesuffix(' starting').removesuffix(': ')}", error.pos
    )
