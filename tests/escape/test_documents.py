"""Classes D3 and D7: a document means one thing, and data never turns into code, into a list or into a pattern."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from gated import (
    Ran,
    bodies,
    code,
    db_of,
    dumped,
    gate_of,
    grown,
    newest,
    plan_of,
    planned,
    ran,
    records,
    step_of,
    tree,
)

from capsule.calls import RunStatus, ToolCall
from capsule.canon import Json
from capsule.errors import PlanError
from capsule.plans import Plan
from capsule.policy import Policy

POLICY = """
rules:
  - {action: allow, tool: [fs.read, fs.list], constraints: {path: {pattern: "./docs/**"}}}
  - {action: allow, tool: fs.write, constraints: {path: {pattern: "./out/*"}}}
  - {action: allow, tool: http.get, constraints: {url: {domains: [example.com]}, headers: {type: object}}}
"""


@pytest.fixture
def base(workdir: Path) -> Path:
    grown(workdir, docs__a="text of a", docs__b="text of b", secret="secret", out__old="old")
    grown(workdir.parent, **{"policy.yaml": POLICY})
    return workdir.parent


TWICE = {
    "a plan's step": '{"steps": [{"tool": "fs.read", "args": {"path": "docs/a", "path": "secret"}}]}',
    "a plan's tool": '{"steps": [{"tool": "fs.read", "tool": "fs.write", "args": {"path": "docs/a"}}]}',
    "a plan's steps": '{"steps": [], "steps": [{"tool": "fs.read", "args": {"path": "secret"}}]}',
    "spelled differently": '{"steps": [{"tool": "fs.read", "args": {"path": "docs/a", "p\\u0061th": "secret"}}]}',
    "deep inside": '{"steps": [{"tool": "fs.read", "args": {"path": "docs/a", "x": [{"a": {"b": 1, "b": 2}}]}}]}',
    "in YAML": "steps: [{tool: fs.read, args: {path: docs/a, path: secret}}]",
    "in YAML, quoted": 'steps:\n  - tool: fs.read\n    args:\n      path: docs/a\n      "path": secret\n',
    "in YAML, escaped": 'steps: [{tool: fs.read, args: {path: docs/a, "p\\x61th": secret}}]',
    "a merge key": "x: &x {path: secret}\nsteps: [{tool: fs.read, args: {<<: *x}}]",
    "an alias": "steps: [{tool: fs.read, args: &a {path: secret}}, {tool: fs.read, args: *a}]",
    "a tag": "steps: [{tool: fs.read, args: !!python/object/apply:os.system ['touch out/pwned']}]",
    "two documents": "steps: [{tool: fs.read, args: {path: docs/a}}]\n---\nsteps: []",
    "in another case": '{"steps": [{"tool": "fs.read", "Args": {"path": "secret"}}]}',
    "in another case, beside": '{"steps": [{"tool": "fs.read", "args": {"path": "docs/a"}, "ARGS": {}}]}',
    "a key that only looks like it": '{"steps": [{"tool": "fs.read", "args": {}, "t\\u043eol": "fs.write"}]}',
}


@pytest.mark.parametrize("name", TWICE)
def test_d3_a_document_that_can_be_read_in_two_ways_is_refused(name: str) -> None:
    text = TWICE[name]
    with pytest.raises(PlanError) as raised:
        Plan.parse(text, format="json" if text.startswith("{") else "yaml")
    assert raised.value.code == 3001


@pytest.mark.parametrize(
    "text",
    [
        "rules: []\nrules: [{action: allow, tool: fs.read, constraints: {path: {pattern: /**}}}]",
        "rules: [{action: deny, action: allow, tool: fs.read, constraints: {path: {pattern: /**}}}]",
        "rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: ./a, pattern: /**}}}]",
        "Rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: /**}}}]",
        "rules: [{action: allow, tool: fs.read, constraints: {Path: {pattern: /**}}}]",
        "rules: [{action: ALLOW, tool: fs.read, constraints: {path: {pattern: /**}}}]",
        "default_action: ask\ndefault_action: deny",
    ],
)
def test_d3_a_policy_too(text: str) -> None:
    with pytest.raises(PlanError) as raised:
        Policy.parse(text)
    assert raised.value.code == 3001


@pytest.mark.parametrize(
    "args",
    [
        {"Path": "docs/a"},
        {"path": "docs/a", "Path": "secret"},
        {"path": "docs/a", "PATH": "secret"},
        {"path": "docs/a", "p\u0430th": "secret"},
        {"path": "docs/a", "path ": "secret"},
        {"path": "docs/a", "path\0": "secret"},
        {"path": "docs/a", "": "secret"},
        {"path": "docs/a", "args": {"path": "secret"}},
    ],
)
def test_d3_arguments_that_nearly_have_the_name_of_another(base: Path, workdir: Path, args: dict[str, Json]) -> None:
    with gate_of(workdir, POLICY) as gate:
        result = gate.call(ToolCall(tool="fs.read", args=args))
    assert (code(result), result.output) == (2002, None)
    assert len(bodies(db_of(workdir), "refused")) == 1


@pytest.mark.parametrize("name", ["X-Key", "Authorization", "cookie"])
def test_d3_a_header_given_twice(workdir: Path, name: str) -> None:
    headers: Json = {name: "one", name.swapcase(): "two"}
    with gate_of(workdir, POLICY) as gate:
        result = gate.call(ToolCall(tool="http.get", args={"url": "https://example.com", "headers": headers}))
    assert code(result) == 2002


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["--input", 'x={"a": 1, "a": 2}'], "x"),
        (["--input", "@{base}/inputs.json"], "inputs.json"),
        (["--input", 'x={"a": NaN}'], "x"),
        (["--input", "x=" + "[" * 10_000], "x"),
    ],
)
def test_d3_inputs_on_the_command_line(base: Path, workdir: Path, words: list[str], where: str) -> None:
    (base / "inputs.json").write_text('{"x": {"a": 1}, "x": {"a": 2}}')
    plan = {**plan_of(step_of("fs.read", {"path": "docs/a"})), "inputs": {"x": {"type": "object"}}}
    dumped(base / "plan.json", plan)
    done = _run(base, workdir, *(word.format(base=base) if word.startswith("@") else word for word in words))
    assert done.code == 2
    assert where.encode() in done.err
    assert b"Traceback" not in done.err
    assert not db_of(workdir).exists()


def _run(base: Path, workdir: Path, *words: str) -> Ran:
    places = ("--policy", base / "policy.yaml", "--workdir", workdir, "--db", db_of(workdir))
    return ran("run", base / "plan.json", *places, *words, cwd=base)


CODE = [
    "{{ ''.__class__ }}",
    "{{ ''['__class__'] }}",
    "{{ inputs.x.__init__.__globals__ }}",
    "{{ inputs.x['__class__'] }}",
    "{{ inputs.x._private }}",
    "{{ inputs.x | attr('__class__') }}",
    "{{ inputs.x | map('upper') | list }}",
    "{{ inputs.x.upper() }}",
    "{{ range(10) }}",
    "{{ cycler('a') }}",
    "{{ lipsum }}",
    "{{ self }}",
    "{{ config }}",
    "{{ [].append(1) }}",
    "{{ 2 * 3 }}",
    "{{ 'x' * 1000000000 }}",
    "{{ 9 ** 9 ** 9 }}",
    "{{ '%s' % inputs.x }}",
    "{{ inputs.x | format }}",
    "{% for i in [1] %}x{% endfor %}",
    "{% if true %}x{% endif %}",
    "{% set x = 1 %}",
    "{% import 'os' as os %}",
    "{% include '/etc/passwd' %}",
    "{{ lambda: 1 }}",
    "{{ inputs.x",
    "{{ inputs.x }} {{",
    "{{ " + "(" * 100 + "1" + ")" * 100 + " }}",
]


@pytest.mark.parametrize("template", CODE)
def test_d7_a_template_is_no_program(template: str) -> None:
    """Refused before anything runs, wherever it stands."""
    for place in ("args", "variables", "foreach"):
        plan: dict[str, Json] = {"inputs": {"x": {"type": "string", "default": "x"}}, "steps": [_step(place, template)]}
        if place == "variables":
            plan["variables"] = {"v": template}
        if place == "foreach" and not template.endswith("}}"):
            continue
        with pytest.raises(PlanError) as raised:
            Plan.parse(json.dumps(plan), format="json")
        assert raised.value.code in (3001, 3003)


def _step(place: str, template: str) -> Json:
    more: dict[str, Json] = {"foreach": template} if place == "foreach" else {}
    return step_of("fs.read", {"path": template if place == "args" else "docs/a"}, **more)


@pytest.mark.parametrize(
    "template", ["{{ inputs.x.__class__ }}", "{% include '/etc/passwd' %}", "{{ open('secret') }}"]
)
def test_d7_through_the_command_line(base: Path, workdir: Path, template: str) -> None:
    plan = {**plan_of(step_of("fs.write", {"path": "out/x", "content": template})), "inputs": {"x": {"type": "string"}}}
    dumped(base / "plan.json", plan)
    before = tree(workdir)
    done = _run(base, workdir, "--input", "x=x")
    assert done.code == 2
    assert b"plan.json:1:" in done.err
    assert not db_of(workdir).exists()
    assert tree(workdir) == before


DATA = [
    "{{ run.id }}",
    "{{ ''.__class__ }}",
    "{% for i in x %}",
    "['docs/a', 'secret']",
    '["docs/a", "secret"]',
    "{'a': 1}",
    "1",
    "true",
    "null",
    "",
    "{#",
    "}}{{",
    "\u2028\u202e<script>",
]


def test_d7_text_stays_text(base: Path, workdir: Path) -> None:
    """Given as inputs, as items of a list and as a file's content, through `capsule run`: never rendered again."""
    (workdir / "docs/template").write_text("{{ run.id }} {{ inputs.list }}")
    plan: dict[str, Json] = {
        "inputs": {"list": {"type": "array", "items": {"type": "string"}}, "one": {"type": "string"}},
        "variables": {"copy": "{{ inputs.one }}"},
        "steps": [
            step_of("fs.write", {"path": "out/one", "content": "{{ copy }}"}),
            step_of("fs.write", {"path": "out/all", "content": "{{ inputs.list | tojson }}"}),
            step_of("fs.read", {"path": "docs/template"}, store_as="got"),
            step_of("fs.write", {"path": "out/got", "content": "{{ got.content }}"}),
            step_of(
                "fs.write",
                {"path": "out/{{ item | length }}-x", "content": "{{ item }}", "mode": "overwrite"},
                foreach="{{ inputs.list }}",
            ),
        ],
    }
    dumped(base / "plan.json", plan)
    dumped(base / "inputs.json", {"list": DATA, "one": DATA[0]})
    done = _run(base, workdir, "--input", f"@{base / 'inputs.json'}")
    assert done.code == 0, done.err
    assert (workdir / "out/one").read_text() == DATA[0]
    assert (workdir / "out/got").read_text() == "{{ run.id }} {{ inputs.list }}"
    assert json.loads((workdir / "out/all").read_text()) == DATA
    sent = [body["args"] for body in bodies(db_of(workdir), "intent")][4:]
    assert [args["content"] for args in sent if isinstance(args, Mapping)] == DATA


@pytest.mark.parametrize("text", ["['docs/a']", "docs/a", "", "[]"])
def test_d7_text_never_turns_into_a_list(base: Path, workdir: Path, text: str) -> None:
    plan: dict[str, Json] = {
        "inputs": {"x": {"type": "string"}},
        "steps": [step_of("fs.read", {"path": "{{ item }}"}, foreach="{{ inputs.x }}")],
    }
    dumped(base / "plan.json", plan)
    done = _run(base, workdir, "--input", f"x={text}")
    assert done.code == 1
    assert [record.kind for record in records(db_of(workdir))] == ["start", "refused", "end"]
    error = bodies(db_of(workdir), "refused")[0]["error"]
    assert isinstance(error, Mapping)
    assert error["code"] == 3003


@pytest.mark.parametrize(
    ("given", "path", "number"),
    [
        ("", "{{ inputs.x }}/secret", 1001),
        ("", "{{ inputs.x }}", 2002),
        ("", "{{ inputs.x }}/", 1001),
        ("", "docs/{{ inputs.x }}", 1001),
        ("..", "docs/{{ inputs.x }}/secret", 1001),
        ("../secret", "docs/{{ inputs.x }}", 1001),
        ("/", "{{ inputs.x }}secret", 1001),
        ("~", "{{ inputs.x }}/x", 1001),
        ("*", "docs/{{ inputs.x }}", 2003),
        ("{a,b}", "docs/{{ inputs.x }}", 2003),
        ("[ab]", "docs/{{ inputs.x }}", 2003),
        ("**", "{{ inputs.x }}", 1001),
        ("a", "docs/{{ inputs.x }}", None),
    ],
)
def test_d7_an_input_is_a_name_and_never_a_pattern(
    workdir: Path, base: Path, given: str, path: str, number: int | None
) -> None:
    plan = {"inputs": {"x": {"type": "string"}}, **plan_of(step_of("fs.read", {"path": path}))}
    planned(workdir, plan, POLICY, {"x": given})
    (ended,) = [record.body for record in records(db_of(workdir)) if record.kind in ("outcome", "refused")]
    error = ended.get("error")
    assert (error["code"] if isinstance(error, Mapping) else None) == number


@pytest.mark.parametrize("given", ["", "/", "..", "~", "../../..", "/**", "./../.."])
def test_d7_an_empty_input_does_not_open_the_whole_disk(workdir: Path, base: Path, given: str) -> None:
    """`{{ x }}/**` with nothing for x is the classic: here no argument is a pattern but the one of a listing."""
    steps = [
        step_of("fs.list", {"path": "{{ inputs.x }}/"}, continue_on_error=True),
        step_of("fs.list", {"path": "docs", "pattern": "{{ inputs.x }}/**"}, continue_on_error=True),
        step_of("fs.list", {"path": "docs", "pattern": "{{ inputs.x }}**"}, continue_on_error=True),
    ]
    before = tree(workdir)
    planned(workdir, {"inputs": {"x": {"type": "string"}}, "steps": steps}, POLICY, {"x": given})
    for outcome in bodies(db_of(workdir), "outcome"):
        output = outcome.get("output")
        entries = output["entries"] if isinstance(output, Mapping) else []
        assert isinstance(entries, Sequence)
        assert {str(entry["path"]) for entry in entries if isinstance(entry, Mapping)} <= {"a", "b"}
    assert newest(db_of(workdir)).status is RunStatus.COMPLETED
    assert tree(workdir) == before


def test_d7_a_tool_is_never_named_by_data() -> None:
    for tool in ("{{ inputs.tool }}", "fs.{{ inputs.tool }}"):
        plan = {"inputs": {"tool": {"type": "string"}}, **plan_of(step_of(tool, {}))}
        with pytest.raises(PlanError):
            Plan.parse(json.dumps(plan), format="json")


def test_d7_neither_are_arguments(workdir: Path, base: Path) -> None:
    """Keys are no templates, so no input can add one or choose one."""
    plan = {
        "inputs": {"key": {"type": "string"}},
        **plan_of(step_of("fs.read", {"{{ inputs.key }}": "docs/a"})),
    }
    planned(workdir, plan, POLICY, {"key": "path"})
    (refused,) = bodies(db_of(workdir), "refused")
    error = refused["error"]
    assert isinstance(error, Mapping)
    assert error["code"] == 2002
