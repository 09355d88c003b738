"""Tokens to a checked tree, by Jinja2's grammar and precedence; what is not in the language is refused here."""

from __future__ import annotations

import math
from typing import NoReturn

from capsule.canon import MAX_INTEGER, Json
from capsule.documents import suggest
from capsule.templates.filters import FILTERS
from capsule.templates.lexer import Cursor, Tokens
from capsule.templates.tree import Binary, Choice, Compare, Concat, Const, Filtered, Item, Name, Node, Unary

MAX_NESTING = 32  # brackets, signs and branches in each other; each costs the interpreter some five frames

_LANGUAGE = (
    "there are names, constants, .attribute and [item], comparison, and or not, + - ~, X if Y else Z, and the filters "
    + " ".join(FILTERS)
)
_CONSTANTS: dict[str, Json] = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None}
_NO_CALLS = "calls are not part of the template language:"
_KEYWORDS = frozenset({"if", "else", "and", "or", "not", "in", "is"})
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in"})

# How tightly an operator binds; `not` stands between `and` and the comparisons, a sign above all.
_OR, _AND, _NOT, _COMPARE, _SUM, _CONCAT, _SIGN = range(7)
_LEVELS = {"or": _OR, "and": _AND, "+": _SUM, "-": _SUM, "~": _CONCAT, **dict.fromkeys(_COMPARISONS, _COMPARE)}

RESERVED_WORDS = _KEYWORDS | _CONSTANTS.keys()


def parse(expression: Tokens) -> Node:
    return _Parser(Cursor(expression)).whole()


class _Parser:
    def __init__(self, cursor: Cursor) -> None:
        self._at = cursor
        self._nesting = 0

    def whole(self) -> Node:
        node = self._choice()
        if self._at.kind != "end":
            self._unexpected()
        return node

    def _unexpected(self, what: str = "not part of the template language:") -> NoReturn:
        raise self._at.fault(f"{what} {self._at.text[:20]!a}", hint=_LANGUAGE)

    def _expect(self, operator: str) -> None:
        if not self._at.skip(operator):
            self._unexpected(f"expected `{operator}`, found")

    def _deeper(self, by: int) -> None:
        self._nesting += by
        if self._nesting > MAX_NESTING:
            raise self._at.fault(f"an expression nested deeper than {MAX_NESTING} levels", hint="use variables")

    def _choice(self) -> Node:
        self._deeper(1)
        node = self._operation(_OR)
        while self._at.skip("if"):
            test = self._operation(_OR)
            otherwise = self._choice() if self._at.skip("else") else None
            node = Choice(test=test, then=node, otherwise=otherwise)
        self._deeper(-1)
        return node

    def _operation(self, floor: int) -> Node:
        """What binds at least as tightly as `floor`."""
        if floor <= _NOT and self._at.skip("not"):
            self._deeper(1)
            node: Node = Unary(operator="not", operand=self._operation(_NOT))
            self._deeper(-1)
        else:
            node = self._signed()
        while (operator := self._operator(floor)) is not None:
            node = self._extended(node, operator)
        return node

    def _operator(self, floor: int) -> str | None:
        operator = "not in" if self._at.sees("not") and self._at.sees("in", 1) else self._at.text
        known = self._at.kind in {"name", "operator"} and _LEVELS.get(operator, -1) >= floor
        return operator if known else None

    def _extended(self, left: Node, operator: str) -> Node:
        if operator in _COMPARISONS:
            return Compare(first=left, links=self._links())
        if operator == "~":
            parts = [left]
            while self._at.skip("~"):
                parts.append(self._signed())
            return Concat(parts=tuple(parts))
        self._at.take()
        return Binary(operator=operator, left=left, right=self._operation(_LEVELS[operator] + 1))

    def _links(self) -> tuple[tuple[str, Node], ...]:
        links: list[tuple[str, Node]] = []
        while (operator := self._operator(_COMPARE)) in _COMPARISONS:
            self._at.skip(*operator.split())
            links.append((operator, self._operation(_SUM)))
        return tuple(links)

    def _signed(self, *, filters: bool = True) -> Node:
        if self._at.sees("-") or self._at.sees("+"):
            operator = self._at.take()
            self._deeper(1)
            node = _sign(operator, self._signed(filters=False))
            self._deeper(-1)
        else:
            node = self._primary()
        while self._at.sees(".") or self._at.sees("["):
            node = self._item(node)
        while filters and self._at.skip("|"):
            node = self._filter(node)
        return node

    def _primary(self) -> Node:
        if self._at.kind == "name":
            return self._name()
        if self._at.skip("("):
            node = self._choice()
            self._expect(")")
            return node
        return Const(value=self._literal())

    def _literal(self) -> Json:
        kind = self._at.kind
        if kind == "string":
            return self._strings()
        if kind in {"integer", "float"}:
            return self._number()
        if self._at.skip("["):
            return self._list()
        if self._at.skip("{"):
            return self._object()
        return self._unexpected()

    def _name(self) -> Node:
        if self._at.text in _KEYWORDS:
            self._unexpected()
        name = self._identifier()
        if name in _CONSTANTS:
            return Const(value=_CONSTANTS[name])
        if self._at.sees("("):
            self._unexpected(_NO_CALLS)
        return Name(name=name)

    def _identifier(self) -> str:
        if self._at.kind != "name" or not self._at.text.isidentifier():
            self._unexpected("expected a name, found")
        if self._at.text.startswith("__"):
            raise self._at.fault("names that begin with `__` are not part of the template language")
        return self._at.take()

    def _strings(self) -> str:
        """Strings side by side are one, as in Jinja2."""
        parts: list[str] = []
        while self._at.kind == "string":
            try:
                parts.append(self._at.text[1:-1].encode("ascii", "backslashreplace").decode("unicode-escape"))
            except UnicodeDecodeError as error:
                raise self._at.fault(f"a wrong escape in a string ({error.reason})") from None
            self._at.take()
        return "".join(parts)

    def _number(self) -> int | float:
        digits = self._at.text.replace("_", "")
        value: int | float = float(digits) if self._at.kind == "float" else _whole_number(digits)
        if not math.isfinite(value) or (isinstance(value, int) and value > MAX_INTEGER):
            raise self._at.fault("a number that JSON does not keep exactly", hint="write it as text, in quotes")
        self._at.take()
        return value

    def _list(self) -> list[Json]:
        values: list[Json] = []
        while not self._at.skip("]"):
            if values:
                self._expect(",")
                if self._at.skip("]"):
                    break
            values.append(self._constant())
        return values

    def _object(self) -> dict[str, Json]:
        members: dict[str, Json] = {}
        while not self._at.skip("}"):
            if members:
                self._expect(",")
                if self._at.skip("}"):
                    break
            key = self._constant()
            if not isinstance(key, str):
                raise self._at.fault("a key must be text")
            self._expect(":")
            members[key] = self._constant()
        return members

    def _constant(self) -> Json:
        node = self._choice()
        if not isinstance(node, Const):
            raise self._at.fault(
                "lists and objects hold constants only", hint="build them as values of the plan instead"
            )
        return node.value

    def _item(self, target: Node) -> Item:
        if self._at.skip("."):
            key: Node = Const(value=self._number() if self._at.kind == "integer" else self._identifier())
        else:
            self._expect("[")
            key = self._choice()
            self._expect("]")
        if isinstance(key, Const):
            self._check_key(key.value)
        if self._at.sees("("):
            self._unexpected(_NO_CALLS)
        return Item(target=target, key=key)

    def _check_key(self, key: Json) -> None:
        if isinstance(key, bool) or not isinstance(key, str | int):
            raise self._at.fault("a key must be text or an integer")
        if isinstance(key, str) and key.startswith("_"):
            raise self._at.fault(f"{key[:20]!a} begins with an underscore; such keys cannot be reached")

    def _filter(self, target: Node) -> Filtered:
        name = self._at.text
        if self._at.kind != "name" or name not in FILTERS:
            near = suggest(name, FILTERS)
            hint = f"did you mean `{near}`?" if near else f"the filters are {' '.join(FILTERS)}"
            raise self._at.fault(f"there is no filter {name[:20]!a}", hint=hint)
        self._at.take()
        bound = self._arguments(name) if self._at.skip("(") else {}
        missing = [word for word in FILTERS[name].parameters[: FILTERS[name].required] if word not in bound]
        if missing:
            raise self._at.fault(f"`{name}` needs {' and '.join(missing)}")
        return Filtered(target=target, name=name, arguments=tuple(bound.items()))

    def _arguments(self, name: str) -> dict[str, Node]:
        parameters = FILTERS[name].parameters
        bound: dict[str, Node] = {}
        while not self._at.skip(")"):
            if bound:
                self._expect(",")
                if self._at.skip(")"):
                    break
            parameter = self._parameter(name, parameters, len(bound))
            if parameter in bound:
                raise self._at.fault(f"`{name}` has `{parameter}` twice")
            bound[parameter] = self._choice()
        return bound

    def _parameter(self, name: str, parameters: tuple[str, ...], place: int) -> str:
        if self._at.kind == "name" and self._at.sees("=", 1):
            if self._at.text not in parameters:
                raise self._at.fault(f"`{name}` has no argument {self._at.text[:20]!a}", hint=_takes(parameters))
            keyword = self._at.take()
            self._at.take()
            return keyword
        if place >= len(parameters):
            raise self._at.fault(f"`{name}` takes at most {len(parameters)} arguments", hint=_takes(parameters))
        return parameters[place]


def _takes(parameters: tuple[str, ...]) -> str:
    return f"it takes {', '.join(parameters)}" if parameters else "it takes none"


def _sign(operator: str, operand: Node) -> Node:
    if isinstance(operand, Const) and isinstance(operand.value, int | float) and not isinstance(operand.value, bool):
        return Const(value=-operand.value if operator == "-" else operand.value)
    return Unary(operator=operator, operand=operand)


def _whole_number(digits: str) -> int:
    return MAX_INTEGER + 1 if len(digits) > 400 else int(digits, 0)  # far too large either way; int() has its own limit
