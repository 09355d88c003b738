"""Handles of secrets: `secret:NAME` stands for a value that the call never holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from capsule.calls import ConcreteCall, Guard
from capsule.calls.concrete import SECRET_HANDLE
from capsule.canon import Json

_PREFIX = "secret:"

Lent: TypeAlias = frozenset[tuple[str, str | None]]
"""Names of secrets that rules lend, each with one header that it may stand in, or None for env and stdin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    name: str
    argument: str
    header: str | None = None
    resolvable: bool  # it is the whole value of a header, of an env entry or of stdin

    def is_lent(self, lent: Lent) -> bool:
        return self.resolvable and (self.name, self.header) in lent

    @property
    def problem(self) -> str:
        if not self.resolvable:
            return f"in {self.argument} a secret cannot stand, or not as a part of a value"
        return "no rule that allows the call lends it" + (f" to the header {self.header}" if self.header else "")


def secret_handles(call: ConcreteCall) -> Iterator[Handle]:
    for argument, value in call.args.items():
        if not _may_hold_one(value):
            continue
        match call.definition.guards.get(argument):
            case Guard.ENV | Guard.HEADERS as guard if isinstance(value, Mapping):
                for name, inner in value.items():
                    yield from _in_text(name, argument)
                    header = name if guard is Guard.HEADERS else None
                    yield from _in_text(inner, argument, header=header, whole=True)
            case _:
                for text in _texts(value):
                    yield from _in_text(text, argument, whole=argument == "stdin")


def _may_hold_one(value: Json) -> bool:
    """Nearly no argument does, and this is asked of every one."""
    return _PREFIX in value if isinstance(value, str) else isinstance(value, Mapping | Sequence) and bool(value)


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            yield from _texts(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _texts(inner)


def _in_text(text: Json, argument: str, *, header: str | None = None, whole: bool = False) -> Iterator[Handle]:
    if not isinstance(text, str) or _PREFIX not in text:
        return
    found = SECRET_HANDLE.search(text)
    if found is not None:
        resolvable = whole and found[0] == text
        yield Handle(name=found[1], argument=argument, header=header, resolvable=resolvable)
