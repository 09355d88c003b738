"""Names and patterns under which a volume that does not tell cases apart may take two names for one."""

from __future__ import annotations

import unicodedata

from capsule.calls import Components
from capsule.policy.segments import CharSet, Chunk, DoubleStar, Literal, Segment, Segments, Wild

# Code points that HFS+ leaves out when it compares names (CVE-2014-9390).
_IGNORED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])


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
