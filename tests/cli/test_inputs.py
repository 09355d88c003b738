"""`--input k=v` and `--input @FILE`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typed import Typed

PLAN = """\
inputs:
  who: {type: string, required: true}
  times: {type: integer, default: 1}
  loud: {type: boolean, default: false}
  rate: {type: number, default: 0.5}
  to: {type: array, items: {type: string}, default: []}
  more: {type: object, default: {}}
steps:
  - {tool: fs.list, args: {path: docs}}
"""


@pytest.fixture
def inputs(project: Path) -> None:
    (project / "plan.yaml").write_text(PLAN)
    (project / "in.yaml").write_text("who: Grace\ntimes: 3\nto: [a, b]\n")
    (project / "list.yaml").write_text("[who, Ada]\n")
    (project / "in.json").write_text('{"who": "Joan", "more": {"a": null}}')


DEFAULTS = {"times": 1, "loud": False, "rate": 0.5, "to": [], "more": {}}


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(
    ("words", "given"),
    [
        (["who=Ada"], {"who": "Ada"}),
        (["who="], {"who": ""}),
        (["who=a=b"], {"who": "a=b"}),
        (["who=7"], {"who": "7"}),
        (["who=Ada", "times=7", "loud=true", "rate=1.5"], {"who": "Ada", "times": 7, "loud": True, "rate": 1.5}),
        (["who=Ada", 'to=["x"]', 'more={"k": [1]}'], {"who": "Ada", "to": ["x"], "more": {"k": [1]}}),
        (["@in.yaml"], {"who": "Grace", "times": 3, "to": ["a", "b"]}),
        (["@in.json"], {"who": "Joan", "more": {"a": None}}),
        (["@in.yaml", "who=Ada"], {"who": "Ada", "times": 3, "to": ["a", "b"]}),
        (["who=Ada", "@in.yaml"], {"who": "Grace", "times": 3, "to": ["a", "b"]}),
    ],
    ids=" ".join,
)
def test_an_input_is_read_by_its_type(capsule: Typed, words: list[str], given: dict[str, object]) -> None:
    options = [option for word in words for option in ("--input", word)]
    ran = capsule("run", "plan.yaml", "--policy", "policy.yaml", "--json", *options)
    assert (ran.code, ran.json["run"]["inputs"]) == (0, DEFAULTS | given)


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "input who is missing [3004]"),
        (["who"], "--input who: found no `=` [3004]"),
        (["=x"], "--input =x: found no `=` [3004]"),
        (["who=x", "tmies=1"], "the plan declares no input 'tmies' [3004]"),
        (["who=x", "times=1.5"], "input times: found 1.5, allowed: a whole number [3004]"),
        (["who=x", "times=often"], "input times: found 'often', allowed: a whole number [3004]"),
        (["who=x", "loud=yes"], "input loud: found 'yes', allowed: true or false [3004]"),
        (["who=x", "to=a"], "input to:1:1: not valid JSON"),
        (["who=x", "to=[1]"], "input to[0]: found 1, allowed: text [3004]"),
        (["@none.yaml"], "none.yaml: cannot read this inputs file: there is no such file"),
        (["@list.yaml"], "list.yaml:1:1: inputs are a mapping of names to values"),
        (["@policy.yaml"], "the plan declares no input "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_input_that_does_not_fit_is_named(capsule: Typed, words: list[str], message: str) -> None:
    options = [option for word in words for option in ("--input", word)]
    ran = capsule("run", "plan.yaml", "--policy", "policy.yaml", *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert capsule("list-runs").code == 5, "there is still no journal"
