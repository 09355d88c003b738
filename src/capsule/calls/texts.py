"""Every text in a value, keys too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from capsule.canon import MAX_DEPTH, Json


class TooDeep(ValueError):
    """The value is nested deeper than any record may be."""


def strings(value: Json) -> list[str]:
    found: list[str] = []
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Json] = []
        for item in level:
            if isinstance(item, str):
                found.append(item)
            elif isinstance(item, Mapping):
                found.extend(item)
                inner.extend(item.values())
            elif isinstance(item, Sequence):
                inner.extend(item)
        if not inner:
            return found
        level = inner
    raise TooDeep(f"a value nested deeper than {MAX_DEPTH} levels cannot be screened")
