"""The lock of a run: held by one, let go of by death, tidied away by the next who comes."""

from __future__ import annotations

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from journals import START, open_store, recorded_run

from capsule.store.locks import RunLock, is_held, tidy_locks

NAME = "018bcfe5-6801-730d-8309-ac76f5f092fb"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "runs.db-locks"


def test_held_until_released(directory: Path) -> None:
    assert not is_held(directory, NAME)
    lock = RunLock.acquire(directory, NAME)
    assert is_held(directory, NAME)
    assert ((directory / NAME).stat().st_mode & 0o777, directory.stat().st_mode & 0o777) == (0o600, 0o700)
    tidy_locks(directory)
    assert is_held(directory, NAME)
    lock.release()
    assert not directory.exists()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc, to list what is open")
def test_children_do_not_inherit_it(tmp_path: Path) -> None:
    store = open_store(tmp_path / "runs.db")
    with store.begin(START) as run:
        handles = [
            entry for entry in Path("/proc/self/fd").iterdir() if f"locks/{run.run_id}" in os.path.realpath(entry)
        ]
        (handle,) = (int(entry.name) for entry in handles)
        assert not os.get_inheritable(handle)


def test_what_a_killed_holder_left_says_nothing_and_is_tidied_away(directory: Path) -> None:
    directory.mkdir()
    (directory / NAME).touch()
    assert not is_held(directory, NAME)
    tidy_locks(directory)
    assert not directory.exists()


def test_only_locks_are_tidied_away(directory: Path) -> None:
    directory.mkdir()
    kept = [directory / "notes.txt", directory / f"{NAME}.bak"]
    for path in (*kept, directory / NAME):
        path.touch()
    target = directory.parent / "target"
    target.touch()
    (directory / NAME.replace("0", "1")).symlink_to(target)
    tidy_locks(directory)
    assert sorted(directory.iterdir()) == sorted([*kept, directory / NAME.replace("0", "1")])
    assert target.exists()


def test_a_link_in_its_place_is_not_followed(directory: Path) -> None:
    directory.mkdir()
    target = directory.parent / "target"
    (directory / NAME).symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        RunLock.acquire(directory, NAME)
    assert not target.exists()


def test_one_holder_at_a_time(directory: Path) -> None:
    inside: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            lock = RunLock.acquire(directory, "create")
            inside.append(number)
            assert inside == [number]
            inside.remove(number)
            tidy_locks(directory)
            lock.release()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert not directory.exists()


def test_a_look_does_not_keep_a_writer_out(directory: Path) -> None:
    directory.mkdir()
    with (directory / NAME).open("w") as look, ThreadPoolExecutor(1) as pool:
        fcntl.flock(look, fcntl.LOCK_SH)
        waiting = pool.submit(RunLock.acquire, directory, NAME)
        assert not waiting.done()
        fcntl.flock(look, fcntl.LOCK_UN)
        waiting.result(timeout=10).release()


def test_locks_lie_beside_the_store_while_runs_go_on(tmp_path: Path) -> None:
    store = open_store(tmp_path / "runs.db")
    with store.begin(START) as run:
        assert [path.name for path in (tmp_path / "runs.db-locks").iterdir()] == [run.run_id]
    assert not (tmp_path / "runs.db-locks").exists()
    recorded_run(store)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.db", "runs.db-reserve"]
