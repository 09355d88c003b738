"""`capsule list-runs`"""

from __future__ import annotations

import re

import pytest
from typed import Typed, WritePlan

STEPS = {
    "completed": "- {tool: fs.read, args: {path: docs/a.md}}",
    "denied": "- {tool: fs.read, args: {path: .env}}",
    "failed": "- {tool: fs.read, args: {path: docs/none.md}}",
}


@pytest.fixture
def runs(capsule: Typed, plan: WritePlan) -> list[str]:
    """One run of each ending, oldest first."""
    return [capsule("run", plan(steps), "--policy", "policy.yaml", "--json").json["run_id"] for steps in STEPS.values()]


def test_the_newest_is_first(capsule: Typed, runs: list[str]) -> None:
    lines = capsule("list-runs").out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        [run_id[-8:], status] for run_id, status in zip(reversed(runs), reversed(STEPS), strict=True)
    ]
    assert re.fullmatch(r"\w{8}  denied +\S+T\S+  plan  0/1 steps, 1 denied", lines[1])


@pytest.mark.parametrize("status", STEPS)
def test_runs_of_one_status(capsule: Typed, runs: list[str], status: str) -> None:
    found = capsule("list-runs", "--status", status, "--json").json
    assert [run["run_id"] for run in found] == [runs[list(STEPS).index(status)]]


@pytest.mark.parametrize("option", ["-n", "--limit"])
def test_only_so_many(capsule: Typed, runs: list[str], option: str) -> None:
    assert [run["run_id"] for run in capsule("list-runs", option, "2", "--json").json] == runs[:0:-1]


def test_as_json_a_run_says_what_it_was(capsule: Typed, runs: list[str]) -> None:
    newest = capsule("list-runs", "--json").json[0]
    assert list(newest) == ["run_id", "status", "mode", "created_at", "plan", "workdir", "counts"]
    assert (newest["status"], newest["mode"], newest["plan"], newest["counts"]["failed"]) == (
        "failed",
        "run",
        "plan",
        1,
    )


def test_none_is_said(capsule: Typed, runs: list[str]) -> None:
    assert capsule("list-runs", "--status", "interrupted").out == "no runs are interrupted\n"
    assert capsule("list-runs", "--status", "interrupted", "--json").json == []


def test_before_the_first_run_there_is_no_journal(capsule: Typed) -> None:
    ran = capsule("list-runs")
    assert ran.code == 5
    assert ran.err.splitlines()[1] == "  hint: `capsule run` makes one; see also --db"
