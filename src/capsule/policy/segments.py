"""Patterns after parsing: a tuple of segments, each of which matches one name, or any number of names (`**`).

A name is a path component, a URL path component or a token of a command. Nothing here backtracks more than
quadratically: stars are matched leftmost, which is exact because a chunk between two stars has a fixed width.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TypeAlias, cast

from capsule.calls import Components


class Mark(Enum):
    """What is not a character: stars, separators, and a `~` that nobody escaped."""

    STAR = "*"
    SLASH = "/"
    TILDE = "~"


@dataclass(frozen=True, slots=True, kw_only=True)
class CharSet:
    """One character out of ranges; `folded` also tries the other cases of it."""

    ranges: tuple[tuple[str, str], ...] = ()
    negated: bool = False
    folded: bool = False

    def holds(self, char: str) -> bool:
        if not self.folded:
            return self._inside(char) is not self.negated
        return any(self._inside(variant) for variant in (char, char.upper(), char.lower())) is not self.negated

    def _inside(self, char: str) -> bool:
        return any(low <= char <= high for low, high in self.ranges)


ANY = CharSet(negated=True)

Unit: TypeAlias = str | CharSet | Mark
"""A single character, a set of them, or a mark."""

Chunk: TypeAlias = str | tuple[str | CharSet, ...]
"""What stands between two stars; plain text wherever it can be, because that is found in C."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubleStar:
    """Any number of names, at least `least`: `a/**` names what lies beneath `a`, not `a`."""

    least: int = 0


@dataclass(frozen=True, kw_only=True)
class Wild:
    """A name with wildcards, as the chunks between its stars; one chunk has no star at all."""

    chunks: tuple[Chunk, ...]

    @cached_property
    def prefix(self) -> str:
        """The literal text that every match begins with."""
        return _leading(self.chunks[0])

    @cached_property
    def suffix(self) -> str:
        return _leading(self.chunks[-1][::-1])[::-1]

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """Every literal run: each occurs in every match."""
        return tuple(run for chunk in self.chunks for run in _runs(chunk))

    @cached_property
    def spells_dot(self) -> bool:
        return self.prefix.startswith(".")

    @cached_property
    def begins_wild(self) -> bool:
        return not self.prefix

    @cached_property
    def _width(self) -> int:
        return sum(len(chunk) for chunk in self.chunks)

    def holds(self, name: str) -> bool:
        first, last = self.chunks[0], self.chunks[-1]
        if len(name) < self._width or not _at(first, name, 0):
            return False
        if len(self.chunks) == 1:
            return len(name) == self._width
        end = len(name) - len(last)
        if not _at(last, name, end):
            return False
        position = len(first)
        for chunk in self.chunks[1:-1]:
            found = _find(chunk, name, position, end)
            if found < 0:
                return False
            position = found + len(chunk)
        return True


Segment: TypeAlias = Literal | Wild | DoubleStar
Segments: TypeAlias = tuple[Segment, ...]


def _at(chunk: Chunk, name: str, position: int) -> bool:
    if isinstance(chunk, str):
        return name.startswith(chunk, position)
    return all(
        unit == char if isinstance(unit, str) else unit.holds(char)
        for unit, char in zip(chunk, name[position : position + len(chunk)], strict=True)
    )


def _find(chunk: Chunk, name: str, start: int, end: int) -> int:
    if isinstance(chunk, str):
        return name.find(chunk, start, end)
    return next((place for place in range(start, end - len(chunk) + 1) if _at(chunk, name, place)), -1)


def _leading(chunk: Chunk) -> str:
    if isinstance(chunk, str):
        return chunk
    wild = next(index for index, unit in enumerate(chunk) if isinstance(unit, CharSet))
    return "".join(unit for unit in chunk[:wild] if isinstance(unit, str))


def _runs(chunk: Chunk) -> list[str]:
    if isinstance(chunk, str):
        return [chunk] if chunk else []
    text = "".join(unit if isinstance(unit, str) else "/" for unit in chunk)  # no name holds a slash
    return [run for run in text.split("/") if run]


def segment(units: Sequence[Unit]) -> Segment:
    """One name's worth of units; two or more stars and nothing else are `**`."""
    if all(isinstance(unit, str) for unit in units):
        return Literal(text="".join(cast("Sequence[str]", units)))
    if len(units) > 1 and all(unit is Mark.STAR for unit in units):
        return DoubleStar()
    chunks: list[list[str | CharSet]] = [[]]
    for unit in units:
        if unit is Mark.STAR:
            chunks.append([])
        else:
            chunks[-1].append(unit.value if isinstance(unit, Mark) else unit)
    packed = [_pack(chunk) for chunk in chunks]
    if len(packed) == 1 and isinstance(packed[0], str):
        return Literal(text=packed[0])
    # a run of stars is one star: only its ends matter
    inner = [chunk for chunk in packed[1:-1] if chunk]
    return Wild(chunks=(packed[0], *inner, *packed[-1:])) if len(packed) > 1 else Wild(chunks=(packed[0],))


def _pack(chunk: list[str | CharSet]) -> Chunk:
    if all(isinstance(unit, str) for unit in chunk):
        return "".join(unit for unit in chunk if isinstance(unit, str))
    return tuple(chunk)


_STAR_TEXT = re.compile(r"\\[*?\\]|.", re.DOTALL)


def star_text(text: str, *, question: bool = False) -> Literal | Wild:
    """Text in which `*` is any run of characters, and `?` one where `question` says so.

    A backslash escapes these and itself; before anything else it is a character.
    """
    marks: dict[str, Unit] = {"*": Mark.STAR, "?": ANY} if question else {"*": Mark.STAR}
    units: list[Unit] = []
    for token in _STAR_TEXT.findall(text):
        unit = marks.get(token, token[-1])
        if unit is not Mark.STAR or units[-1:] != [Mark.STAR]:
            units.append(unit)
    part = segment(units)
    assert not isinstance(part, DoubleStar)
    return part


def tidy(segments: Sequence[Segment]) -> Segments:
    """`**/**` is `**`; a last `**` below something needs a name to stand for."""
    kept: list[Segment] = []
    for part in segments:
        if not (kept and isinstance(part, DoubleStar) and isinstance(kept[-1], DoubleStar)):
            kept.append(part)
    if len(kept) > 1 and isinstance(kept[-1], DoubleStar):
        kept[-1] = DoubleStar(least=1)
    return tuple(kept)


def is_literal(segments: Segments) -> bool:
    return all(isinstance(part, Literal) for part in segments)


def literal_depth(segments: Segments) -> int:
    """How many leading segments are literal."""
    return next((index for index, part in enumerate(segments) if not isinstance(part, Literal)), len(segments))


def ends_in_double_star(segments: Segments) -> bool:
    return bool(segments) and isinstance(segments[-1], DoubleStar)


def is_hidden(name: str) -> bool:
    return name.startswith(".")


def holds(segment: Literal | Wild, name: str, *, hidden: bool = True) -> bool:
    """With `hidden=False` a hidden name needs a segment that spells its dot."""
    if isinstance(segment, Literal):
        return segment.text == name
    return (hidden or segment.spells_dot or not is_hidden(name)) and segment.holds(name)


def match(segments: Segments, names: Components, *, hidden: bool = True) -> bool:
    """Whether the names, all of them, are matched; with `hidden=False` as `holds` says, and `**` takes no hidden one.

    Only the last `**` is ever tried again, which is exact for hidden names too: a name that an earlier `**` could
    take in addition is one that the later one could take as well.
    """
    name = part = 0
    star, taken = -1, 0
    while name < len(names):
        current = segments[part] if part < len(segments) else None
        if isinstance(current, DoubleStar):
            star, taken = part, name
            part += 1
        elif current is not None and holds(current, names[name], hidden=hidden):
            name += 1
            part += 1
        elif star < 0 or (not hidden and is_hidden(names[taken])):
            return False
        else:
            taken += 1
            name, part = taken, star + 1
    return all(isinstance(left, DoubleStar) and not left.least for left in segments[part:])
