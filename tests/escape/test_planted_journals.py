"""E, F1: a journal that came with somebody else's files, and what may stand beside it."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from gated import gate_of, grown, write
from journals import START, end, forge, intent, open_store, outcome, recorded_run

from capsule.errors import StorageError
from capsule.store import Store
from capsule.store.reserve import give_up_reserve

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


def _with_schema(path: Path, statement: str, *values: object) -> None:
    """What SQLite's own language would refuse to make."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute(statement, values)
        version = db.execute("PRAGMA schema_version").fetchone()[0]
        db.execute(f"PRAGMA schema_version = {version + 1}")
        db.commit()


_PLANT = (
    "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES ('trigger', 'sqlite_x', 'records', 0, ?)"
)


@pytest.mark.parametrize("when", ["", "WHEN NEW.seq > 1"])
def test_e4_a_trigger_with_a_name_like_sqlites_own_swallows_nothing(
    workdir: Path, path: Path, store: Store, when: str
) -> None:
    ignore = f"CREATE TRIGGER sqlite_x BEFORE INSERT ON records {when} BEGIN SELECT RAISE(IGNORE); END"
    _with_schema(path, _PLANT, ignore)
    with pytest.raises(StorageError, match="the trigger sqlite_x is not Capsule's"), gate_of(workdir, POLICY) as gate:
        gate.call(write("out/new"))
    assert not (workdir / "out/new").exists()
    assert not open_store(path, readonly=True).verify().ok


def test_e4_a_record_that_is_swallowed_while_a_run_goes_on_is_noticed(workdir: Path, path: Path, store: Store) -> None:
    with gate_of(workdir, POLICY) as gate:
        _with_schema(path, _PLANT, "CREATE TRIGGER sqlite_x BEFORE INSERT ON records BEGIN SELECT RAISE(IGNORE); END")
        with pytest.raises(StorageError, match="takes no record") as caught:
            gate.call(write("out/new"))
        _with_schema(path, "DELETE FROM sqlite_master WHERE name = 'sqlite_x'")
    assert caught.value.code == 5004
    assert not (workdir / "out/new").exists()


def test_e1_an_index_that_hides_a_run_is_named(path: Path, store: Store) -> None:
    hidden = recorded_run(store)
    made = "SELECT sql FROM sqlite_master WHERE name = 'runs_begun'"
    with closing(sqlite3.connect(path)) as db:
        before = db.execute(made).fetchone()[0]
    change = "UPDATE sqlite_master SET sql = ? WHERE name = 'runs_begun'"
    _with_schema(path, change, f"{before} AND run_id <> x'{hidden.replace('-', '')}'")
    with closing(sqlite3.connect(path)) as db:
        db.execute("REINDEX runs_begun")
    _with_schema(path, change, before)
    found = open_store(path, readonly=True)
    assert hidden not in [run.run_id for run in found.runs()]
    assert f"the index of runs hides run {hidden}" in str(found.verify().problem)
    assert found.verify(hidden).ok
    assert found.run(hidden).run_id == hidden


def test_statistics_that_sqlite_keeps_are_not_strange(path: Path, store: Store) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("ANALYZE")
    recorded_run(open_store(path))
    assert open_store(path, readonly=True).verify().ok


def test_e4_what_is_planted_where_the_reserve_lies_changes_nothing(path: Path) -> None:
    path.parent.mkdir()
    path.with_name("runs.db-reserve").mkdir()
    store = open_store(path)
    recorded_run(store)
    give_up_reserve(path)
    assert store.verify().ok


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


def test_e4_a_forked_child_that_leaves_its_block_takes_nothing_from_its_parent(path: Path) -> None:
    store = open_store(path)
    run = store.begin(START)
    run.append("intent", intent(1))
    run.append("outcome", outcome(1), hold=True)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.run(run.run_id).status.value == "running"
    run.end(end())
    assert store.verify().ok
    assert store.run(run.run_id).records == 4


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
