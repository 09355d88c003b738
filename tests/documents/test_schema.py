from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.canon import Json
from capsule.documents import schema
from capsule.documents.effort import Effort
from capsule.documents.schema import MOST_PROBLEMS, Problem, Schema

LISTED: Schema = {"type": "string", "enum": ["allow", "ask", "deny"]}
NAMED: Schema = {"properties": {"name": {"type": "string"}, "size": {"type": "integer"}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (None, {}),
        (None, {"type": "null"}),
        (True, {"type": "boolean"}),
        (1, {"type": "integer"}),
        (1, {"type": "number"}),
        (1.0, {"type": "number"}),
        ("x", {"type": ["integer", "string"]}),
        ((1, 2), {"type": "array", "items": {"type": "integer"}}),
        ([], {"type": "array", "items": {"type": "integer"}, "maxItems": 0}),
        ({}, {"type": "object"}),
        ({"a": 1}, {"properties": {"b": {"type": "string"}}}),
        ({"a": "x"}, {"additionalProperties": {"type": "string"}, "required": ["a"]}),
        ("ask", LISTED),
        (1, {"enum": ["1", 1.0]}),
        ([{"a": 1}], {"const": [{"a": 1.0}]}),
        (1, {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 1}]}),
        ("😀", {"minLength": 1, "maxLength": 1}),
        ("xay", {"pattern": "a"}),
        ("é", {"pattern": "^.$"}),
        (0, {"minimum": 0, "maximum": 0}),
        (5, {"minLength": 9, "minItems": 9, "required": ["x"], "pattern": "^$"}),
        ("x", {"minimum": 9, "properties": {"a": {"type": "string"}}}),
        (1, {"title": "t", "description": "d", "default": "x", "examples": ["x"], "$schema": "s"}),
    ],
)
def test_what_fits(value: Json, shape: Schema) -> None:
    assert schema.unsupported(shape) == []
    assert schema.problems(value, shape) == []


@pytest.mark.parametrize(
    ("value", "shape", "message"),
    [
        (1.0, {"type": "integer"}, "found 1.0, allowed: a whole number"),
        (True, {"type": "integer"}, "found true, allowed: a whole number"),
        (False, {"type": "number"}, "found false, allowed: a number"),
        (float("nan"), {"type": "number"}, "found nan, allowed: a number"),
        (float("inf"), {"type": "number"}, "found inf, allowed: a number"),
        (float("nan"), {"minimum": 0}, "found nan, allowed: at least 0"),
        (float("nan"), {"maximum": 0}, "found nan, allowed: at most 0"),
        (1, {"type": "boolean"}, "found 1, allowed: true or false"),
        ("x", {"type": "array"}, "found 'x', allowed: a list"),
        (b"x", {"type": "array"}, "found a bytes, allowed: a list"),
        ([], {"type": "object"}, "found a list, allowed: a mapping"),
        ("1", {"type": ["integer", "null"]}, "found '1', allowed: a whole number or null"),
        ("permit", LISTED, "found 'permit', allowed: allow, ask, deny"),
        ("aks", LISTED, "found 'aks'; did you mean 'ask'? Allowed: allow, ask, deny"),
        (5, LISTED, "found 5, allowed: allow, ask, deny"),
        (True, {"enum": [1]}, "found true, allowed: 1"),
        (1, {"const": True}, "found 1, allowed: true"),
        ("x", {"enum": ["true", "a b", None]}, "found 'x', allowed: 'true', 'a b', null"),
        ("x", {"enum": []}, "found 'x', allowed: nothing"),
        ([10**5000], {"items": {"enum": [1]}}, "found a huge integer, allowed: 1"),
        ([10**5000], {"items": {"type": "number", "maximum": 1}}, "found a huge integer, allowed: at most 1"),
        ([1], {"const": [True]}, "found a list, allowed: a list"),
        ("x", {"minLength": 2}, "found 1 characters, allowed: at least 2"),
        ("xyz", {"maxLength": 2}, "found 3 characters, allowed: at most 2"),
        ([1], {"minItems": 2}, "found 1 items, allowed: at least 2"),
        ([1, 2, 3], {"maxItems": 2}, "found 3 items, allowed: at most 2"),
        (0.5, {"minimum": 1}, "found 0.5, allowed: at least 1"),
        (1.5, {"maximum": 1}, "found 1.5, allowed: at most 1"),
        ("B", {"pattern": "^[a-z]$"}, "found 'B', allowed: text that matches '^[a-z]$'"),
        ("a\n", {"pattern": "^a$"}, "found 'a\\n', allowed: text that matches '^a$'"),
        ("\ud800", {"pattern": "."}, "found '\\ud800', allowed: text that matches '.'"),
        ({"a": 1}, {"required": ["b", "a"]}, "missing key 'b'"),
        ({"a": 1}, {"additionalProperties": False}, "unknown key 'a'. Allowed: no keys"),
        ({"nmae": "x"}, NAMED, "unknown key 'nmae'; did you mean 'name'? Allowed: name, size"),
        ({"\x1b[2J": "x"}, NAMED, "unknown key '\\x1b[2J'. Allowed: name, size"),
        ({3: "x"}, NAMED, "unknown key 3. Allowed: name, size"),
        (5, {"anyOf": [{"type": "string"}, {"type": "array"}]}, "found 5, allowed: text or a list"),
        (5, {"anyOf": [LISTED, {"type": "array"}]}, "found 5, allowed: allow, ask, deny or a list"),
        ("aks", {"anyOf": [{"type": "array"}, LISTED]}, "found 'aks'; did you mean 'ask'? Allowed: allow, ask, deny"),
        ([5], {"anyOf": [LISTED, {"type": "array", "items": LISTED}]}, "found 5, allowed: allow, ask, deny"),
        ({"name": 5}, {"anyOf": [NAMED, {"required": ["x", "y"]}]}, "found 5, allowed: text"),
        ("x", {"anyOf": []}, "found 'x', allowed: nothing"),
    ],
)  # fmt: skip
def test_what_does_not(value: Json, shape: Schema, message: str) -> None:
    assert [problem.message for problem in schema.problems(value, shape)][:1] == [message]


def test_problems_come_in_the_order_of_the_value() -> None:
    shape: Schema = {
        "properties": {"a": {"type": "integer"}, "b": {"items": NAMED}},
        "required": ["c"],
        "additionalProperties": False,
    }
    assert schema.problems({"x": 1, "b": [{}, {"size": "1", "nam": 1}], "a": None}, shape) == [
        Problem(path=("x",), message="unknown key 'x'. Allowed: a, b", key=True),
        Problem(
            path=("b", 1, "size"),
            message="found '1', allowed: a whole number",
            hint="remove the quotes",
        ),
        Problem(path=("b", 1, "nam"), message="unknown key 'nam'; did you mean 'name'? Allowed: name, size", key=True),
        Problem(path=("a",), message="found null, allowed: a whole number", hint="give it a value, or remove the key"),
        Problem(path=(), message="missing key 'c'"),
    ]


def test_of_many_allowed_words_the_first_are_listed() -> None:
    (problem,) = schema.problems(99, {"enum": list(range(50))})
    assert problem.message == f"found 99, allowed: {', '.join(map(str, range(24)))}, …"


def test_problems_are_few() -> None:
    assert len(schema.problems(["x"] * 100_000, {"items": {"type": "integer"}})) == MOST_PROBLEMS


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(.*)*x", "^(a?){50}a{50}$"])
def test_patterns_take_linear_time(pattern: str) -> None:
    began = time.process_time()
    schema.problems("a" * 50_000 + "!", {"pattern": pattern})
    assert time.process_time() - began < 5


NESTED: Schema = {"anyOf": [{"anyOf": [{"minimum": bound} for bound in range(50, 0, -1)]} for _ in range(50)]}


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ([0] * 2000, {"items": NESTED}),
        ([1] * 100_000, {"items": {"anyOf": [{"minimum": bound} for bound in range(50, 0, -1)]}}),
        ([2000] * 2000, {"items": {"enum": list(range(2001))}}),
        ([[0] * 100] * 200, {"items": {"enum": [[0] * 99 + [word] for word in range(200, 0, -1)]}}),
    ],
)
def test_what_multiplies_is_bounded(value: Json, shape: Schema) -> None:
    assert [problem.message.partition(":")[0] for problem in schema.problems(value, shape)] == [
        "this takes too long to check"
    ]


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ([1] * 2000, {"items": {"anyOf": [{"minimum": bound} for bound in range(50, 0, -1)]}}),
        ([500] * 2000, {"items": {"enum": list(range(501))}}),
        (list(range(200_000)), {"items": {"type": "integer"}}),
    ],
)
def test_what_is_only_large_is_checked(value: Json, shape: Schema) -> None:
    assert schema.problems(value, shape) == []


def large(number: int) -> Schema:
    return {"pattern": f"[^a]{{900}}\\pL{{90}}{number}"}


def test_large_patterns_are_bounded_together() -> None:
    assert schema.unsupported({"anyOf": [large(1), {"items": large(1)}, {"pattern": "^\\p{L}{1,64}$"}]}) == []
    (problem,) = schema.unsupported({"properties": {f"p{number}": large(number) for number in range(30)}})
    assert "huge patterns" in problem.message
    words: Schema = {"anyOf": [{"pattern": f"^[a-z][a-z0-9-]{{0,62}}{number}$"} for number in range(50)]}
    assert schema.unsupported({"properties": {str(number): words for number in range(100)}}) == []


def test_checks_that_share_an_effort_are_bounded_together() -> None:
    effort = Effort()
    shapes = [large(number) for number in range(30)]
    assert [problem for shape in shapes[:2] for problem in schema.unsupported(shape, effort)] == []
    assert [problem for shape in shapes for problem in schema.unsupported(shape, effort)] != []


@pytest.mark.parametrize(
    ("shape", "path", "message"),
    [
        ([], (), "found a list, allowed: a mapping"),
        ({"minimun": 1}, ("minimun",), "unknown key 'minimun'; did you mean 'minimum'?"),
        ({"$ref": "#/x"}, ("$ref",), "unknown key '$ref'"),
        ({"oneOf": []}, ("oneOf",), "unknown key 'oneOf'; did you mean 'anyOf'?"),
        ({"format": "uri"}, ("format",), "unknown key 'format'"),
        ({"type": "strng"}, ("type",), "found 'strng'; did you mean 'string'? Allowed: string, integer"),
        ({"type": 5}, ("type",), "found 5, allowed: string, integer, number, boolean, array, object, 'null' or a list"),
        ({"type": []}, ("type",), "found 0 items, allowed: at least 1"),
        ({"type": ["string", "x"]}, ("type", 1), "found 'x', allowed: string, integer"),
        ({"enum": "x"}, ("enum",), "found 'x', allowed: a list"),
        ({"properties": {"a": 5}}, ("properties", "a"), "found 5, allowed: a mapping"),
        ({"properties": {"a": {"typ": 5}}}, ("properties", "a", "typ"), "unknown key 'typ'; did you mean 'type'?"),
        ({"required": "x"}, ("required",), "found 'x', allowed: a list"),
        ({"required": [1]}, ("required", 0), "found 1, allowed: text"),
        ({"additionalProperties": "no"}, ("additionalProperties",), "found 'no', allowed: true or false or a mapping"),
        ({"additionalProperties": {"x": 1}}, ("additionalProperties", "x"), "unknown key 'x'"),
        ({"items": [{}]}, ("items",), "found a list, allowed: a mapping"),
        ({"items": {"items": True}}, ("items", "items"), "found true, allowed: a mapping"),
        ({"minItems": -1}, ("minItems",), "found -1, allowed: at least 0"),
        ({"maxLength": 1.0}, ("maxLength",), "found 1.0, allowed: a whole number"),
        ({"minimum": "1"}, ("minimum",), "found '1', allowed: a number"),
        ({"anyOf": []}, ("anyOf",), "found 0 items, allowed: at least 1"),
        ({"anyOf": [{}, {"not": {}}]}, ("anyOf", 1, "not"), "unknown key 'not'"),
        ({"pattern": 5}, ("pattern",), "found 5, allowed: text"),
        ({"pattern": "(?=a)"}, ("pattern",), "found '(?=a)', allowed: a regular expression (RE2): invalid"),
        ({"pattern": "["}, ("pattern",), "found '[', allowed: a regular expression (RE2): missing ]: ["),
        ({"items": {"pattern": "a{9999}"}}, ("items", "pattern"), "found 'a{9999}', allowed: a regular"),
        ({"pattern": "\ud800"}, ("pattern",), "found '\\ud800', allowed: a regular expression (RE2)"),
    ],
)  # fmt: skip
def test_what_is_no_schema_of_the_subset(shape: Json, path: tuple[str | int, ...], message: str) -> None:
    problems = schema.unsupported(shape)
    assert [problem.path for problem in problems] == [path]
    assert problems[0].message.startswith(message)


@pytest.mark.parametrize("pattern", ["[", "(?=a)", "\ud800"])
def test_a_pattern_that_cannot_be_read_fits_nothing(pattern: str) -> None:
    (problem,) = schema.problems("x", {"pattern": pattern})
    assert "cannot be read" in problem.message


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text("ab", max_size=1), part, max_size=3),
    max_leaves=8,
)
SHAPES: st.SearchStrategy[dict[str, Json]] = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"]),
            "enum": st.lists(VALUES, max_size=2),
            "minimum": st.integers(-3, 3),
            "maxLength": st.integers(0, 3),
            "maxItems": st.integers(0, 3),
            "pattern": st.sampled_from(["^a*$", "b", "["]),
            "required": st.lists(st.sampled_from("ab"), max_size=1),
        },
    ),
    lambda part: st.fixed_dictionaries(
        {},
        optional={
            "items": part,
            "anyOf": st.lists(part, min_size=1, max_size=3),
            "properties": st.dictionaries(st.sampled_from("ab"), part),
            "additionalProperties": st.booleans() | part,
        },
    ),
    max_leaves=6,
)


@given(VALUES, SHAPES)
def test_every_problem_leads_somewhere(value: Json, shape: dict[str, Json]) -> None:
    for problem in schema.problems(value, shape):
        found = value
        for part in problem.path:
            found = found[part]  # type: ignore[index]
        assert problem.message


@given(VALUES, SHAPES, SHAPES)
def test_any_of_fits_when_a_branch_does(value: Json, one: dict[str, Json], other: dict[str, Json]) -> None:
    fits = [not schema.problems(value, shape) for shape in (one, other)]
    assert (not schema.problems(value, {"anyOf": [one, other]})) == any(fits)
