"""`capsule verify`"""

from __future__ import annotations

from pathlib import Path

import pytest
from typed import Typed, WritePlan

READ = "- {id: read, tool: fs.read, args: {path: docs/a.md}}"


@pytest.fixture
def heads(capsule: Typed, plan: WritePlan) -> dict[str, str]:
    """Two runs with their heads."""
    for _ in range(2):
        capsule("run", plan(READ), "--policy", "policy.yaml", "--db", "runs.db")
    return {run["run_id"]: run["head"] for run in capsule("verify", "--db", "runs.db", "--json").json["runs"]}


@pytest.mark.parametrize("words", [[], ["--all"]], ids=["", "--all"])
def test_all_runs(capsule: Typed, heads: dict[str, str], words: list[str]) -> None:
    ran = capsule("verify", "--db", "runs.db", *words)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        *(f"✓ {run_id}  4 records  {head}" for run_id, head in heads.items()),
        "2 runs, 0 broken",
    ]


def test_one_run(capsule: Typed, heads: dict[str, str]) -> None:
    run_id, head = next(iter(heads.items()))
    ran = capsule("verify", run_id, "--db", "runs.db")
    assert ran.out == f"✓ {run_id}  4 records  {head}\n1 run, 0 broken\n"
    assert capsule("show-run", run_id, "--db", "runs.db", "--json").json["run"]["head"] == head


def test_a_head_that_was_kept_must_be_there(capsule: Typed, heads: dict[str, str]) -> None:
    first, second = heads.values()
    run_id = next(iter(heads))
    assert capsule("verify", "--db", "runs.db", "--head", second).code == 0
    assert capsule("verify", run_id, "--db", "runs.db", "--head", first).code == 0
    lost = capsule("verify", run_id, "--db", "runs.db", "--head", second, "--json")
    assert (lost.code, lost.json["ok"]) == (4, False)
    assert second in lost.json["problem"]


@pytest.mark.parametrize(
    ("words", "message"),
    [(["last", "--all"], "name a run, or give --all"), (["--head", "AB" * 32], "a head is 64 lower-case hexadecimal")],
)
def test_wrong_usage(capsule: Typed, heads: dict[str, str], words: list[str], message: str) -> None:
    ran = capsule("verify", "--db", "runs.db", *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_what_was_altered_is_named(capsule: Typed, heads: dict[str, str], project: Path) -> None:
    db = project / "runs.db"
    first = next(iter(heads))
    data = db.read_bytes()
    at = data.find(b"docs/a.md")
    db.write_bytes(data[:at] + b"docs/b.md" + data[at + 9 :])
    ran = capsule("verify", "--db", "runs.db", "--json")
    assert ran.code == 4
    broken = [run for run in ran.json["runs"] if not run["ok"]]
    assert [run["run_id"] in heads for run in broken] == [True]
    assert broken[0]["breach"]["seq"] > 1
    assert broken[0]["breach"]["message"]
    others = [run["run_id"] for run in ran.json["runs"] if run["ok"]]
    assert capsule("verify", others[0], "--db", "runs.db").code == 0
    assert first in heads
