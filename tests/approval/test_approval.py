"""Who says yes without a screen, and to what exactly a yes was said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capsule.approval import Bound, allow_all, bind_digest, deny_all, reads_only
from capsule.calls import BUILTIN, Answer, Approver, Decision, Effect, Question, SideEffect, Source, ToolCall
from capsule.canon import Json


def question(tool: str, side_effect: SideEffect) -> Question:
    return Question(
        call=ToolCall(tool=tool),
        call_id="run.1",
        side_effect=side_effect,
        decision=Decision(effect=Effect.ASK, resolved="disk", reason="rule ask"),
        shown={},
        digest="d",
    )


def yes(_question: Question) -> Answer:
    return Answer(approved=True, by="somebody")


APPROVERS: dict[str, Approver] = {
    "deny": deny_all,
    "all": allow_all,
    "reads": reads_only(deny_all),
    "reads, then somebody": reads_only(yes),
}


@pytest.mark.parametrize(
    ("approver", "tool", "side_effect", "approved", "by"),
    [
        ("deny", "fs.read", SideEffect.READ, False, "no approver"),
        ("all", "fs.write", SideEffect.WRITE, True, "--approve all"),
        ("reads", "fs.read", SideEffect.READ, True, "--approve reads"),
        ("reads", "fs.write", SideEffect.WRITE, False, "no approver"),
        ("reads", "http.get", SideEffect.AUTH, False, "no approver"),
        ("reads, then somebody", "shell.run", SideEffect.WRITE, True, "somebody"),
    ],
)
def test_approvers(approver: str, tool: str, side_effect: SideEffect, approved: bool, by: str) -> None:
    answer = APPROVERS[approver](question(tool, side_effect))
    assert (answer.approved, answer.by) == (approved, by)


BOUND = Bound(
    run_id="run",
    definition=BUILTIN["shell.run"],
    source=Source.PLAN,
    args={"command": ["git", "status"]},
    executables=[{"path": "/usr/bin/git", "device": 1, "inode": 2, "sha256": "00"}],
    grant={"commands": [{"sandbox": {"read": ["."]}}]},
    policies=("p1", "p2"),
)
KEY = b"key"


CHANGED = {
    "run": replace(BOUND, run_id="other"),
    "definition": replace(BOUND, definition=replace(BOUND.definition, description="changed after approval")),
    "source": replace(BOUND, source=Source.AGENT),
    "argument": replace(BOUND, args={"command": ["git", "push"]}),
    "added": replace(BOUND, args={"command": ["git", "status"], "cwd": "."}),
    "program": replace(BOUND, executables=[{"path": "/usr/bin/git", "device": 1, "inode": 3, "sha256": "00"}]),
    "jail": replace(BOUND, grant={"commands": [{"sandbox": {"read": [".", "/"]}}]}),
    "layers": replace(BOUND, policies=("p2", "p1")),
    "policy": replace(BOUND, policies=("p1",)),
}


@pytest.mark.parametrize("what", CHANGED)
def test_d1_a_yes_is_bound_to_everything_that_was_shown(what: str) -> None:
    assert bind_digest(CHANGED[what], key=KEY) != bind_digest(BOUND, key=KEY)


def test_the_digest_depends_on_what_is_bound_and_on_the_key_alone() -> None:
    args: dict[str, Json] = {"b": 1.0, "a": ("x",)}
    same: dict[str, Json] = {"a": ["x"], "b": 1}
    assert bind_digest(replace(BOUND, args=args), key=KEY) == bind_digest(replace(BOUND, args=same), key=KEY)
    assert bind_digest(BOUND, key=KEY) != bind_digest(BOUND, key=b"other")
