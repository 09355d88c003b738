"""What a plan would be allowed to do, told without doing or recording anything."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from gated import db_of, grown, tree

from capsule.canon import Json
from capsule.errors import PlanError
from capsule.gate import Opening
from capsule.plans import Foreseen, Plan, dry_run
from capsule.policy import Policy
from capsule.settings import Settings

POLICY = """
rules:
  - {id: docs, action: allow, tool: fs.read, constraints: {path: {pattern: ./docs/**}, max_calls: 2}}
  - {id: out, action: ask, tool: fs.write, constraints: {path: {pattern: "./out/*"}}}
limits: {calls: 4}
"""


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    workdir = grown(tmp_path.resolve() / "ws", docs__a="text of a", other__c="c")
    (workdir / "docs/link").symlink_to("../other/c")
    return workdir


def foresee(workdir: Path, text: str, policy: str = POLICY, given: Mapping[str, Json] | None = None) -> list[Foreseen]:
    plan = Plan.parse(text)
    opening = Opening(
        settings=Settings.load(os.environ), policies=[Policy.parse(policy)], workdir=workdir, db=db_of(workdir)
    )
    return list(dry_run(plan, plan.read_inputs(given or {}), opening))


def told(step: Foreseen) -> tuple[str, str | None, int | None]:
    decision = step.decision
    if decision is None:
        return step.step_id, None, step.code
    return step.step_id, decision.effect.value, decision.code


def test_each_step_is_decided_as_if_those_before_had_run(workdir: Path) -> None:
    text = """
inputs: {files: {type: array, default: [docs/a, other/c, docs/none, docs/a]}}
steps:
  - {id: each, tool: fs.read, foreach: "{{ inputs.files }}", args: {path: "{{ item }}"}}
  - {id: write, tool: fs.write, args: {path: out/x, content: x}}
  - {id: write2, tool: fs.write, args: {path: out/x, content: x}}
  - {id: over, tool: fs.write, args: {path: out/x, content: x}}
"""
    assert [told(step) for step in foresee(workdir, text)] == [
        ("each[0]", "allow", None),
        ("each[1]", "deny", 1001),
        ("each[2]", "allow", None),
        ("each[3]", "deny", 1006),
        ("write", "ask", None),
        ("write2", "ask", None),
        ("over", "deny", 1006),
    ]


def test_what_only_the_run_will_know_is_said_to_be_unknown(workdir: Path) -> None:
    text = """
steps:
  - {id: one, tool: fs.read, args: {path: docs/a}}
  - {id: then, tool: fs.read, args: {path: "{{ steps.one.output.content }}"}}
  - {id: each, tool: fs.read, foreach: "{{ steps.one.output.list }}", args: {path: "{{ item }}"}}
  - {id: odd, tool: fs.raed, args: {path: x}}
  - {id: bad, tool: fs.read, args: {pth: x}}
"""
    one, then, each, odd, bad = foresee(workdir, text)
    assert told(one) == ("one", "allow", None)
    for step in (then, each):
        assert (step.decision, step.code) == (None, None)
        assert "not known before the run" in str(step.note)
    assert (odd.code, bad.code) == (2001, 2002)
    assert then.as_json() == {"step_id": "then", "tool": "fs.read", "decision": None, "note": then.note, "code": None}


def test_a2_the_disk_is_looked_at(workdir: Path) -> None:
    step = "steps: [{tool: fs.read, args: {path: docs/link}}]"
    (foreseen,) = foresee(workdir, step)
    assert told(foreseen) == ("step_1", "deny", 1001)
    assert foreseen.decision is not None
    assert foreseen.decision.resolved == "disk"


def test_f2_what_would_be_in_use_is_protected(workdir: Path) -> None:
    """The same answer that the run would give: plan and policy are not written."""
    policy = grown(workdir, **{"policy.yaml": POLICY.replace('"./out/*"', '"./**"')}) / "policy.yaml"
    each = "{tool: fs.write, foreach: [policy.yaml, plan.yaml], args: {path: '{{ item }}', content: x}}"
    text = f"steps: [{each}]"
    (workdir / "plan.yaml").write_text(text)
    opening = Opening(
        settings=Settings.load(os.environ), policies=[Policy.load(policy)], workdir=workdir, db=db_of(workdir)
    )
    steps = dry_run(Plan.load(workdir / "plan.yaml"), {}, opening)
    assert [told(step)[1:] for step in steps] == [("deny", 1001), ("deny", 1001)]


def test_nothing_is_made_or_changed(workdir: Path, isolated_home: Path) -> None:
    before = tree(workdir), tree(isolated_home)
    foresee(
        workdir, "steps: [{tool: fs.read, args: {path: docs/a}}, {tool: fs.write, args: {path: out/x, content: x}}]"
    )
    assert (tree(workdir), tree(isolated_home)) == before
    assert not db_of(workdir).parent.exists()


def test_a_variable_that_cannot_be_made_is_an_error(workdir: Path) -> None:
    with pytest.raises(PlanError) as raised:
        foresee(
            workdir,
            "inputs: {a: {type: object, default: {}}}\nvariables: {v: '{{ inputs.a.b }}'}\nsteps: [{tool: fs.read}]",
        )
    assert raised.value.code == 3003


def test_rates_are_waited_for_as_long_as_the_run_may_take(workdir: Path) -> None:
    policy = """
rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: ./docs/**}, rate_limit: {requests_per_minute: 1}}}]
"""
    text = "steps:\n" + "  - {tool: fs.read, args: {path: docs/a}}\n" * 3
    allowed = [("step_1", "allow", None), ("step_2", "allow", None), ("step_3", "allow", None)]
    assert [told(step) for step in foresee(workdir, text, policy)] == allowed
    bounded = f"{policy}limits: {{wall_time: 90s}}"
    assert [told(step) for step in foresee(workdir, text, bounded)] == [*allowed[:2], ("step_3", None, 7003)]
