"""Any JSON value whose strings may be templates, compiled once and rendered for each step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from capsule.canon import Json
from capsule.errors import PlanError
from capsule.templates.evaluate import value_of
from capsule.templates.lexer import BadTemplate, pieces
from capsule.templates.parser import parse
from capsule.templates.tree import Node, Path, paths
from capsule.templates.values import as_text, joined, weigh

_MARKS = ("{{", "{%", "{#")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    """A string that is one `{{ expression }}`: its value keeps its type."""

    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    parts: tuple[str | Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    members: tuple[tuple[str, _Part], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _List:
    items: tuple[_Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Constant:
    value: Json


_Part: TypeAlias = _Whole | _Text | _Object | _List | _Constant


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """`names` holds each name the value uses with the constant keys behind it, `{{ a.b[0] }}` as `("a", "b", 0)`, and
    where in the value it is used first; `source` is the value as it was written."""

    source: Json
    names: Mapping[Path, Path]
    _root: _Part

    def render(self, scope: Mapping[str, Json], *, at: str = "") -> Json:
        """The value with everything filled in; PlanError 3003 for what is undefined, ill-typed or over 16 MiB.

        `at` is where the value stands, for that message.
        """
        if isinstance(self._root, _Constant):
            return self._root.value
        value = _render(self._root, scope, at)
        try:
            weigh(value)
        except PlanError as error:
            raise _placed_error(error, at) from None
        return value

    @property
    def is_expression(self) -> bool:
        """Whether the value is one whole `{{ expression }}`, so that only rendering tells its type."""
        return isinstance(self._root, _Whole)


def compile_value(value: Json) -> Template:
    """Compile every string in a value, keys excepted; BadTemplate says where in it something is wrong."""
    names: dict[Path, Path] = {}
    root = _compile(value, (), names)
    return Template(source=value, names=names, _root=root)


def _compile(value: Json, place: Path, names: dict[Path, Path]) -> _Part:
    if isinstance(value, str):
        return _compile_text(value, place, names)
    if isinstance(value, Mapping):
        members = tuple((key, _compile(child, (*place, key), names)) for key, child in value.items())
        return _Object(members=members) if _any_template(part for _, part in members) else _Constant(value=value)
    if isinstance(value, Sequence):
        items = tuple(_compile(child, (*place, index), names) for index, child in enumerate(value))
        return _List(items=items) if _any_template(items) else _Constant(value=value)
    return _Constant(value=value)


def _any_template(parts: Iterable[_Part]) -> bool:
    return not all(isinstance(part, _Constant) for part in parts)


def _compile_text(source: str, place: Path, names: dict[Path, Path]) -> _Part:
    if not any(mark in source for mark in _MARKS):
        return _Constant(value=source)
    try:
        parts = [piece if isinstance(piece, str) else parse(piece) for piece in pieces(source)]
    except BadTemplate as problem:
        raise problem.at(place) from None
    for part in parts:
        if not isinstance(part, str):
            names.update((path, place) for path in paths(part) if path not in names)
    if len(parts) == 1 and not isinstance(parts[0], str) and source.startswith("{{") and source.endswith("}}"):
        return _Whole(node=parts[0])
    return _Text(parts=tuple(parts))


def _render(part: _Part, scope: Mapping[str, Json], path: str) -> Json:
    match part:
        case _Constant():
            return part.value
        case _Object():
            return {key: _render(child, scope, f"{path}.{key}" if path else key) for key, child in part.members}
        case _List():
            return [_render(child, scope, f"{path}[{place}]") for place, child in enumerate(part.items)]
        case _:
            return _render_leaf(part, scope, path)


def _render_leaf(part: _Whole | _Text, scope: Mapping[str, Json], path: str) -> Json:
    try:
        if isinstance(part, _Whole):
            return value_of(part.node, scope)
        return joined(piece if isinstance(piece, str) else as_text(value_of(piece, scope)) for piece in part.parts)
    except PlanError as error:
        raise _placed_error(error, path) from None


def _placed_error(error: PlanError, path: str) -> PlanError:
    return PlanError(3003, f"{path}: {error.message}" if path else error.message, hint=error.hint)
