from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.canon import Json
from capsule.documents import Document, Format, check, load_file, load_text
from capsule.documents.schema import Schema
from capsule.errors import PlanError

RULE: Json = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"},
        "action": {"type": "string", "enum": ["allow", "ask", "deny", "limit"]},
        "tool": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "max_calls": {"type": "integer", "minimum": 0},
    },
    "required": ["action", "tool"],
    "additionalProperties": False,
}
SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "version": {"enum": [1, "1"]},
        "name": {"type": "string"},
        "rules": {"type": "array", "items": RULE},
    },
    "required": ["rules"],
    "additionalProperties": False,
}


def checked(text: str, *, form: Format = "yaml", name: str = "policy.yaml") -> Document:
    document = load_text(text, name=name, kind="policy", format=form)
    check(document, SCHEMA)
    return document


def refusal(text: str, *, form: Format = "yaml", name: str = "policy.yaml") -> PlanError:
    with pytest.raises(PlanError) as refused:
        checked(text, form=form, name=name)
    assert refused.value.code == 3001
    return refused.value


def test_a_document_keeps_its_text_and_name() -> None:
    text = "version: 1\nrules:\n- {action: deny, tool: '*'}\n"
    assert checked(text) == Document(
        value={"version": 1, "rules": [{"action": "deny", "tool": "*"}]}, text=text, name="policy.yaml"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "rules:\n- action: permit\n  tool: x\n",
            "2:11: rules[0].action: found 'permit', allowed: allow, ask, deny, limit",
        ),
        (
            "rules:\n- action: alow\n  tool: x\n",
            "2:11: rules[0].action: found 'alow'; did you mean 'allow'? Allowed: allow, ask, deny, limit",
        ),
        (
            "rules:\n- action: deny\n  tol: x\n",
            "3:3: rules[0]: unknown key 'tol'; did you mean 'tool'? Allowed: action, id, max_calls, tool",
        ),
        (
            "rules: []\nzebra: 1\n",
            "2:1: unknown key 'zebra'. Allowed: name, rules, version",
        ),
        ("rules:\n- {action: deny}\n", "2:3: rules[0]: missing key 'tool'"),
        ("name: x\n", "1:1: missing key 'rules'"),
        ("rules:\n- {action: deny, tool: [a, 5]}\n", "2:28: rules[0].tool[1]: found 5, allowed: text"),
        ("rules:\n- {action: deny, tool: {a: 5}}\n", "2:24: rules[0].tool: found a mapping, allowed: text or a list"),
        ("rules:\n- max_calls: 1.0", "2:14: rules[0].max_calls: found 1.0, allowed: a whole number"),
        ("rules:\n- max_calls: -1", "2:14: rules[0].max_calls: found -1, allowed: at least 0"),
        ("version: 2\nrules: []\n", "1:10: version: found 2, allowed: 1, '1'"),
        ("version: true\nrules: []\n", "1:10: version: found true, allowed: 1, '1'"),
        ("rules:\n", "1:7: rules: found null, allowed: a list"),
        ("# a policy\r\n\r\nrules: 5\r\n", "3:8: rules: found 5, allowed: a list"),
        ("name: 'é😀'\nrules: 5\n", "2:8: rules: found 5, allowed: a list"),
        ("{name: é😀, rules: 5}\n", "1:19: rules: found 5, allowed: a list"),
        ("- x\n", "1:1: found a list, allowed: a mapping"),
    ],
)
def test_what_a_schema_refuses(text: str, message: str) -> None:
    assert refusal(text).message == f"policy.yaml:{message}"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("rules: x", "write it as a list: [ … ]"),
        ("rules: ", "give it a value, or remove the key"),
        ("name: 1.10\nrules: []", "quote it, so that it is text"),
        ("rules: [{action: deny, tool: x, max_calls: '5'}]", "remove the quotes"),
        ("rules: ['tool:x']", "put a space after the colon"),
        ("rules: 5", None),
    ],
)
def test_hints(text: str, hint: str | None) -> None:
    assert refusal(text).hint == hint


def test_the_first_mistake_in_the_order_of_the_document_is_named() -> None:
    text = "rules:\n- {tool: x, action: 1}\n- {zebra: 1}\nname: 5\n"
    assert refusal(text).context["line"] == 2


def test_the_context_names_the_place_for_programs() -> None:
    error = refusal("rules:\n- {action: permit, tool: x}\n")
    assert error.context == {"file": "policy.yaml", "line": 2, "column": 12, "path": ("rules", 0, "action")}


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_file_name_cannot_drive_a_terminal(form: Format) -> None:
    assert refusal("[]", form=form, name="a\x1b[2J\n.yaml").message.startswith("a\\x1b[2J\\n.yaml:1:1: ")


@pytest.mark.parametrize("text", ["", " \n\t\n", "# nothing\n", "---\n", "---\n...\n", "~\n"])
def test_an_empty_document(text: str) -> None:
    assert refusal(text).message == "policy.yaml:1:1: this policy is empty"


def test_an_empty_json_document() -> None:
    assert refusal(" \n", form="json").message == "policy.yaml:1:1: this policy is empty"


def test_json_null_is_a_value() -> None:
    assert load_text("null", kind="argument", format="json").value is None


@pytest.mark.parametrize(("file", "text"), [("p.json", '{"a": "no"}'), ("p.yaml", "a: no"), ("p.txt", "a: no")])
def test_the_name_of_a_file_says_how_it_is_read(tmp_path: Path, file: str, text: str) -> None:
    path = tmp_path / file
    path.write_text(text)
    document = load_file(path, kind="plan")
    assert (document.value, document.name) == ({"a": "no"}, str(path))


def test_a_json_file_is_not_read_as_yaml(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text("a: 1")
    with pytest.raises(PlanError, match=r"p\.json:1:1: not valid JSON: expecting value, found 'a'"):
        load_file(path, kind="plan")


def test_a_text_with_half_a_character(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"<text>:2:4: found the byte 0xed, which is not UTF-8"):
        load_text("a: 1\nb: \ud800", kind="plan")


LEAVES = st.none() | st.booleans() | st.integers(-1000, 1000) | st.text("aé😀 '\"\\:#{}[],\n", max_size=5)
TREES = st.recursive(
    LEAVES,
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text('abc é😀:\\"', max_size=3), part, max_size=4),
    max_leaves=20,
)


def paths(value: Json) -> list[tuple[str | int, ...]]:
    members: list[tuple[str | int, Json]] = []
    if isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, list):
        members = list(enumerate(value))
    return [(), *((name, *rest) for name, member in members for rest in paths(member))]


@given(TREES, st.sampled_from([None, 1]), st.sampled_from(["yaml", "json"]), st.data())
def test_an_error_stands_where_its_path_leads(
    tree: Json, indent: int | None, form: Format, data: st.DataObject
) -> None:
    text = json.dumps([tree], ensure_ascii=False, indent=indent)
    document = load_text(text, kind="plan", format=form)
    assert document.value == [tree]
    path = data.draw(st.sampled_from(paths([tree])))

    def found(*, key: bool) -> str:
        place = document.error(path, "here", key=key).context
        line, column = place["line"], place["column"]
        assert isinstance(line, int)
        assert isinstance(column, int)
        return text.split("\n")[line - 1][column - 1 :]

    value: Json = [tree]
    for part in path:
        value = value[part]  # type: ignore[index]
    opening = json.dumps(value, ensure_ascii=False)[: 1 if isinstance(value, dict | list) else None]
    assert found(key=False).startswith(opening)
    if path and isinstance(path[-1], str):
        assert found(key=True).startswith(json.dumps(path[-1], ensure_ascii=False))


@pytest.mark.parametrize("form", ["yaml", "json"])
@pytest.mark.parametrize(
    ("path", "column"), [(("a", 7), 7), (("a", 0, "x"), 8), (("b",), 1), ((), 1), (("a", "x"), 7), ((0,), 1)]
)
def test_an_error_for_what_is_not_there_stands_at_what_is_nearest(
    form: Format, path: tuple[str | int, ...], column: int
) -> None:
    document = load_text('{"a": [1]}', name="p", kind="plan", format=form)
    for key in (True, False):
        assert document.error(path, "here", key=key).message == f"p:1:{column}: here"
