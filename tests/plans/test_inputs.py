"""What a run goes with: given, read by the declared type, checked, filled in."""

from __future__ import annotations

import pytest

from capsule.canon import Json
from capsule.errors import PlanError
from capsule.plans import Plan

PLAN = Plan.parse(
    """
    inputs:
      owner: {type: string, required: true, pattern: "^[a-z]+$"}
      level: {type: string, enum: [low, high], default: low}
      count: {type: integer}
      ratio: {type: number, default: 0.5}
      flag: {type: boolean}
      files: {type: array, items: {type: string}}
      extra: {type: object, default: {}}
    steps: [{tool: t}]
    """
)


def read(**given: Json) -> dict[str, Json]:
    return PLAN.read_inputs({"owner": "me", **given})


def test_defaults_fill_in_and_what_is_not_given_is_absent() -> None:
    assert read() == {"owner": "me", "level": "low", "ratio": 0.5, "extra": {}}
    assert list(read(extra={}, flag=True)) == ["owner", "level", "ratio", "flag", "extra"]


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("owner", "true", "true"),
        ("count", "12", 12),
        ("count", " -3 ", -3),
        ("count", 7, 7),
        ("ratio", "2", 2),
        ("ratio", "2.5e1", 25.0),
        ("ratio", 3, 3),
        ("flag", "true", True),
        ("flag", "false", False),
        ("flag", False, False),
        ("files", '["a", "{{ b }}"]', ["a", "{{ b }}"]),
        ("files", ["a"], ["a"]),
        ("files", "[]", []),
        ("extra", '{"a": {"b": [1]}}', {"a": {"b": [1]}}),
    ],
)
def test_text_is_read_by_the_declared_type(name: str, given: Json, value: Json) -> None:
    read_value = read(**{name: given})[name]
    assert read_value == value
    assert type(read_value) is type(value)


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"ownr": "x"}, "the plan declares no input 'ownr'", "did you mean owner?"),
        ({"zzzzzz": "x"}, "no input 'zzzzzz'", "owner, level"),
        ({"owner": "ME"}, "input owner: found 'ME'", None),
        ({"owner": 3}, "input owner: found 3, allowed: text", None),
        ({"owner": None}, "input owner: found null", None),
        ({"level": "mid"}, "input level: found 'mid'", None),
        ({"count": "1.5"}, "input count: found 1.5, allowed: a whole number", None),
        ({"count": "many"}, "input count: found 'many', allowed: a whole number", None),
        ({"count": ""}, "input count: found ''", None),
        ({"count": "0x10"}, "input count: found '0x10'", None),
        ({"count": True}, "input count: found true", None),
        ({"count": "[1]"}, "input count: found a list", None),
        ({"count": 2**60}, "input count", None),
        ({"ratio": "NaN"}, "input ratio: found 'NaN'", None),
        ({"ratio": float("inf")}, "input ratio", None),
        ({"flag": "yes"}, "input flag: found 'yes', allowed: true or false", None),
        ({"flag": "1"}, "input flag: found 1, allowed: true or false", None),
        ({"files": "a.md"}, "input files:1:1", "JSON"),
        ({"files": '"a.md"'}, "input files: found 'a.md', allowed: a list", None),
        ({"files": '["a", 1]'}, "input files[1]: found 1, allowed: text", None),
        ({"extra": '{"a": 1, "a": 2}'}, "input extra:1", None),
        ({"extra": {"a": float("nan")}}, "input extra", None),
        ({"extra": {"a": "\ud800"}}, "input extra", None),
    ],
)
def test_what_does_not_fit_is_3004_and_names_the_input(given: dict[str, Json], message: str, hint: str | None) -> None:
    with pytest.raises(PlanError) as caught:
        read(**given)
    assert caught.value.code == 3004
    assert message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


def test_a_required_input_must_be_given() -> None:
    with pytest.raises(PlanError, match="input owner is missing") as caught:
        PLAN.read_inputs({})
    assert caught.value.code == 3004
    assert caught.value.hint == "give it: --input owner=STRING"
