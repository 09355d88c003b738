"""`capsule demo`"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from typed import Typed


def test_it_shows_a_run_its_report_and_its_check(capsule: Typed, project: Path) -> None:
    before = sorted(project.rglob("*"))
    ran = capsule("demo")
    assert ran.code == 0
    assert re.findall(r"^▸ capsule ([\w-]+)", ran.out, re.MULTILINE) == ["run", "report", "verify"]
    assert "⊘ peek  fs.read  1001 no rule allows ./.env" in ran.err
    assert "(exit code 3: something was denied; this is a demo and goes on)" in ran.out
    assert "1 run, 0 broken" in ran.out
    assert sorted(project.rglob("*")) == before


def test_nothing_of_it_stays(capsule: Typed, isolated_home: Path) -> None:
    before = os.environ.get("CAPSULE_HOME")
    assert capsule("demo").code == 0
    assert not (isolated_home / ".capsule").exists()
    assert os.environ.get("CAPSULE_HOME") == before


def test_the_temporary_directory_is_gone(capsule: Typed) -> None:
    found = re.search(r" · (/\S*capsule-demo-\w+)$", capsule("demo").out, re.MULTILINE)
    assert found
    assert not Path(found[1]).exists()


def test_a_directory_is_kept_and_can_be_played_with(
    capsule: Typed, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = capsule("demo", "--dir", "new/demo")
    assert ran.code == 0
    assert "  cd new/demo\n" in ran.out
    monkeypatch.chdir(project / "new" / "demo")
    assert Path("out/summary.md").read_text().startswith("2 notes; the first one says:\n\n# Monday")
    assert capsule("policy", "explain", "--policy", "policy.yaml", "fs.read", "path=.env").out.startswith("deny 1001")
    assert capsule("show-run", "last", "--db", "runs.db").code == 0
    assert capsule("run", "plan.yaml", "--policy", "policy.yaml", "--db", "runs.db").code == 3
    assert len(capsule("list-runs", "--db", "runs.db", "--json").json) == 2


def test_an_empty_directory_will_do(capsule: Typed, project: Path) -> None:
    (project / "empty").mkdir()
    assert capsule("demo", "--dir", "empty").code == 0


@pytest.mark.parametrize(
    ("directory", "message"),
    [("docs", "docs is not empty"), ("policy.yaml", "policy.yaml: "), ("policy.yaml/a", "Not a directory")],
)
def test_what_is_there_is_left_alone(capsule: Typed, project: Path, directory: str, message: str) -> None:
    before = sorted(project.rglob("*"))
    ran = capsule("demo", "--dir", directory)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert sorted(project.rglob("*")) == before
