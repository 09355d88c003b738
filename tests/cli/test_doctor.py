"""`capsule doctor`"""

from __future__ import annotations

from pathlib import Path

import pytest
from journals import mounted
from typed import Typed, WritePlan


def test_a_healthy_machine(capsule: Typed, isolated_home: Path) -> None:
    ran = capsule("doctor")
    assert (ran.code, ran.err) == (0, "")
    assert f"{isolated_home}/.capsule/runs.db does not exist yet; the first run makes it" in ran.out
    assert not (isolated_home / ".capsule").exists(), "looking changes nothing"


def test_as_json_each_check_has_a_state(capsule: Typed) -> None:
    found = capsule("doctor", "--json").json
    checks = {check["name"]: check for check in found["checks"]}
    assert {"python", "capsule", "journal", "system"} <= set(checks)
    assert {check["state"] for check in checks.values()} <= {"ok", "warn"}
    assert all(check["hint"] for check in checks.values() if check["state"] == "warn")
    assert found["machine"]["system"]


def test_the_newest_run_is_named(capsule: Typed, plan: WritePlan) -> None:
    name = plan("- {tool: fs.read, args: {path: docs/a.md}}")
    run_id = capsule("run", name, "--policy", "policy.yaml", "--db", "runs.db", "--json").json["run_id"]
    assert f"runs.db, newest run {run_id}" in capsule("doctor", "--db", "runs.db").out


def test_a_journal_that_is_none_is_a_fault(capsule: Typed, project: Path) -> None:
    (project / "runs.db").write_text("Dear diary,\n")
    ran = capsule("doctor", "--db", "runs.db")
    assert ran.code == 1
    assert "✗ journal" in ran.out
    assert "it is not an SQLite file" in ran.out
    assert "    name another file with --db" in ran.out


def test_a_home_that_cannot_be_made_is_a_fault(capsule: Typed, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "sealed").mkdir()
    monkeypatch.setenv("CAPSULE_HOME", str(project / "sealed" / "home"))
    with mounted(project / "sealed", "-t", "tmpfs", "-o", "ro", "tmpfs"):
        ran = capsule("doctor")
    assert ran.code == 1
    assert "✗ home" in ran.out
    assert "set CAPSULE_HOME" in ran.out


def test_a_foreign_package_of_the_same_name_is_a_fault(process: Typed, tmp_path: Path) -> None:
    metadata = tmp_path / "site" / "capsule-9.9.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: capsule\nVersion: 9.9\n")
    ran = process("doctor", PYTHONPATH=str(tmp_path / "site"))
    assert ran.code == 1
    assert "✗ foreign package  capsule 9.9 is installed" in ran.out
    assert "pip uninstall capsule" in ran.out
