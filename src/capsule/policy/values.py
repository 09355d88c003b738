"""Constraints on arguments that reach nothing by themselves: a JSON Schema subset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capsule.calls.concrete import CREDENTIAL_HEADERS
from capsule.canon import Json
from capsule.documents import schema


def without_credential(problem: schema.Problem) -> str:
    """What does not fit; the value of a header that is a credential is not quoted."""
    names = {part.strip().lower() for part in problem.path if isinstance(part, str)}
    quotes = not problem.key and not CREDENTIAL_HEADERS.isdisjoint(names)
    return "this credential does not fit" if quotes else problem.message


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueConstraint:
    schema: Mapping[str, Json]

    def mismatch(self, value: Json) -> str | None:
        """The first thing about the value that does not fit, or None; TooMuch where there is no telling."""
        problem = schema.mismatch(value, self.schema)
        return None if problem is None else without_credential(problem)

    @property
    def named(self) -> tuple[str, ...]:
        """The properties that the schema speaks of by name."""
        properties = self.schema.get("properties", {})
        return tuple(properties) if isinstance(properties, Mapping) else ()
