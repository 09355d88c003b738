"""Where something stands in a text: found again when it is needed, so that loading keeps no map."""

from __future__ import annotations

from collections.abc import Iterator

from capsule.documents.tokens import Sign, Token, Trail
from capsule.errors import PlanError


def error_at(before: str, name: str, message: str, *, hint: str | None = None, trail: Trail = ()) -> PlanError:
    """What every mistake in a file becomes: 3001, its message beginning with file:line:column.

    `before` is the text up to the mistake.
    """
    line, column = line_of(before), len(before) - max(before.rfind("\n"), before.rfind("\r"))
    message = f"{name}:{line}:{column}: {message}"
    return PlanError(3001, message, hint, {"file": name, "line": line, "column": column, "path": trail})


def line_of(before: str) -> int:
    return before.count("\n") + before.count("\r") - before.count("\r\n") + 1


def locate(tokens: Iterator[Token], trail: Trail, *, key: bool) -> int:
    """The offset of the value at a trail, or of its key; of what is nearest above it when it is not there."""
    sign, _, offset = next(tokens)
    for part in trail:
        member = _member(tokens, sign, part)
        if member is None:
            return offset
        key_offset, sign, offset = member
    return key_offset if key and trail else offset


def _member(tokens: Iterator[Token], sign: Sign, part: str | int) -> tuple[int, Sign, int] | None:
    """The member that a container just opened has at `part`: the offset of its key, its sign and its offset."""
    if sign == "scalar":
        return None
    member: Sign
    for index, (sign_or_key, name, key_offset) in enumerate(tokens):
        if sign_or_key == "end":
            break
        if sign == "list":
            member, offset, name = sign_or_key, key_offset, index
        else:
            member, _, offset = next(tokens)
        if name == part:
            return key_offset, member, offset
        _skip(tokens, member)
    return None


def _skip(tokens: Iterator[Token], sign: Sign) -> None:
    depth = 0 if sign == "scalar" else 1
    while depth:
        sign = next(tokens)[0]
        depth += (sign in ("mapping", "list")) - (sign == "end")
