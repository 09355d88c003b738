"""Files of every kind under the path: ours are opened, all others are refused with a message and left as they are."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from journals import (
    KILLED,
    START,
    TickingClock,
    beside,
    end,
    intent,
    mounted,
    open_store,
    recorded_run,
    rows,
    run_script,
)

from capsule.calls import RunStatus
from capsule.errors import StorageError
from capsule.store import Store

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_store_is_private(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "runs.db"
    open_store(path)
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert [entry.name for entry in path.parent.iterdir()] == ["runs.db"]


def test_a_directory_that_was_there_keeps_its_mode(path: Path) -> None:
    path.parent.chmod(0o755)
    open_store(path)
    assert mode(path.parent) == 0o755


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    assert recorded_run(open_store(path))


def test_what_a_killed_creation_left_is_no_obstacle(path: Path) -> None:
    locks = path.with_name("runs.db-locks")
    locks.mkdir()
    for name in ("create", "draft", "draft-wal"):
        (locks / name).write_text("half")
    open_store(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["runs.db"]


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE records (a)")


def in_wal_mode(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (a)")


def with_a_wal_left_over(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (a)")
        db.commit()
        for ending in ("", "-wal"):
            shutil.copy(f"{path}{ending}", f"{path}{ending}.copy")
    for ending in ("", "-wal"):
        shutil.move(f"{path}{ending}.copy", f"{path}{ending}")


def with_a_journal_left_over(path: Path) -> None:
    of_another_program(path)
    path.with_name(path.name + "-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(504))


def text(path: Path) -> None:
    path.write_text("a plan: perhaps\n" * 100)


def newer(path: Path) -> None:
    recorded_run(open_store(path))
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")


def cut_off(path: Path) -> None:
    recorded_run(open_store(path))
    os.truncate(path, 4096)


def overwritten(path: Path) -> None:
    recorded_run(open_store(path))
    path.write_bytes(path.read_bytes()[:100] + bytes(path.stat().st_size - 100))


def without_its_tables(path: Path) -> None:
    recorded_run(open_store(path))
    with closing(sqlite3.connect(path)) as db:
        for (view,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
            db.execute(f"DROP VIEW {view}")
        db.execute("DROP TABLE records")


FOREIGN: list[tuple[Callable[[Path], None], int, str]] = [
    (of_another_program, 5001, "of another program"),
    (in_wal_mode, 5001, "of another program"),
    (with_a_wal_left_over, 5001, "of another program"),
    (with_a_journal_left_over, 5001, "runs.db"),
    (text, 5001, "not an SQLite file"),
    (newer, 5005, "schema 99"),
    (cut_off, 5003, "damaged"),
    (overwritten, 5003, "damaged"),
    (without_its_tables, 5003, "no such table"),
    (Path.mkdir, 5001, "not a regular file"),
    (os.mkfifo, 5001, "not a regular file"),
]


@pytest.mark.parametrize(("make", "code", "message"), FOREIGN, ids=[getattr(row[0], "__name__", "") for row in FOREIGN])
@pytest.mark.parametrize("readonly", [False, True])
def test_what_is_not_ours_is_refused_and_left_as_it_is(
    path: Path, make: Callable[[Path], None], code: int, message: str, readonly: bool
) -> None:
    make(path)
    before = beside(path)
    with pytest.raises(StorageError) as caught:
        open_store(path, readonly=readonly)
    assert (caught.value.code, message in caught.value.message) == (code, True), caught.value
    assert caught.value.hint
    after = beside(path)
    assert {name: after.get(name) for name in before} == before
    assert set(after) - set(before) <= {"runs.db-shm"}  # what SQLite makes of a -wal that was left


def test_an_older_form_is_brought_up_to_date_by_who_may_write(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA application_id = {int.from_bytes(b'CPSL')}")
    before = beside(path)
    with pytest.raises(StorageError, match=r"older form \[5001\]"):
        open_store(path, readonly=True)
    assert beside(path) == before
    run_id = recorded_run(open_store(path))
    assert open_store(path, readonly=True).find("last") == run_id


def test_no_file_and_no_wish_to_make_one(path: Path) -> None:
    for options in ({"create": False}, {"readonly": True}):
        with pytest.raises(StorageError, match=r"no journal at .*runs\.db \[5001\]"):
            open_store(path, **options)
    assert list(path.parent.iterdir()) == []


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"Not a directory \[5001\]"):
        open_store(tmp_path / "file" / "runs.db")


def test_a_link_leads_to_the_same_store_and_the_same_locks(path: Path) -> None:
    store = open_store(path)
    link = path.with_name("link.db")
    link.symlink_to(path)
    with store.begin(START) as run:
        assert open_store(link, readonly=True).run(run.run_id).status is RunStatus.RUNNING


def looked_at(store: Store) -> None:
    for run in store.runs():
        assert list(store.records(run.run_id))
    assert store.verify().ok
    store.find("last")


def test_reading_changes_nothing(path: Path) -> None:
    recorded_run(open_store(path))
    before = beside(path), path.stat().st_mtime_ns
    looked_at(open_store(path, readonly=True))
    assert (beside(path), path.stat().st_mtime_ns) == before


def test_reading_after_a_kill_leaves_what_was_left(path: Path) -> None:
    run_script(KILLED, path)
    before = beside(path)
    assert "runs.db-wal" in before
    store = open_store(path, readonly=True)
    looked_at(store)
    assert store.runs()[0].status is RunStatus.INTERRUPTED
    after = beside(path)
    assert {**after, "runs.db-shm": b""} == {**before, "runs.db-shm": b""}


def test_opening_for_writing_tidies_up_after_a_kill(path: Path) -> None:
    run_script(KILLED, path)
    store = open_store(path)
    recorded_run(store)
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["runs.db", "runs.db-reserve"]
    assert [run.status for run in store.runs()] == [RunStatus.COMPLETED, RunStatus.INTERRUPTED]


@pytest.mark.parametrize("left_over", [False, True])
def test_a_store_on_a_read_only_disk(tmp_path: Path, left_over: bool) -> None:
    path = tmp_path / "disk" / "runs.db"
    if left_over:
        path.parent.mkdir()
        run_script(KILLED, path)
    else:
        recorded_run(open_store(path))
    with mounted(path.parent, "--bind", str(path.parent)):
        subprocess.run(["mount", "-o", "remount,ro,bind", path.parent], check=True)
        looked_at(open_store(path, readonly=True))
        with pytest.raises(StorageError, match=r"read-only \[5001\]"):
            open_store(path)
        with pytest.raises(StorageError, match=r"\[5001\]"):
            open_store(path.with_name("new.db"))


OTHER_USER = """
import os, sys
from pathlib import Path
from journals import *
from capsule.errors import StorageError
os.setuid(65534)
try:
    open_store(Path(sys.argv[1]), readonly=sys.argv[2] == "True")
except StorageError as error:
    print(error.code)
"""


@as_root
@pytest.mark.parametrize("readonly", [False, True])
def test_a_store_of_another_user(tmp_path: Path, readonly: bool) -> None:
    path = Path("/tmp") / f"{tmp_path.name}-{readonly}" / "runs.db"
    try:
        recorded_run(open_store(path))
        path.parent.chmod(0o755)
        told = run_script(OTHER_USER, path, readonly)
        assert told.stdout == "5001\n", told.stderr
    finally:
        shutil.rmtree(path.parent)


def test_a_store_opened_for_reading_begins_no_run(path: Path) -> None:
    recorded_run(open_store(path))
    with pytest.raises(StorageError, match=r"reading only \[5001\]"):
        open_store(path, readonly=True).begin(START)


def test_a_lock_that_is_kept_too_long(path: Path) -> None:
    store = open_store(path, busy_seconds=0.05)
    with store.begin(START) as run, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for attempt in (lambda: store.begin(START), lambda: run.append("intent", intent(1))):
            with pytest.raises(StorageError, match=r"locked for too long \[5006\]") as caught:
                attempt()
            assert caught.value.retriable
        assert open_store(path, readonly=True).verify().ok
        other.execute("COMMIT")
        run.append("intent", intent(1))
        run.end(end())
    assert [check.records for check in store.verify().checks] == [3]


RECORDING = """
import sys
from pathlib import Path
from journals import *
store = Store.open(Path(sys.argv[1]), clock=TickingClock(seed=sys.argv[2]))
print(recorded_run(store, 20), recorded_run(store, 20))
"""


def test_processes_that_all_begin_at_once_lose_nothing(path: Path) -> None:
    here = Path(__file__).parents[1]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RECORDING, path, str(number)],
            env={**os.environ, "PYTHONPATH": str(here)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    told = {run_id for process in started for run_id in process.communicate(timeout=60)[0].split()}
    store = open_store(path)
    assert {run.run_id for run in store.runs(status=RunStatus.COMPLETED)} == told
    assert len(told) == 8
    assert {check.records for check in store.verify().checks} == {42}
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


def test_the_clock_may_go_back(path: Path) -> None:
    clock = TickingClock()
    store = Store.open(path, clock=clock)
    ids = []
    for step in (0, -10_000_000, 5_000, -2_000_000_000_000):
        clock.ms += step
        ids.append(recorded_run(store))
    assert ids == sorted(ids)
    assert store.find("last") == ids[-1]
    assert [run.run_id for run in store.runs()] == ids[::-1]
