"""A plan is checked whole before anything runs, and every fault has its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.canon import digest_of
from capsule.documents import schema
from capsule.errors import PlanError
from capsule.plans import PLAN_SCHEMA, Plan

FULL = """\
version: "1"
name: repo-health
description: Releases and notes.
inputs:
  owner: {type: string, required: true}
  files: {type: array, items: {type: string}, default: []}
variables: {api: "https://api.github.com/repos/{{ inputs.owner }}/capsule"}
steps:
  - id: releases
    name: Fetch releases
    tool: http.get
    args: {url: "{{ api }}/releases"}
    store_as: releases
    continue_on_error: true
  - tool: fs.read
    foreach: "{{ inputs.files }}"
    args: {path: "{{ item }}"}
"""


def test_a_plan_is_what_its_file_says(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(FULL)
    plan = Plan.load(file)
    assert (plan.name, plan.description, plan.file) == ("repo-health", "Releases and notes.", file)
    assert [(step.id, step.tool, step.name, step.store_as, step.continue_on_error) for step in plan.steps] == [
        ("releases", "http.get", "Fetch releases", "releases", True),
        ("step_2", "fs.read", "", None, False),
    ]
    assert list(plan.inputs) == ["owner", "files"]
    assert list(plan.variables) == ["api"]
    assert plan.steps[0].foreach is None
    assert plan.steps[1].foreach is not None
    assert plan.digest == digest_of(plan.as_json()) == Plan.parse(FULL).digest


def test_json_is_as_good_as_yaml(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text('{"version": 1, "steps": [{"tool": "fs.read", "args": {"path": "{{ run.workdir }}/a"}}]}')
    assert Plan.load(file).name == str(file)
    assert Plan.parse('{"steps": [{"tool": "t"}]}', format="json").steps[0].id == "step_1"


def test_the_printed_schema_is_one_that_the_checker_understands_and_the_example_fits() -> None:
    assert schema.unsupported(PLAN_SCHEMA) == []
    assert schema.problems(Plan.parse(FULL).as_json(), PLAN_SCHEMA) == []


FAULTS = [
    # the document
    ("[]", 3001, "1:1", "mapping", None),
    ("step: [{tool: t}]", 3001, "1:1", "unknown key 'step'; did you mean 'steps'?", None),
    ("name: x\nsteps: []", 3002, "2:8", "no steps", "at least one"),
    ("name: x\nsteps:", 3002, "2:7", "no steps", None),
    ("name: x", 3002, "1:1", "no steps", None),
    ("version: 2\nsteps: [{tool: t}]", 3001, "1:10", "found 2", None),
    ("steps: {tool: t}", 3001, "1:8", "steps: found a mapping, allowed: a list", None),
    ("steps: [t]", 3001, "1:9", "steps[0]: found 't', allowed: a mapping", None),
    ("steps: [{args: {}}]", 3001, "1:9", "steps[0]: missing key 'tool'", None),
    ("steps: [{tool: t, arg: {}}]", 3001, "1:19", "unknown key 'arg'; did you mean 'args'?", None),
    ("steps: [{tool: t, args: [a]}]", 3001, "1:25", "steps[0].args: found a list", None),
    ("steps: [{tool: t, continue_on_error: 'yes'}]", 3001, "1:38", "true or false", None),
    ("steps: [{tool: t, if: x}]", 3001, "1:19", "unknown key 'if'", None),
    ("steps: [{tool: t}, {tool: t, depends_on: []}]", 3001, "1:30", "unknown key 'depends_on'", None),
    ("steps: [{tool: '{{ x }}'}]", 3001, "1:16", "cannot be a template", "a policy must be able"),
    # ids and names
    ("steps: [{tool: t, id: A}]", 3001, "1:23", "steps[0].id: found 'A'", None),
    ("steps: [{tool: t, id: a-b}]", 3001, "1:23", "steps[0].id", None),
    ("steps: [{tool: t, id: a}, {tool: t, id: a}]", 3001, "1:41", "'a' is the id of steps[0] already", None),
    ("steps: [{tool: t, id: step_2}, {tool: t}]", 3001, "1:32", "'step_2' is the id of steps[0] already", None),
    ("steps: [{tool: t, id: item}]", 3001, "1:23", "'item' is reserved", "another name"),
    ("steps: [{tool: t, store_as: steps}]", 3001, "1:29", "'steps' is reserved", None),
    ("steps: [{tool: t, store_as: not}]", 3001, "1:29", "'not' is reserved", None),
    ("steps: [{tool: t, store_as: 1a}]", 3001, "1:29", "steps[0].store_as", None),
    ("steps: [{tool: t, store_as: __a}]", 3001, "1:29", "is not a name", None),
    ("variables: {run: 1}\nsteps: [{tool: t}]", 3001, "1:13", "'run' is reserved", None),
    ("variables: {a b: 1}\nsteps: [{tool: t}]", 3001, "1:13", "'a b' is not a name", None),
    ("inputs: {inputs: {type: string}}\nsteps: [{tool: t}]", 3001, "1:10", "'inputs' is reserved", None),
    ("inputs: {a-b: {type: string}}\nsteps: [{tool: t}]", 3001, "1:10", "is not a name", None),
    ("variables: {a: 1}\nsteps: [{tool: t, store_as: a}]", 3001, "2:29", "'a' is a variable already", None),
    (
        "steps: [{tool: t, store_as: a}, {tool: t, store_as: a}]",
        *(3001, "1:53", "'a' is the store_as of steps[0] already", "its own"),
    ),
    # templates
    (
        "steps: [{tool: t, args: {a: ['x', '{{ b|upr }}']}}]",
        3003,
        "1:35",
        "steps[0].args.a[1]: there is no filter",
        "upper",
    ),
    ("steps: [{tool: t, args: {a: \"{{ ''.__class__ }}\"}}]", 3003, "1:29", "names that begin with `__`", None),
    ("variables: {a: '{% if x %}'}\nsteps: [{tool: t}]", 3003, "1:16", "variables.a: statements", None),
    ("steps: [{tool: t, foreach: '{{ range(3) }}'}]", 3003, "1:28", "calls are not part", None),
    ("steps: [{tool: t, foreach: 'a,b'}]", 3001, "1:28", "text is no list", "one expression"),
    ("inputs: {f: {type: array}}\nsteps: [{tool: t, foreach: '{{ f }} '}]", 3001, "2:28", "text is no list", None),
    ("steps: [{tool: t, foreach: 3}]", 3001, "1:28", "found 3", None),
    # what templates name
    ("steps: [{tool: t, args: {a: '{{ nope }}'}}]", 3001, "1:29", "nothing defines `nope`", "store_as"),
    (
        "inputs: {owner: {type: string}}\nsteps: [{tool: t, args: {a: '{{ ownr }}'}}]",
        *(3001, "2:29", "nothing defines `ownr`", "did you mean owner?"),
    ),
    (
        "inputs: {owner: {type: string}}\nsteps: [{tool: t, args: {a: {b: '{{ inputs.ownr }}'}}}]",
        *(3001, "2:33", "steps[0].args.a.b: the plan declares no input 'ownr'", "did you mean owner?"),
    ),
    ("steps: [{tool: t, args: {a: '{{ input.x }}'}}]", 3001, "1:29", "no input 'x'", "declare it"),
    ("steps: [{tool: t, args: {a: \"{{ inputs['__class__'] }}\"}}]", 3003, "1:29", "underscore", None),
    ("steps: [{tool: t, args: {a: '{{ inputs }}'}}]", 3001, "1:29", "`inputs` takes a constant key", None),
    (
        "inputs: {k: {type: string}}\nsteps: [{tool: t, args: {a: '{{ inputs[k] }}'}}]",
        *(3001, "2:29", "`inputs` takes a constant key", "inputs.NAME"),
    ),
    (
        "inputs: {k: {type: string}}\nsteps: [{tool: t}, {tool: t, args: {a: '{{ steps[k].output }}'}}]",
        *(3001, "2:40", "`steps` takes a constant key", "steps.ID.output"),
    ),
    ("steps: [{tool: t, args: {a: '{{ steps.a.output }}'}}]", 3001, "1:29", "no step has the id 'a'", "step_1"),
    (
        "steps: [{tool: t, id: first}, {tool: t, args: {a: '{{ steps.frist.output }}'}}]",
        *(3001, "1:51", "no step has the id 'frist'", "did you mean first?"),
    ),
    (
        "steps: [{tool: t, id: a}, {tool: t, args: {a: '{{ steps.a.outptu }}'}}]",
        *(3001, "1:47", "`steps.a` has no 'outptu'", "did you mean output?"),
    ),
    ("steps: [{tool: t, id: a, args: {a: '{{ steps.a.output }}'}}]", 3001, "1:36", "the result of this step", None),
    ("steps: [{tool: t, store_as: a, args: {a: '{{ a }}'}}]", 3001, "1:42", "the result of this step", None),
    (
        "steps: [{tool: t, args: {a: '{{ b.c }}'}}, {tool: t, store_as: b}]",
        *(3001, "1:29", "`b` is the result of steps[1], which comes later", None),
    ),
    (
        "variables: {v: '{{ b }}'}\nsteps: [{tool: t, store_as: b}]",
        *(3001, "1:16", "variables.v: `b` is the result of a step", None),
    ),
    ("variables: {a: '{{ b }}', b: 1}\nsteps: [{tool: t}]", 3001, "1:16", "the variable `b` is set later", "in order"),
    ("variables: {a: '{{ a }}'}\nsteps: [{tool: t}]", 3001, "1:16", "the variable `a` is set later", None),
    (
        "inputs: {a: {type: string}}\nvariables: {a: '{{ a }}'}\nsteps: [{tool: t}]",
        *(3001, "2:16", "the variable `a` is set later", "write inputs.a"),
    ),
    ("steps: [{tool: t, args: {a: '{{ item }}'}}]", 3001, "1:29", "`item` is there only", None),
    ("steps: [{tool: t, foreach: '{{ item }}'}]", 3001, "1:28", "`item` is there only", None),
    ("steps: [{tool: t, args: {a: '{{ run.idd }}'}}]", 3001, "1:29", "`run` has no 'idd'", "did you mean id?"),
    ("steps: [{tool: t, args: {a: '{{ nope|default(1) }}'}}]", 3001, "1:29", "nothing defines `nope`", None),
]


def test_a_plan_knows_its_file_wherever_the_process_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plan.yaml").write_text(FULL)
    monkeypatch.chdir(tmp_path)
    assert Plan.load("plan.yaml").file == tmp_path / "plan.yaml"


def test_a_policy_is_no_plan() -> None:
    with pytest.raises(PlanError, match="this is a policy, not a plan"):
        Plan.parse("rules: []")


@pytest.mark.parametrize(("text", "code", "place", "message", "hint"), FAULTS)
def test_a_fault_names_its_place_and_what_to_do(
    text: str, code: int, place: str, message: str, hint: str | None
) -> None:
    with pytest.raises(PlanError) as caught:
        Plan.parse(text, name="plan.yaml")
    assert caught.value.code == code
    assert caught.value.message.startswith(f"plan.yaml:{place}: ")
    assert message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


INPUT_FAULTS = [
    ("{}", "1:15", "missing key 'type'"),
    ("{type: str}", "1:22", "did you mean 'string'?"),
    ("{type: string, defualt: x}", "1:30", "did you mean 'default'?"),
    ("{type: string, required: 'yes'}", "1:40", "true or false"),
    ("{type: string, default: 3}", "1:39", "inputs.x.default: found 3, allowed: text"),
    ("{type: integer, default: '3'}", "1:40", "inputs.x.default: found '3'"),
    ("{type: integer, default: true}", "1:40", "inputs.x.default: found true"),
    ("{type: string, enum: [a, b], default: c}", "1:53", "inputs.x.default: found 'c'"),
    ("{type: string, enum: [a, 1]}", "1:40", "inputs.x.enum[1]: found 1"),
    ("{type: string, enum: []}", "1:36", "inputs.x.enum"),
    ("{type: string, pattern: '('}", "1:39", "RE2"),
    ("{type: string, pattern: '(?=x)'}", "1:39", "RE2"),
    ("{type: string, pattern: '^a$', default: b}", "1:55", "inputs.x.default: found 'b'"),
    ("{type: integer, pattern: a}", "1:31", "`pattern` is for inputs of type string"),
    ("{type: string, items: {type: string}}", "1:30", "`items` is for inputs of type array"),
    ("{type: array, items: {type: strin}}", "1:43", "inputs.x.items.type: found 'strin'"),
    ("{type: array, items: {format: email}}", "1:37", "inputs.x.items: unknown key 'format'"),
    ("{type: array, items: {type: string}, default: [1]}", "1:62", "inputs.x.default[0]: found 1"),
]


@pytest.mark.parametrize(("declaration", "place", "message"), INPUT_FAULTS)
def test_an_input_is_checked_against_itself(declaration: str, place: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        Plan.parse(f"inputs:   {{x: {declaration}}}\nsteps: [{{tool: t}}]", name="plan.yaml")
    assert caught.value.code == 3001
    assert caught.value.message.startswith(f"plan.yaml:{place}: ")
    assert message in caught.value.message


def test_what_the_inputs_of_a_plan_ask_for_is_bounded_together() -> None:
    inputs = {f"i{number}": {"type": "string", "pattern": f"[^a]{{900}}\\pL{{90}}{number}"} for number in range(30)}
    with pytest.raises(PlanError, match=r"inputs\.i[0-9]+: this takes too long to check") as caught:
        Plan.parse(json.dumps({"inputs": inputs, "steps": [{"tool": "t"}]}))
    assert caught.value.code == 3001


def test_a_result_is_kept_until_the_last_step_that_names_it() -> None:
    plan = Plan.parse(
        """
        steps:
          - {tool: t, id: a, store_as: x}
          - {tool: t, id: b}
          - {tool: t, id: c, args: {p: "{{ steps.b.status }}"}}
          - {tool: t, id: d, args: {p: "{{ x.y }}", q: "{{ steps.b.error }}"}}
          - {tool: t, id: e, args: {p: "{{ steps.a.output.z }}"}}
          - {tool: t, id: f}
        """
    )
    assert {plan.steps[index].id: (kept.output, kept.until) for index, kept in plan.kept.items()} == {
        "a": (True, 4),
        "b": (False, 3),
    }


def test_a_bare_name_is_a_variable_or_a_result_before_it_is_an_input() -> None:
    with pytest.raises(PlanError, match="comes later"):
        Plan.parse("inputs: {x: {type: string}}\nsteps: [{tool: t, args: {a: '{{ x }}'}}, {tool: t, store_as: x}]")
    plan = Plan.parse(
        "inputs: {x: {type: string}}\nvariables: {x: '{{ inputs.x }}!'}\nsteps: [{tool: t, args: {a: '{{ x }}'}}]"
    )
    assert list(plan.variables) == ["x"]


def test_ten_thousand_steps_are_loaded_in_linear_time() -> None:
    steps = "\n".join(
        f"- {{tool: fs.read, id: s{n}, args: {{path: '{{{{ steps.s{n - 1}.output.path }}}}'}}}}"
        for n in range(1, 10_000)
    )
    text = f"steps:\n- {{tool: fs.read, id: s0}}\n{steps}\n"
    assert len(Plan.parse(text).steps) == 10_000


KEYS = st.sampled_from(
    ["version", "name", "inputs", "variables", "steps", "tool", "args", "id", "foreach", "store_as", "x"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["1", "a", "{{ a }}", "{{ inputs.a }}", "{%", "item"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=5), st.lists(st.dictionaries(KEYS, VALUES, max_size=4), max_size=3))
def test_whatever_a_document_holds_it_is_a_plan_or_a_plan_error(
    members: dict[str, object], steps: list[dict[str, object]]
) -> None:
    outcome = parsed(json.dumps({**members, "steps": steps}))
    if isinstance(outcome, Plan):
        assert outcome.steps
    else:
        assert outcome.code in {3001, 3002, 3003}
        assert outcome.message.startswith("<plan>:1:")


def parsed(text: str) -> Plan | PlanError:
    try:
        return Plan.parse(text, format="json")
    except PlanError as error:
        return error
