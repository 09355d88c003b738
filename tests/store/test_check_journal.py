"""The stranger's checker of the docs, as a stranger runs it: a process of its own, without this package."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from journals import FORGERIES, KILLED, beside, forge, mixed_journal, open_store, run_script

CHECKER = Path(__file__).parents[2] / "docs" / "reference" / "check_journal.py"


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("honest") / "a journal?#%.db"
    mixed_journal(path)
    return path


def check(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", CHECKER, path], capture_output=True, text=True, check=False, timeout=60
    )


def test_it_is_short_plain_and_a_stranger() -> None:
    lines = CHECKER.read_text().splitlines()
    assert len(lines) <= 60
    imported = {line.split()[1] for line in lines if line.startswith(("import ", "from "))}
    assert imported <= sys.stdlib_module_names


def test_an_honest_journal_has_a_line_for_each_run(honest: Path) -> None:
    before = honest.read_bytes()
    told = check(honest)
    found = open_store(honest).verify().checks
    assert told.stdout.splitlines() == [
        f"{run.run_id.replace('-', '')} ok, {run.records} records, {'' if run.ended else 'no end, '}head {run.head}"
        for run in found
    ]
    assert (told.returncode, told.stderr, honest.read_bytes()) == (0, "", before)


@pytest.mark.parametrize(("statements", "run", "breach"), FORGERIES.values(), ids=FORGERIES.keys())
def test_it_finds_what_verify_finds(
    honest: Path, tmp_path: Path, statements: tuple[str, ...], run: int, breach: str
) -> None:
    path = Path(shutil.copy(honest, tmp_path / "runs.db"))
    forge(path, *statements)
    told = check(path)
    assert told.returncode == 4, told
    seq = breach.split()[0]
    assert any(f"BROKEN at record {seq}: " in line for line in told.stdout.splitlines()), told.stdout


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE bodies SET data = zeroblob(9)",
        "UPDATE bodies SET codec = 'raw'",
        "UPDATE bodies SET size = size + 1",
        "UPDATE bodies SET digest = zeroblob(32) WHERE rowid = 1",
        "DELETE FROM bodies",
    ],
)
def test_it_looks_into_bodies(honest: Path, tmp_path: Path, statement: str) -> None:
    path = Path(shutil.copy(honest, tmp_path / "runs.db"))
    forge(path, statement)
    told = check(path)
    assert (told.returncode, "BROKEN at record " in told.stdout, told.stderr) == (4, True, "")


def test_it_checks_an_interrupted_run(tmp_path: Path) -> None:
    run_script(KILLED, tmp_path / "runs.db")
    database = beside(tmp_path / "runs.db")["runs.db"]
    told = check(tmp_path / "runs.db")
    assert (told.returncode, "ok, 8 records, no end, head " in told.stdout) == (0, True)
    assert (tmp_path / "runs.db").read_bytes() == database


def test_what_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no journal" * 100)
    for name in ("text", "absent"):
        told = check(tmp_path / name)
        assert (told.returncode, told.stdout) == (1, "")
        assert f"{name} cannot be read as a journal: " in told.stderr


def test_the_page_names_the_columns_there_are_and_its_query_works(honest: Path) -> None:
    page = (CHECKER.parent / "record-format.md").read_text(encoding="utf-8")
    with closing(sqlite3.connect(honest)) as db:
        for table in ("records", "bodies"):
            (named,) = re.findall(rf"^{table} +\((.*)\)$", page, re.MULTILINE)
            described = [f"{name} {kind}" for _, name, kind, *_ in db.execute(f"PRAGMA table_info({table})")]
            assert named.replace(" PRIMARY KEY", "").split(", ") == described
        (query,) = re.findall(r'runs\.db "(SELECT .*)"$', page, re.MULTILINE)
        assert db.execute(query).fetchall() == [("fs.read", "denied", 3), ("fs.read", "success", 7)]
