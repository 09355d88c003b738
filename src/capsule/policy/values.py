"""Constraints on arguments that reach nothing by themselves: a JSON Schema subset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capsule.canon import Json
from capsule.documents import schema


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueConstraint:
    schema: Mapping[str, Json]

    def mismatch(self, value: Json) -> str | None:
        """The first thing about the value that does not fit, or None."""
        for problem in schema.problems(value, self.schema):
            return problem.message
        return None

    @property
    def named(self) -> tuple[str, ...]:
        """The properties that the schema speaks of by name."""
        properties = self.schema.get("properties", {})
        return tuple(properties) if isinstance(properties, Mapping) else ()
