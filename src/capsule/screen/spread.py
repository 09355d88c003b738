"""Text with a NUL beside each of its characters: UTF-16 without its mark, or what a message quotes of such text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from capsule.screen.scan import Hit

_NUL = b"\0"
_SPELLED = (b"\\x00", b"\\u0000")  # as a message or JSON writes it


def has_nuls(data: bytes) -> bool:
    return _NUL in data or any(spelled in data for spelled in _SPELLED)


def with_nuls(data: bytes) -> bytes:
    for spelled in _SPELLED:
        data = data.replace(spelled, _NUL)
    return data


def without_nuls(data: bytes) -> bytes:
    return with_nuls(data).replace(_NUL, b"")


def among_nuls(data: bytes, found: Iterable[Hit], begin: int) -> Iterator[tuple[Hit, Hit]]:
    """Hits in a text without its NULs, whose positions count from `begin`, with where they stand among them.

    What holds no NUL is left out: it was found without this.
    """
    place, passed = 0, begin
    for hit in found:
        start = _behind(data, place, hit.start - passed + 1) - 1
        place, passed = _behind(data, start, hit.end - hit.start), hit.end
        if place - start > hit.end - hit.start:
            yield hit, Hit(start, place, hit.rule)


def _behind(data: bytes, place: int, count: int) -> int:
    """Where so many bytes that are not NUL have gone by."""
    while count:
        place, count = place + count, data.count(_NUL, place, place + count)
    return place


def utf_16(data: bytes, hit: Hit) -> tuple[int, int, str]:
    """The whole characters that begin or end in a hit, and their encoding; UTF-8 where it is no UTF-16."""
    start, end, _ = hit
    if data.count(_NUL, start, end) * 2 != end - start - 1 or end - start == 1:
        return start, end, "utf-8"
    if start % 2:
        return start - 1, end, "utf-16-be"
    return start, end + (data[end : end + 1] == _NUL), "utf-16-le"
