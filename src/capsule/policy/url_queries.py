"""What a rule says of the query of a URL: parameters by name, each with the values it may have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capsule.policy.segments import Literal, Wild, holds, star_text

_PERCENT = re.compile(rb"%([0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryConstraint:
    """In an allow every parameter of the URL must be named here; in a deny every one named here must be there."""

    parameters: tuple[tuple[str, tuple[Literal | Wild, ...]], ...]

    @classmethod
    def of(cls, values: Mapping[str, Sequence[str]]) -> QueryConstraint:
        """In a value `*` is any run of characters."""
        return cls(parameters=tuple((name, tuple(map(star_text, texts))) for name, texts in values.items()))

    def mismatch(self, query: str, *, as_deny: bool) -> str | None:
        given = _parameters(query)
        return self._missing(given) if as_deny else self._unnamed(given)

    def _missing(self, given: Sequence[tuple[str, str]]) -> str | None:
        for name, values in self.parameters:
            if not any(key == name and _one_holds(values, value) for key, value in given):
                return f"the query has no such {name}"
        return None

    def _unnamed(self, given: Sequence[tuple[str, str]]) -> str | None:
        named = dict(self.parameters)
        for name, value in given:
            if name not in named:
                return f"the query parameter {name} is not named"
            if not _one_holds(named[name], value):
                return f"the query parameter {name} has a value that is not named"
        return None


def _one_holds(values: Sequence[Literal | Wild], value: str) -> bool:
    return any(holds(pattern, value) for pattern in values)


def _parameters(query: str) -> list[tuple[str, str]]:
    """Names and values as a form-decoding server reads them."""
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    return [(_form_decoded(name), _form_decoded(value)) for name, _, value in pairs]


def _form_decoded(text: str) -> str:
    data = _PERCENT.sub(lambda found: bytes([int(found[1], 16)]), text.replace("+", " ").encode())
    return data.decode("utf-8", "replace")
