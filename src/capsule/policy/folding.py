"""Names and patterns under which a volume that does not tell cases apart may take two names for one."""

from __future__ import annotations

import unicodedata

from capsule.calls import Components
from capsule.policy.segments import CharSet, Chunk, DoubleStar, Literal, Segment, Segments, Wild

# Code points that a volume may leave out when it compares names: HFS+ some (CVE-2014-9390), Linux's case folding all
# that Unicode calls default ignorable.
_IGNORED = dict.fromkeys(
    code
    for first, last in (
        *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
        *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
        *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
    )
    for code in range(first, last + 1)
)


def fold(name: str) -> str:
    """One form for all spellings, without what such volumes drop: ignored code points, dots and spaces at the end."""
    folded = name.lower() if name.isascii() else _fold_text(name.translate(_IGNORED))
    return folded.rstrip(". ") or folded


def _fold_text(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


def fold_names(names: Components) -> Components:
    return tuple(fold(name) for name in names)


def fold_segments(segments: Segments) -> Segments:
    return tuple(_fold_segment(part) for part in segments)


def _fold_segment(part: Segment) -> Segment:
    if isinstance(part, Literal):
        return Literal(text=fold(part.text))
    if isinstance(part, DoubleStar):
        return part
    return Wild(chunks=tuple(_fold_chunk(chunk) for chunk in part.chunks))


def _fold_chunk(chunk: Chunk) -> Chunk:
    if isinstance(chunk, str):
        return _fold_text(chunk)
    units: list[str | CharSet] = []
    for unit in chunk:
        if isinstance(unit, str):
            units.extend(unit.casefold())
        else:
            units.append(CharSet(ranges=unit.ranges, negated=unit.negated, folded=True))
    return tuple(units)
