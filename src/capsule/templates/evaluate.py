"""A checked tree and a scope to a value: item access on JSON values and nothing else, sizes bounded on the way."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from capsule.canon import Json
from capsule.templates.filters import FILTERS
from capsule.templates.tree import Binary, Choice, Compare, Concat, Const, Filtered, Item, Name, Node, Unary
from capsule.templates.values import (
    MAX_RESULT,
    Undefined,
    as_text,
    defined,
    is_list,
    joined,
    kind,
    number,
    refused,
    too_large,
)

_KEY_SHOWN = 80  # characters: of a token, enough that it is known again and masked
_KEYS_SHOWN = 8  # of an object, in the hint for a key it does not have

Scope: TypeAlias = Mapping[str, Json]


def evaluate(node: Node, scope: Scope) -> Json | Undefined:
    match node:
        case Const():
            return node.value
        case Name():
            return scope[node.name] if node.name in scope else Undefined(f"`{node.name}` is not defined")
        case Item():
            return _item(node, scope)
        case Filtered():
            return _filtered(node, scope)
        case Choice():
            return _choice(node, scope)
        case _:
            return _operation(node, scope)


def value_of(node: Node, scope: Scope) -> Json:
    return defined(evaluate(node, scope))


def _operation(node: Unary | Binary | Compare | Concat, scope: Scope) -> Json | Undefined:
    match node:
        case Unary():
            return _unary(node.operator, value_of(node.operand, scope))
        case Binary(operator="and"):
            left = value_of(node.left, scope)
            return evaluate(node.right, scope) if left else left
        case Binary(operator="or"):
            left = value_of(node.left, scope)
            return left or evaluate(node.right, scope)
        case Binary():
            return _sum(node.operator, value_of(node.left, scope), value_of(node.right, scope))
        case Compare():
            return _compared(node, scope)
        case Concat():
            return joined(as_text(value_of(part, scope)) for part in node.parts)


def _item(node: Item, scope: Scope) -> Json | Undefined:
    target, key = value_of(node.target, scope), value_of(node.key, scope)
    if isinstance(key, str):
        if key.startswith("_"):
            raise refused("a key that begins with an underscore cannot be reached")
        if isinstance(target, Mapping) and key in target:
            return target[key]
    elif isinstance(key, int) and isinstance(target, Sequence) and -len(target) <= key < len(target):
        return target[key]
    return Undefined(_missing(node, target, key))


def _missing(node: Item, target: Json, key: Json) -> str:
    what = f"`{_expression_text(node)}` is not defined"
    if isinstance(target, Mapping):
        keys = ", ".join(f"{name[:_KEY_SHOWN]!a}" for name in sorted(target)[:_KEYS_SHOWN])
        return f"{what}: the object has {keys + (' …' if len(target) > _KEYS_SHOWN else '') if keys else 'no keys'}"
    if is_list(target) and isinstance(key, int):
        return f"{what}: the list has {len(target)} items" if isinstance(target, Sequence) else what
    return f"{what}: `{_expression_text(node.target)}` is {kind(target)}"


def _expression_text(node: Node) -> str:
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Item):
        key = node.key.value if isinstance(node.key, Const) else "…"
        plain = isinstance(key, str) and (key.isidentifier() or key == "…")
        return f"{_expression_text(node.target)}.{key}" if plain else f"{_expression_text(node.target)}[{key!a}]"
    return "(…)"


def _choice(node: Choice, scope: Scope) -> Json | Undefined:
    if value_of(node.test, scope):
        return evaluate(node.then, scope)
    if node.otherwise is None:
        return Undefined("the condition does not hold and there is no `else`")
    return evaluate(node.otherwise, scope)


def _filtered(node: Filtered, scope: Scope) -> Json | Undefined:
    target = evaluate(node.target, scope)
    arguments = {name: evaluate(argument, scope) for name, argument in node.arguments}
    if node.name == "default":
        return FILTERS["default"].run(target, **arguments)
    return FILTERS[node.name].run(defined(target), **{name: defined(value) for name, value in arguments.items()})


def _unary(sign: str, value: Json) -> Json:
    if sign == "not":
        return not value
    if not isinstance(value, int | float):
        raise refused(f"`{sign}` needs a number, found {kind(value)}")
    return -value if sign == "-" else +value


def _sum(sign: str, left: Json, right: Json) -> Json:
    if isinstance(left, int | float) and isinstance(right, int | float):
        return number(left + right if sign == "+" else left - right)
    if sign == "+" and isinstance(left, str) and isinstance(right, str):
        return joined((left, right))
    if sign == "+" and is_list(left) and is_list(right):
        return _appended(left, right)
    raise refused(f"`{sign}` cannot take {kind(left)} and {kind(right)}", hint="`~` joins anything as text")


def _appended(left: Json, right: Json) -> Json:
    assert isinstance(left, Sequence)
    assert isinstance(right, Sequence)
    if (len(left) + len(right)) * 8 > MAX_RESULT:  # a pointer each, whatever they hold
        raise too_large()
    return [*left, *right]


_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _compared(node: Compare, scope: Scope) -> bool:
    left = value_of(node.first, scope)
    for sign, operand in node.links:
        right = value_of(operand, scope)
        if not _link_holds(sign, left, right):
            return False
        left = right
    return True


def _link_holds(sign: str, left: Json, right: Json) -> bool:
    if sign in {"==", "!="}:
        return (left == right) is (sign == "==")
    if sign in {"in", "not in"}:
        return _contains(right, left) is (sign == "in")
    try:
        return _ORDER[sign](left, right)
    except TypeError:
        raise refused(f"`{sign}` cannot compare {kind(left)} with {kind(right)}") from None


def _contains(whole: Json, part: Json) -> bool:
    if isinstance(whole, str) and isinstance(part, str):
        return part in whole
    if isinstance(whole, Mapping):
        return isinstance(part, str) and part in whole
    if isinstance(whole, Sequence) and not isinstance(whole, str):
        return part in whole
    raise refused(f"`in` cannot look for {kind(part)} in {kind(whole)}")
