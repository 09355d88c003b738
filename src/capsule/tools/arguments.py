"""A call's valid arguments as the types their schema promises."""

from __future__ import annotations

from collections.abc import Mapping

from capsule.canon import Json


def text(args: Mapping[str, Json], name: str) -> str:
    value = args[name]
    assert isinstance(value, str)
    return value


def integer(args: Mapping[str, Json], name: str) -> int:
    value = args[name]
    assert isinstance(value, int | float)
    return int(value)  # 5.0 is an integer to JSON Schema


def optional_integer(args: Mapping[str, Json], name: str) -> int | None:
    return None if args[name] is None else integer(args, name)


def truth(args: Mapping[str, Json], name: str) -> bool:
    value = args[name]
    assert isinstance(value, bool)
    return value
