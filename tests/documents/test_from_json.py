from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.canon import MAX_INTEGER, Json
from capsule.documents import MAX_DEPTH, load_text
from capsule.errors import PlanError


def value_of(text: str) -> Json:
    return load_text(text, name="p.json", kind="plan", format="json").value


def refusal(text: str) -> PlanError:
    with pytest.raises(PlanError) as refused:
        value_of(text)
    assert refused.value.code == 3001
    return refused.value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "1:10: the key 'a' is given twice, first on line 1"),
        ('[{"a": 1,\n "\\u0061": 2}]', "2:2: [0]: the key 'a' is given twice, first on line 1"),
        ('{"x": [1, {"b": 1,\r\n"b": 1}]}', "2:1: x[1]: the key 'b' is given twice, first on line 1"),
        ('{"a": NaN}', "1:7: a: found NaN, allowed: finite numbers"),
        ("[0, -Infinity]", "1:5: [1]: found -Infinity, allowed: finite numbers"),
        ("[1e999]", "1:2: [0]: found 1e999, allowed: finite numbers"),
        ("[9007199254740992]", "1:2: [0]: found 9007199254740992, allowed: integers up to ±(2^53-1)"),
        ("-" + "9" * 5000, "1:1: found -" + "9" * 59 + ", allowed: integers up to ±(2^53-1)"),
        ('{"a": ["x", "\\ud800"]}', "1:13: a[1]: half of a surrogate pair is not text"),
        ('{"\\udfff": 1}', "1:2: half of a surrogate pair is not text"),
        ('["\\ude00\\ud83d"]', "1:2: [0]: half of a surrogate pair is not text"),
        ("{a: 1}", "1:2: not valid JSON: expecting property name enclosed in double quotes, found 'a'"),
        ("[1, // one\n 2]", "1:5: not valid JSON: expecting value, found '//'"),
        ('{"a" 1}', "1:6: not valid JSON: expecting ':' delimiter, found '1'"),
        ("[1\n 2]", "2:2: not valid JSON: expecting ',' delimiter, found '2'"),
        ("[1] x", "1:5: not valid JSON: extra data, found 'x'"),
        ("[1", "1:3: not valid JSON: expecting ',' delimiter, found the end"),
        ("01", "1:2: not valid JSON: extra data, found '1'"),
        ("'a'", "1:1: not valid JSON: expecting value, found \"'a'\""),
        ('"a', "1:1: not valid JSON: unterminated string"),
        ('"a\tb"', "1:3: not valid JSON: invalid control character"),
        ('"\\x"', "1:2: not valid JSON: invalid \\escape"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "1:65: nested deeper than 64 levels"),
        ('{"a":' * 1000, "1:321: nested deeper than 64 levels"),
        ("[" * 1_000_000, "1:65: nested deeper than 64 levels"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    assert refusal(text).message == f"p.json:{message}"


def test_a_comma_too_many() -> None:
    """Python 3.13 points at the comma, the versions before at what follows it."""
    assert re.match(r"p\.json:1:[34]: not valid JSON: ", refusal("[1,]").message)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\ufeff[1]", [1]),
        ('"\\ud83d\\ude00"', "😀"),
        ('{"<<": "no", "1": 1.0}', {"<<": "no", "1": 1.0}),
        ('"[[[[{\\"[["', '[[[[{"[['),
        ("[" * MAX_DEPTH + "]" * MAX_DEPTH, json.loads("[" * MAX_DEPTH + "]" * MAX_DEPTH)),
        (str(-MAX_INTEGER), -MAX_INTEGER),
        (" null ", None),
    ],
)
def test_what_is_read(text: str, value: Json) -> None:
    assert value_of(text) == value


TEXT = st.text()
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda part: st.lists(part) | st.dictionaries(TEXT, part),
    max_leaves=20,
)


@given(VALUES, st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_what_json_writes_is_read_as_it_was(value: Json, ensure_ascii: bool, indent: int | str | None) -> None:
    assert value_of(json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)) == value


@given(
    st.text('a01 -.eE:,[]{}"\\ud8\n\t')
    | st.lists(st.sampled_from(["{", "}", "[", "]", ",", ":", '"a"', '"\\udfff"', "1", "1e999", "NaN", "null"])).map(
        "".join
    )
)
def test_any_text_is_a_document_or_a_refusal_with_its_place(text: str) -> None:
    try:
        document = load_text(text, name="p.json", kind="plan", format="json")
    except PlanError as error:
        stands_at_its_place(error)
    else:
        assert json.loads(text) == document.value


def stands_at_its_place(error: PlanError) -> None:
    line, column = error.context["line"], error.context["column"]
    assert error.code == 3001
    assert error.message.startswith(f"p.json:{line}:{column}: ")
