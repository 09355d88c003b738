"""E, F1: a journal that came with somebody else's files, and what may stand beside it."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from gated import gate_of, grown, write
from journals import START, forge, open_store, recorded_run

from capsule.errors import StorageError
from capsule.store import Store

POLICY = 'rules: [{action: allow, tool: fs.write, constraints: {path: {pattern: "./out/*"}}}]'
SWALLOW = """CREATE TRIGGER swallow AFTER INSERT ON records WHEN NEW.seq > 1
    BEGIN DELETE FROM records WHERE id = NEW.id; END"""


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    return grown(tmp_path.resolve() / "ws", out__old="old")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "runs.db"


@pytest.fixture
def store(path: Path) -> Store:
    made = open_store(path)
    recorded_run(made)
    return made


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        (SWALLOW, "the trigger swallow is not Capsule's"),
        ("DROP TRIGGER records_delete", "the trigger records_delete is missing"),
        ("DROP INDEX runs_begun", "the index runs_begun is missing"),
        ("CREATE TABLE more (a)", "the table more is not Capsule's"),
        ("DROP VIEW runs", "the view runs is missing"),
    ],
)
def test_e4_nothing_is_done_over_a_journal_that_could_swallow_its_records(
    workdir: Path, path: Path, store: Store, statement: str, named: str
) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
    with pytest.raises(StorageError, match=named) as caught, gate_of(workdir, POLICY) as gate:
        gate.call(write("out/new"))
    assert caught.value.code == 5004
    assert not (workdir / "out/new").exists()
    found = open_store(path, readonly=True).verify()
    assert (found.ok, all(check.ok for check in found.checks)) == (False, True)
    assert named in str(found.problem)


def test_e1_records_that_are_a_view_are_not_read(path: Path, store: Store) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n"
    with closing(sqlite3.connect(path)) as db:
        for (view,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
            db.execute(f"DROP VIEW {view}")
        db.execute("ALTER TABLE records RENAME TO moved")
        db.execute(f"CREATE VIEW records AS {endless}")
    begun = time.monotonic()
    with pytest.raises(StorageError, match="cannot be understood"):
        open_store(path, readonly=True)
    assert time.monotonic() - begun < 1


@pytest.mark.parametrize("name", ["draft-thesis.txt", "draft", "create", "018bcfe5-6801-730d-8309-ac76f5f092fb"])
@pytest.mark.parametrize("there", [True, False])
def test_f1_a_planted_directory_of_locks_takes_no_file_away(path: Path, name: str, there: bool) -> None:
    victim = path.parent / "victim" / name
    victim.parent.mkdir(parents=True)
    victim.write_text("kept")
    if there:
        recorded_run(open_store(path))
    path.with_name("runs.db-locks").symlink_to("victim")
    with pytest.raises(StorageError):
        open_store(path).begin(START)
    assert victim.read_text() == "kept"
    assert [entry.name for entry in victim.parent.iterdir()] == [name]


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_f1_a_fifo_beside_the_journal_does_not_hold_it_up(path: Path, store: Store, ending: str) -> None:
    beside = path.with_name(path.name + ending)
    beside.unlink(missing_ok=True)
    os.mkfifo(beside)
    for readonly in (True, False):
        begun = time.monotonic()
        with pytest.raises(StorageError, match="is not a regular file"):
            open_store(path, readonly=readonly)
        assert time.monotonic() - begun < 1


def test_f1_a_fifo_for_a_lock_does_not_hold_it_up(path: Path) -> None:
    store = open_store(path)
    with store.begin(START) as run:
        pass
    locks = path.with_name("runs.db-locks")
    locks.mkdir(exist_ok=True)
    os.mkfifo(locks / run.run_id)
    assert store.run(run.run_id).status.value == "interrupted"


def test_e4_a_forked_child_neither_keeps_the_run_running_nor_writes_in_it(path: Path) -> None:
    store = open_store(path)
    run = store.begin(START)
    child = os.fork()
    if child == 0:
        try:
            run.append("wait", {})
        except StorageError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.run(run.run_id).status.value == "running"
    lingering = os.fork()
    if lingering == 0:
        time.sleep(60)
        os._exit(0)
    run.close()
    try:
        assert store.run(run.run_id).status.value == "interrupted"
        assert store.verify().ok
    finally:
        os.kill(lingering, 9)
        os.waitpid(lingering, 0)


@pytest.mark.parametrize(
    "body",
    ['{"at":100000000000000000}', '{"counts":{"total":"\\u001b[2J"},"status":"completed"}', '{"status":"weird"}'],
)
def test_e5_a_forged_record_is_not_understood_or_plain(path: Path, store: Store, body: str) -> None:
    forge(path, "UPDATE records SET body = ? WHERE kind = 'end'", values=(body,))
    with pytest.raises(StorageError, match="cannot be understood"):
        open_store(path, readonly=True).runs()
