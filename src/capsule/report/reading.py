"""Recorded values as the report reads them: what is not of the expected kind is empty, never an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from capsule.canon import Json

_NOTHING: Mapping[str, Json] = {}


def as_mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else _NOTHING


def as_list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()
