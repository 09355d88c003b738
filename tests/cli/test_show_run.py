"""`capsule show-run`, and how a run is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from typed import Typed, WritePlan

STEPS = """\
- {id: read, tool: fs.read, args: {path: docs/a.md}}
- {id: lost, tool: fs.read, args: {path: docs/none.md}, continue_on_error: true}
- {id: peek, tool: fs.read, args: {path: .env}}
- {id: never, tool: fs.list, args: {path: docs}}
"""


@pytest.fixture
def run_id(capsule: Typed, plan: WritePlan) -> str:
    found = capsule("run", plan(STEPS), "--policy", "policy.yaml", "--json").json["run_id"]
    assert isinstance(found, str)
    return found


def test_each_step_is_a_line(capsule: Typed, run_id: str, project: Path) -> None:
    first, *steps, last = capsule("show-run", run_id).out.splitlines()
    assert first.startswith(f"Run {run_id[-8:]} denied · ")
    assert first.endswith(f" · {project.resolve()}")
    assert [line.rpartition("  ")[0] if line.endswith(" ms") else line for line in steps] == [
        "  ✓ read  fs.read  docs/a.md",
        "  ✗ lost  fs.read  docs/none.md",
        "      2003 cannot read docs/none.md: there is no such file",
        "      hint: fs.list shows what is there",
        "  ⊘ peek  fs.read  .env",
        "      1001 no rule allows ./.env",
        "  · never  fs.list  ",
    ]
    assert last.startswith("denied: 4 steps, 1 completed, 1 denied, 1 failed, 1 skipped · ")


def test_as_json_it_is_a_part_of_the_report(capsule: Typed, run_id: str) -> None:
    shown, report = capsule("show-run", run_id, "--json").json, capsule("report", run_id, "--json").json
    assert shown == {"run": report["run"], "steps": report["steps"]}


@pytest.mark.parametrize("reference", [slice(None), slice(-8, None), slice(-4, None), slice(0, 20), "upper", "last"])
def test_a_run_has_many_names(capsule: Typed, run_id: str, reference: slice | str) -> None:
    name = run_id[reference] if isinstance(reference, slice) else run_id.upper() if reference == "upper" else reference
    for command in ("show-run", "report", "verify"):
        assert capsule(command, name).code == 0


@pytest.mark.parametrize("reference", ["", "0", "abc", "zzzzzzzz", "first", "*", "../a", "0" * 5000, "\x00"])
def test_what_names_no_run_is_4001(capsule: Typed, run_id: str, reference: str) -> None:
    ran = capsule("show-run", "--json", "--", reference)
    assert (ran.code, ran.json["error"]["code"]) == (2, 4001)
    assert "Traceback" not in ran.err


def test_a_name_that_fits_several_says_which(capsule: Typed, plan: WritePlan, run_id: str) -> None:
    second = capsule("run", plan(STEPS), "--policy", "policy.yaml", "--json").json["run_id"]
    ran = capsule("show-run", run_id[:4])
    assert ran.code == 2
    assert "names 2 runs" in ran.err
    assert run_id in ran.err
    assert second in ran.err


def test_last_is_of_this_directory(
    capsule: Typed, run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("show-run", "report", "verify"):
        ran = capsule(command, "last")
        assert ran.code == 2
        assert f"there is no run of {tmp_path.resolve()} yet" in ran.err
