"""A running tool holds the grant of its call and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from gated import Made, bodies, code, gate_of, grown, made, read, tree, write

from capsule.calls import Context, Guard, Source, ToolCall
from capsule.canon import Json

POLICY = """
rules:
  - {id: all, action: allow, tool: ["fs.*", made.tool], constraints: {paths: {pattern: ./**}}}
  - {action: deny, tool: "*", constraints: {paths: {patterns: ["**/secret", ./docs/hide]}}}
  - {id: make, action: allow, tool: fs.write, constraints: {path: {patterns: [./Makefile, ./.github/workflows/ci.yml]}}}
"""


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    return grown(
        tmp_path.resolve() / "ws", docs__a="a", docs__b="b", docs__secret="s", docs__hide__h="h", docs__sub__c="c"
    )


def _reading(act: Callable[[Context], object], guard: Guard = Guard.READ_PATH) -> Made:
    return made(lambda args, context: act(context), guard=guard)


ACTS: dict[str, tuple[Guard, Callable[[Context], object]]] = {
    "writes what it may read": (
        Guard.READ_PATH,
        lambda context: context.write("path", b"x", mode="overwrite", create_dirs=False),
    ),
    "reads what it may write": (Guard.WRITE_PATH, lambda context: context.read("path", offset=0, length=None)),
    "lists what it may write": (
        Guard.WRITE_PATH,
        lambda context: context.list("path", pattern="**", offset=0, limit=9),
    ),
    "reads another argument": (Guard.READ_PATH, lambda context: context.read("value", offset=0, length=None)),
    "reads by a path": (Guard.READ_PATH, lambda context: context.read("docs/b", offset=0, length=None)),
}


@pytest.mark.parametrize("name", ACTS)
def test_what_was_not_granted_is_denied(workdir: Path, name: str) -> None:
    guard, act = ACTS[name]
    before = tree(workdir)
    with gate_of(workdir, POLICY, tool=_reading(act, guard)) as gate:
        result = gate.call(ToolCall(tool="made.tool", args={"path": "docs/a"}))
    assert (result.status, code(result)) == ("denied", 1001)
    assert tree(workdir) == before


def test_what_was_granted_is_done(workdir: Path) -> None:
    def act(context: Context) -> Json:
        return context.read("path", offset=0, length=None).data.decode()

    with gate_of(workdir, POLICY, tool=_reading(act)) as gate:
        assert gate.call(ToolCall(tool="made.tool", args={"path": "docs/a"})).output == "a"
        assert code(gate.call(ToolCall(tool="made.tool", args={"path": "docs/secret"}))) == 1001


def test_a_tool_knows_its_run_its_step_and_its_time(workdir: Path) -> None:
    def act(context: Context) -> Json:
        left = context.deadline - os.times().elapsed
        return [context.run_id, context.step_id, str(context.workdir), 0 < left <= 5]

    policy = POLICY.replace("pattern: ./**}", "pattern: ./**}, timeout: 5s")
    with gate_of(workdir, policy, tool=_reading(act)) as gate:
        output = gate.call(ToolCall(tool="made.tool", args={"path": "docs/a"})).output
    assert isinstance(output, list)
    assert output[:3] == [gate.run_id, "step_1", str(workdir)]


def test_a2_a_link_that_appears_after_the_decision_is_denied(workdir: Path) -> None:
    """The tool itself puts it there, between the grant and the act."""
    (workdir.parent / "outside").write_text("outside")

    def act(args: Mapping[str, Json], context: Context) -> object:
        (workdir / "docs/a").unlink()
        (workdir / "docs/a").symlink_to(str(args["path"]) and "secret")
        return context.read("path", offset=0, length=None).data.decode()

    with gate_of(workdir, POLICY, tool=made(act, guard=Guard.READ_PATH)) as gate:
        result = gate.call(ToolCall(tool="made.tool", args={"path": "docs/a"}))
    assert (result.status, code(result), result.output) == ("denied", 1001, None)


def test_only_what_may_be_read_is_listed(workdir: Path, db: Path) -> None:
    with gate_of(workdir, POLICY) as gate:
        output = gate.call(ToolCall(tool="fs.list", args={"path": "docs"}, source=Source.PLAN)).output
    assert isinstance(output, Mapping)
    entries = output["entries"]
    assert isinstance(entries, list)
    assert [entry["path"] for entry in entries] == ["a", "b", "sub", "sub/c"]
    assert len(bodies(db, "intent")) == 1


def test_what_is_listed_counts_for_nothing(workdir: Path) -> None:
    policy = POLICY.replace("pattern: ./**}", "pattern: ./**}, max_calls: 2")
    with gate_of(workdir, policy) as gate:
        listing = ToolCall(tool="fs.list", args={"path": "docs"})
        assert [code(gate.call(listing)) for _ in range(3)] == [None, None, 1006]


def test_a_hard_link_is_flagged(workdir: Path, db: Path) -> None:
    (workdir / "docs/also").hardlink_to(workdir / "docs/a")
    with gate_of(workdir, POLICY) as gate:
        assert gate.call(read("docs/a")).flags == ("hard_link",)
        assert gate.call(read("docs/b")).flags == ()
    first, second = bodies(db, "outcome")
    assert (first["flags"], "flags" in second) == (["hard_link"], False)


def test_a10_what_runs_later_is_flagged_in_grant_and_result(workdir: Path, db: Path) -> None:
    with gate_of(workdir, POLICY) as gate:
        for path, flags in (
            ("Makefile", ("runs_later",)),
            ("docs/new", ()),
            (".github/workflows/ci.yml", ("runs_later",)),
        ):
            assert gate.call(write(path, create_dirs=True)).flags == flags
        assert gate.call(read("Makefile")).flags == ()
    grants = [body["grant"] for body in bodies(db, "intent")]
    assert [isinstance(grant, Mapping) and grant.get("runs_later", False) for grant in grants] == [
        True,
        False,
        True,
        False,
    ]
