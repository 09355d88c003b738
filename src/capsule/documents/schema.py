"""A subset of JSON Schema: patterns take linear time, and nothing recurses where no schema leads.

>>> from capsule.documents import schema
>>> [problem.message for problem in schema.problems({"n": "x"}, {"properties": {"n": {"type": "integer"}}})]
["found 'x', allowed: a whole number"]
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias, cast

from capsule.canon import Json
from capsule.documents.effort import Effort, TooMuch
from capsule.documents.tokens import Trail
from capsule.documents.wording import listed, shown, suggest

MOST_PROBLEMS = 100  # nobody reads more, and a hostile document can hold half a million
MOST_BRANCHES = 50  # of an anyOf: each may be tried for each value
_PATTERNS_KEPT = 512  # compiled ones: more than a large policy has
_DECIDING_EFFORT = 100_000  # of one constraint of one rule; a policy has many
_BRANCH_EFFORT = 8  # to try a branch, in such words

Schema: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong at a path; `key` says that it is the last part of the path itself, and not what it holds."""

    path: Trail
    message: str
    hint: str | None = None
    key: bool = False


def problems(value: Json, schema: Schema, effort: Effort | None = None) -> list[Problem]:
    """What a schema does not allow, in the order of the value; `unsupported` says which schemas are understood."""
    return _first(_problems(value, schema, (), effort or Effort()))


def mismatch(value: Json, schema: Schema) -> Problem | None:
    """The first problem; TooMuch where there is no telling, which whoever decides must not take for an answer."""
    return next(_problems(value, schema, (), Effort(_DECIDING_EFFORT)), None)


def unsupported(schema: Json, effort: Effort | None = None) -> list[Problem]:
    """What in a schema is outside of the subset or ill-formed."""
    return _first(_unsupported(schema, (), effort or Effort()))


def _first(found: Iterator[Problem]) -> list[Problem]:
    try:
        return list(islice(found, MOST_PROBLEMS))
    except TooMuch as error:
        return [Problem(path=(), message=str(error), hint="write a simpler schema, or fewer values")]


def _problems(value: Json, schema: Schema, path: Trail, effort: Effort) -> Iterator[Problem]:
    if not _is_of_type(value, schema) or not _is_listed(value, schema, effort):
        yield _mismatch(value, [schema], path)
        return
    if "anyOf" in schema:
        yield from _any_of(value, cast("Sequence[Schema]", schema["anyOf"]), path, effort)
    if isinstance(value, str):
        yield from _text(value, schema, path)
    elif isinstance(value, Mapping):
        yield from _object(value, schema, path, effort)
    elif isinstance(value, Sequence):
        yield from _array(value, schema, path, effort)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _bounds(value, "", schema.get("minimum"), schema.get("maximum"), path)


_NO_TRUTHS = frozenset({"yes", "no", "on", "off", "y", "n"})


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


_TYPES: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "string": ("text", lambda value: isinstance(value, str)),
    "integer": ("a whole number", _is_integer),
    "number": ("a number", lambda value: math.isfinite(value) if isinstance(value, float) else _is_integer(value)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "array": ("a list", _is_list),
    "object": ("a mapping", lambda value: isinstance(value, Mapping)),
    "null": ("null", lambda value: value is None),
}


def _types(schema: Schema) -> Sequence[str]:
    types = schema.get("type", ())
    return (types,) if isinstance(types, str) else cast("Sequence[str]", types)


def _is_of_type(value: Json, schema: Schema) -> bool:
    return "type" not in schema or any(_TYPES[name][1](value) for name in _types(schema))


def _listing(schema: Schema) -> Sequence[Json] | None:
    if "const" in schema:
        return (schema["const"],)
    return cast("Sequence[Json] | None", schema.get("enum"))


def _is_listed(value: Json, schema: Schema, effort: Effort) -> bool:
    listing = _listing(schema)
    return listing is None or any(_is_same(value, item, effort) for item in listing)


def _is_same(left: Json, right: Json, effort: Effort) -> bool:
    """JSON's equality: 1 is 1.0 and never true."""
    effort.take(1)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_is_same(value, right[name], effort) for name, value in left.items())
    if _is_list(left) and _is_list(right):
        one, other = cast("Sequence[Json]", left), cast("Sequence[Json]", right)
        return len(one) == len(other) and all(
            _is_same(value, item, effort) for value, item in zip(one, other, strict=True)
        )
    return isinstance(left, bool) is isinstance(right, bool) and left == right


def _mismatch(value: Json, schemas: Sequence[Schema], path: Trail) -> Problem:
    words = [word for schema in schemas for word in _listing(schema) or ()]
    types = list(dict.fromkeys(name for schema in schemas if _listing(schema) is None for name in _types(schema)))
    allowed = " or ".join([*([listed(words)] if words else []), *(_TYPES[name][0] for name in types)]) or "nothing"
    near = suggest(value, [word for word in words if isinstance(word, str)]) if isinstance(value, str) else None
    message = f"found {shown(value)}, allowed: {allowed}"
    if near is not None:
        message = f"found {shown(value)}; did you mean {shown(near)}? Allowed: {allowed}"
    allows = {
        *types,
        *(["string"] if shown(value) in words else []),
        *(["boolean"] if any(word is True for word in words) else []),
    }
    examples = [example for schema in schemas for example in cast("Sequence[Json]", schema.get("examples", ()))]
    return Problem(path=path, message=message, hint=next(_hints(value, allows, examples), None))


def _hints(value: Json, allows: Set[str], examples: Sequence[Json]) -> Iterator[str]:
    """`allows`: the types of what would fit."""
    if value is None:
        yield "give it a value, or remove the key"
    if examples:
        yield f"as in {' or '.join(json.dumps(example, ensure_ascii=False) for example in examples)}"
    if isinstance(value, bool | int | float) and "string" in allows:
        yield "quote it, so that it is text"
    if not isinstance(value, str):
        return
    if value.casefold() in _NO_TRUTHS and "boolean" in allows:
        yield f"in YAML 1.2 {value} is text: write true or false"
    if "array" in allows:
        yield "write it as a list: [ … ]"
    if "object" in allows and ":" in value:
        yield "put a space after the colon"
    if value.isdecimal() and {"integer", "number"} & allows:
        yield "remove the quotes"


def _any_of(value: Json, branches: Sequence[Schema], path: Trail, effort: Effort) -> Iterator[Problem]:
    """Nothing if a branch fits; else the problems of the branch that was most likely meant."""
    nearest: list[Problem] | None = None
    for branch in branches:
        effort.take(_BRANCH_EFFORT)
        if _is_of_type(value, branch):
            found = list(islice(_problems(value, branch, path, effort), MOST_PROBLEMS))
            if not found:
                return
            if nearest is None or len(found) < len(nearest):
                nearest = found
    yield from nearest if nearest is not None else [_mismatch(value, branches, path)]


def _text(value: str, schema: Schema, path: Trail) -> Iterator[Problem]:
    yield from _bounds(len(value), " characters", schema.get("minLength"), schema.get("maxLength"), path)
    if "pattern" in schema:
        pattern = cast("str", schema["pattern"])
        compiled = _compiled(pattern)
        if isinstance(compiled, str):
            yield Problem(path=path, message=f"the pattern {shown(pattern)} cannot be read: {compiled}")
        elif not _is_matched(value, compiled):
            yield Problem(path=path, message=f"found {shown(value)}, allowed: text that matches {shown(pattern)}")


def _object(value: Mapping[str, Json], schema: Schema, path: Trail, effort: Effort) -> Iterator[Problem]:
    known = cast("Mapping[str, Schema]", schema.get("properties", {}))
    others = cast("bool | Schema", schema.get("additionalProperties", True))
    for name, member in value.items():
        if name in known:
            yield from _problems(member, known[name], (*path, name), effort)
        elif isinstance(others, Mapping):
            yield from _problems(member, others, (*path, name), effort)
        elif not others:
            yield _unknown(name, known, path)
    for name in cast("Sequence[str]", schema.get("required", ())):
        if name not in value:
            yield Problem(path=path, message=f"missing key {shown(name)}")


def _unknown(name: str, known: Mapping[str, Schema], path: Trail) -> Problem:
    near = suggest(str(name), known)
    meant = f"; did you mean {shown(near)}?" if near is not None else "."
    allowed = listed(sorted(known)) or "no keys"
    return Problem(path=(*path, name), message=f"unknown key {shown(name)}{meant} Allowed: {allowed}", key=True)


def _array(value: Sequence[Json], schema: Schema, path: Trail, effort: Effort) -> Iterator[Problem]:
    yield from _bounds(len(value), " items", schema.get("minItems"), schema.get("maxItems"), path)
    if "items" in schema:
        items = cast("Schema", schema["items"])
        for index, item in enumerate(value):
            yield from _problems(item, items, (*path, index), effort)


def _bounds(found: float, of: str, least: Json, most: Json, path: Trail) -> Iterator[Problem]:
    # Each comparison is one that NaN fails.
    if least is not None and not found >= cast("float", least):
        yield Problem(path=path, message=f"found {shown(found)}{of}, allowed: at least {shown(least)}")
    elif most is not None and not found <= cast("float", most):
        yield Problem(path=path, message=f"found {shown(found)}{of}, allowed: at most {shown(most)}")


@lru_cache(maxsize=_PATTERNS_KEPT)
def _compiled(pattern: str) -> Any:
    """RE2's compiled form, or what RE2 says against the pattern."""
    import re2  # noqa: PLC0415 - 3 ms that documents without patterns need not pay

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        return _said(error.args[0])
    except UnicodeEncodeError:
        return "half of a surrogate pair is not text"


def _said(message: str | bytes) -> str:
    return message.decode(errors="replace") if isinstance(message, bytes) else message


def _is_matched(value: str, compiled: Any) -> bool:
    try:
        return compiled.search(value) is not None
    except UnicodeEncodeError:
        return False  # half of a surrogate pair is not text


_COUNT: Schema = {"type": "integer", "minimum": 0}
_SCHEMA: Schema = {"type": "object"}
_TYPE_NAME: Schema = {"type": "string", "enum": list(_TYPES)}
_KEYWORDS: Schema = {
    "type": {"anyOf": [_TYPE_NAME, {"type": "array", "items": _TYPE_NAME, "minItems": 1}]},
    "enum": {"type": "array"},
    "const": {},
    "properties": {"type": "object", "additionalProperties": _SCHEMA},
    "required": {"type": "array", "items": {"type": "string"}},
    "additionalProperties": {"type": ["boolean", "object"]},
    "items": _SCHEMA,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "minimum": {"type": "number"},
    "maximum": {"type": "number"},
    "pattern": {"type": "string"},
    "anyOf": {"type": "array", "items": _SCHEMA, "minItems": 1, "maxItems": MOST_BRANCHES},
    "title": {"type": "string"},
    "description": {"type": "string"},
    "default": {},
    "examples": {"type": "array"},
    "$schema": {"type": "string"},
}
_SCHEMA_OF_SCHEMAS: Schema = {"type": "object", "properties": _KEYWORDS, "additionalProperties": False}


def _unsupported(schema: Json, path: Trail, effort: Effort) -> Iterator[Problem]:
    yield from _problems(schema, _SCHEMA_OF_SCHEMAS, path, effort)
    if not isinstance(schema, Mapping):
        return
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        compiled = _compiled(pattern)
        if isinstance(compiled, str):
            message = f"found {shown(pattern)}, allowed: a regular expression (RE2): {compiled}"
            yield Problem(path=(*path, "pattern"), message=message)
        else:
            effort.take_pattern(pattern, compiled)
    for below, part in _parts(schema):
        yield from _unsupported(part, (*path, *below), effort)


def _parts(schema: Schema) -> Iterator[tuple[Trail, Schema]]:
    """The schemas in a schema, as far as they are mappings at all."""
    for keyword in ("items", "additionalProperties"):
        part = schema.get(keyword)
        if isinstance(part, Mapping):
            yield (keyword,), part
    branches, properties = schema.get("anyOf"), schema.get("properties")
    members = [
        *(enumerate(branches) if isinstance(branches, list | tuple) else ()),
        *(properties.items() if isinstance(properties, Mapping) else ()),
    ]
    for name, part in members:
        if isinstance(part, Mapping):
            yield ("anyOf" if isinstance(name, int) else "properties", name), part
