"""The checked tree of an expression: what has no node here cannot be said in a template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from capsule.canon import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Const:
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """`target.key` and `target[key]` are one thing: an item, never an attribute of a Python object."""

    target: Node
    key: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary:
    """`not`, `+`, `-`."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    """`and`, `or`, `+`, `-`."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """`a < b <= c` holds when every link of the chain does."""

    first: Node
    links: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Concat:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    test: Node
    then: Node
    otherwise: Node | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    target: Node
    name: str
    arguments: tuple[tuple[str, Node], ...]  # bound to parameter names while parsing


Node: TypeAlias = Const | Name | Item | Unary | Binary | Compare | Concat | Choice | Filtered

Path: TypeAlias = tuple[str | int, ...]


def paths(node: Node) -> list[Path]:
    """Every name the expression uses, each with the constant keys that follow it: `a.b[0]` is `("a", "b", 0)`."""
    found: list[Path] = []
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if (path := _constant_path(node)) is not None:
            found.append(path)
        else:
            waiting.extend(reversed(_children(node)))
    return found


def _constant_path(node: Node) -> Path | None:
    keys: list[str | int] = []
    while isinstance(node, Item):
        if not isinstance(node.key, Const) or not isinstance(node.key.value, str | int):
            return None
        keys.append(node.key.value)
        node = node.target
    return (node.name, *reversed(keys)) if isinstance(node, Name) else None


def _children(node: Node) -> list[Node]:
    children: tuple[Node | None, ...] = ()
    match node:
        case Item():
            children = (node.target, node.key)
        case Unary():
            children = (node.operand,)
        case Binary():
            children = (node.left, node.right)
        case Compare():
            children = (node.first, *(operand for _, operand in node.links))
        case Concat():
            children = node.parts
        case Choice():
            children = (node.test, node.then, node.otherwise)
        case Filtered():
            children = (node.target, *(argument for _, argument in node.arguments))
    return [child for child in children if child is not None]
