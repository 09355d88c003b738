from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.canon import MAX_INTEGER, Json
from capsule.documents import MAX_DEPTH, Document, load_text
from capsule.errors import PlanError


def value_of(text: str) -> Json:
    return load_text(text, name="p.yaml", kind="plan").value


def refusal(text: str) -> PlanError:
    with pytest.raises(PlanError) as refused:
        value_of(text)
    assert refused.value.code == 3001
    return refused.value


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        # YAML 1.2 core, where older readers see booleans, times, dates and octal numbers
        *((word, word) for word in ("no", "yes", "on", "off", "y", "n", "No", "ON", "1:30", "190:20:30", "2020-01-01")),
        *((word, word) for word in ("0644", "-007", "00.5", "1_000", "0b11", "1e", "e1", ".", "+", "0o8", "0xg")),
        *((word, word) for word in ("nUll", "tRue", "=", "a<<b", "1.2.3", "12e03x", "+-1", "-0x1", "..inf", "inf")),
        ("", None),
        ("~", None),
        ("null", None),
        ("Null", None),
        ("NULL", None),
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("false", False),
        ("False", False),
        ("FALSE", False),
        ("0", 0),
        ("-0", 0),
        ("+12", 12),
        (str(MAX_INTEGER), MAX_INTEGER),
        (str(-MAX_INTEGER), -MAX_INTEGER),
        ("0o644", 420),
        ("0xFf", 255),
        ("1.0", 1.0),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("+12.5E-1", 1.25),
        ("'1'", "1"),
        ('"true"', "true"),
        ("'~'", "~"),
        ("''", ""),
        ("'<<'", "<<"),
        ("|\n  1\n", "1\n"),
        (">-\n  null\n", "null"),
        ('"\\u2028\\x07\\0"', "\u2028\x07\0"),
        ("a\n  b", "a b"),
        ("[a, [], {}, {b: c}]", ["a", [], {}, {"b": "c"}]),
    ],
)
def test_scalars(scalar: str, value: Json) -> None:
    found = value_of(f"key: {scalar}")
    assert found == {"key": value}
    assert isinstance(found, dict)
    assert type(found["key"]) is type(value)


@pytest.mark.parametrize(
    "word", ["*", "*.md", "**/secrets", "*alias", "&anchor", "!tag", "!", "@x", "`x`", "%x", "!!str"]
)
@pytest.mark.parametrize(
    ("template", "place"),
    [
        ("tool: {}", "1:7: tool: "),
        ("a:\n  - b\n  - {}", "3:5: a[1]: "),
        ("a: [b, {}]", "1:8: a[1]: "),
        ("a: {{b: {}}}", "1:8: a.b: "),
        ("tool: {} x", "1:7: tool: "),
    ],
)
def test_a_word_that_begins_with_a_sign_of_yaml_is_to_be_quoted(word: str, template: str, place: str) -> None:
    error = refusal(template.format(word))
    assert error.message.startswith(f"p.yaml:{place}found {word!r}: YAML reads an unquoted {word[0]} as ")
    assert error.hint == f"quote it: '{word}'"


@pytest.mark.parametrize(
    "text", ["a: &x {b: 1}", "a: &x\n  - b", "a: !x\n  b: 1", "&x a: 1", "? !x a\n: 1", "!x [a]", "- *a"]
)
def test_anchors_tags_and_aliases_are_refused_wherever_they_stand(text: str) -> None:
    assert "which is not allowed here" in refusal(text).message


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("a: 1\na: 2", "2:1: the key 'a' is given twice, first on line 1", "keep one of them"),
        (
            "a:\n  b: 1\n  c:\n  - d: 1\n    d: 2\n",
            "5:5: a.c[0]: the key 'd' is given twice, first on line 4",
            "keep one of them",
        ),
        ("'a': 1\n\"\\x61\": 2", "2:1: the key 'a' is given twice, first on line 1", "keep one of them"),
        ("1: a", "1:1: a key must be text, found 1", 'quote it: "1"'),
        ("a: {true: 1}", "1:5: a: a key must be text, found true", 'quote it: "true"'),
        ("~: 1", "1:1: a key must be text, found null", 'quote it: "null"'),
        ("? [a]\n: 1", "1:3: a key must be text, found a list", None),
        ("a: {{ item }}", "1:5: a: a key must be text, found a mapping", 'quote a template: "{{ … }}"'),
        (
            "a: {b: 1}\nc:\n  <<: {d: 1}",
            "3:3: c: found <<: merging mappings is not supported",
            "write the keys out where they are meant, or quote it",
        ),
        (
            "a: 1\n---\nb: 2",
            "2:1: a second document begins here; one file is one document",
            "put it in a file of its own, or quote a line that is meant to be ---",
        ),
        ("%YAML 1.1\n---\na: 1", "1:1: %YAML names a version that is not 1.2", "remove the directive"),
        ("%TAG ! x\n---\na: 1", "1:1: the directive %TAG is not supported", "remove it; tags are refused"),
        (
            "a: 9007199254740992",
            "1:4: a: found 9007199254740992, allowed: integers up to ±(2^53-1)",
            "quote it where text is meant",
        ),
        (
            "a: [-0, 0xfffffffffffffffffffffff]",
            "1:9: a[1]: found 0xfffffffffffffffffffffff, allowed: integers up to ±(2^53-1)",
            "quote it where text is meant",
        ),
        ("a: .inf", "1:4: a: found .inf, allowed: finite numbers", "quote it where text is meant"),
        ("a: -.INF", "1:4: a: found -.INF, allowed: finite numbers", "quote it where text is meant"),
        ("a: .NaN", "1:4: a: found .NaN, allowed: finite numbers", "quote it where text is meant"),
        ("a: 1e999", "1:4: a: found 1e999, allowed: finite numbers", "quote it where text is meant"),
        (
            "a: b\u2028c: d",
            "1:5: the character U+2028 is not allowed in YAML",
            'where it is meant, write it as "\\u2028" in double quotes',
        ),
        (
            "a: \x1b[2J",
            "1:4: the character U+001B is not allowed in YAML",
            'where it is meant, write it as "\\u001B" in double quotes',
        ),
    ],
)
def test_what_is_refused(text: str, message: str, hint: str | None) -> None:
    error = refusal(text)
    assert (error.message, error.hint) == (f"p.yaml:{message}", hint)


@pytest.mark.parametrize(
    ("text", "start", "hint"),
    [
        ("a: b: c", "1:5: not valid YAML: ", "quote a value that holds ': '"),
        ("a:\n\t- b", "2:1: not valid YAML: ", "indent with spaces, not with tabs"),
        ("a: 1\n b: 2", "2:3: not valid YAML", "quote a value that holds ': '"),
        ("- {{ a }} b: c\n- d", "1:3: [0]: a key must be text", 'quote a template: "{{ … }}"'),
        ("a: {{ b }, c}", "1:5: a: a key must be text", 'quote a template: "{{ … }}"'),
        ("a: [{{ b ]", "1:6: a[0]: a key must be text", 'quote a template: "{{ … }}"'),
        (
            "a: 'x' y",
            "1:8: not valid YAML while parsing a block mapping from line 1: did not find expected key, at 'y'",
            None,
        ),
        ("a: {{ b['c'] }}", "1:5: a: a key must be text", 'quote a template: "{{ … }}"'),
        ("- {{ b }}/{{ c }}", "1:4: [0]: a key must be text", 'quote a template: "{{ … }}"'),
        ("a: 'x", "1:6: not valid YAML while scanning a quoted scalar from line 1: ", None),
        ("a: [1,", "1:7: not valid YAML", None),
        ("a: ]", "1:4: not valid YAML: did not find expected node content, at ']'", None),
        ('a: "\\ud800"', "1:7: not valid YAML while parsing a quoted scalar from line 1: found invalid Unicode", None),
        ("%FOO\n---\na: 1", "1:1: found '%FOO': YAML reads an unquoted % as a directive", "quote it: '%FOO'"),
    ],
)
def test_what_is_no_yaml(text: str, start: str, hint: str | None) -> None:
    error = refusal(text)
    assert (error.message[: len(start) + 7], error.hint) == (f"p.yaml:{start}", hint)


def test_a_directive_for_the_version_we_read() -> None:
    assert value_of("%YAML 1.2\n---\na: 1\n...\n") == {"a": 1}


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "[{a: "])
def test_depth(opening: str) -> None:
    assert "nested deeper than 64 levels" in refusal(opening * (MAX_DEPTH + 1)).message
    assert "nested deeper than 64 levels" in refusal(opening * 100_000).message


def test_as_deep_as_allowed() -> None:
    value: Json = value_of("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    for _ in range(MAX_DEPTH - 1):
        assert isinstance(value, list)
        (value,) = value
    assert value == []


# Signs that YAML takes as they are, and the control characters that JSON escapes.
PRINTABLE = st.text(
    st.characters(
        exclude_categories=["Cs"], exclude_characters=[*map(chr, range(0x7F, 0xA0)), *"\u2028\u2029\ufeff\ufffe\uffff"]
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | PRINTABLE,
    lambda part: st.lists(part) | st.dictionaries(PRINTABLE, part),
    max_leaves=20,
)


@given(VALUES.filter(lambda value: value is not None))
def test_what_json_writes_is_read_as_it_was(value: Json) -> None:
    assert value_of(json.dumps(value, ensure_ascii=False)) == value


@given(st.text("aA01 -:,[]{}#&*!|>'\"%@`\n\t\r.~?<é\\\u2028"))
def test_any_text_is_a_document_or_a_refusal_with_its_place(text: str) -> None:
    try:
        assert isinstance(load_text(text, name="p.yaml", kind="plan"), Document)
    except PlanError as error:
        stands_at_its_place(error)


def stands_at_its_place(error: PlanError) -> None:
    line, column = error.context["line"], error.context["column"]
    assert error.code == 3001
    assert error.message.startswith(f"p.yaml:{line}:{column}: ")
