"""The one stream that YAML and JSON become, and values built from it.

A token is (sign, value, offset in the text). Nothing here recurses: what is too deep is refused, never a crash.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from capsule.canon import Json
from capsule.documents.wording import shown

MAX_DEPTH = 64  # levels; people write fewer than ten

Sign: TypeAlias = Literal["mapping", "list", "end", "scalar"]
Token: TypeAlias = tuple[Sign, Json, int]
Trail: TypeAlias = tuple[str | int, ...]
_Container: TypeAlias = dict[str, Json] | list[Json]


class Unreadable(Exception):
    """A text that is no document; `offset` is where it stops being one."""

    def __init__(self, message: str, offset: int, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint
        self.trail: Trail = ()


class Refused(Unreadable):
    """Well formed, but nothing that we take; whoever builds the value knows the trail to it."""


class Repeated(Refused):
    """A key that its mapping has already."""

    def __init__(self, key: str, offset: int) -> None:
        super().__init__(f"the key {shown(key)} is given twice", offset, hint="keep one of them")
        self.key = key


def checked_text(text: str, offset: int) -> str:
    """What an escape such as \\ud800 makes is refused, where the reader in use lets it through."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Refused("half of a surrogate pair is not text", offset) from None
    return text


def build(tokens: Iterable[Token]) -> Json:
    root: list[Json] = []
    inside: _Container = root
    key: str | None = None  # read in the mapping we are in, its value not yet
    outside: list[_Container] = []
    try:
        for sign, value, offset in tokens:
            if sign == "end":
                inside = outside.pop()
                continue
            if key is None and type(inside) is dict:
                key = _key(inside, sign, value, offset)
                continue
            if sign == "scalar":
                _put(inside, key, value)
            else:
                if len(outside) == MAX_DEPTH:
                    raise too_deep(offset)
                opened: _Container = {} if sign == "mapping" else []
                _put(inside, key, opened)
                outside.append(inside)
                inside = opened
            key = None
    except Refused as refused:
        refused.trail = _trail([*outside, inside], key)
        raise
    return root[0] if root else None


def _put(inside: _Container, key: str | None, value: Json) -> None:
    if isinstance(inside, list):
        inside.append(value)
    else:
        assert key is not None
        inside[key] = value


def too_deep(offset: int) -> Unreadable:
    return Unreadable(f"nested deeper than {MAX_DEPTH} levels", offset, hint="nothing that Capsule reads needs that")


def _key(inside: dict[str, Json], sign: Sign, value: Json, offset: int) -> str:
    if sign != "scalar":
        hint = 'quote a template: "{{ … }}"' if sign == "mapping" else None
        raise Refused(f"a key must be text, found a {sign}", offset, hint=hint)
    if not isinstance(value, str):
        found = shown(value)
        raise Refused(f"a key must be text, found {found}", offset, hint=f'quote it: "{found}"')
    if value in inside:
        raise Repeated(value, offset)
    return value


def _trail(containers: list[_Container], key: str | None) -> Trail:
    """Where building stood: the newest member of each container, then what comes next in the innermost."""
    parts: list[str | int] = [
        len(container) - 1 if isinstance(container, list) else next(reversed(container))
        for container in containers[1:-1]
    ]
    innermost = containers[-1]
    if len(containers) > 1 and isinstance(innermost, list):
        parts.append(len(innermost))
    elif key is not None:
        parts.append(key)
    return tuple(parts)
