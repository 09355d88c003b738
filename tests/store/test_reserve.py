"""A full disk: no call begins unrecorded, and what has happened can still be recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from journals import START, TickingClock, end, intent, mounted, open_store, outcome, recorded_run

from capsule.calls import RunStatus
from capsule.errors import StorageError
from capsule.store import RunWriter, Store
from capsule.store.reserve import RESERVE_BYTES


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    with mounted(path, "-t", "tmpfs", "-o", "size=2m,mode=700", "capsule-test"):
        yield path


@pytest.fixture
def store(disk: Path) -> Store:
    return open_store(disk / "runs.db")


def noise(count: int) -> str:
    """Text that does not pack."""
    return TickingClock().random_bytes(count).hex()


def fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    handle = os.open(ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        while True:
            os.write(handle, bytes(4096))
    except OSError:
        return ballast
    finally:
        os.close(handle)


def record_until_full(run: RunWriter) -> int:
    """The first call that could not begin."""
    for call in range(1, 20_000):
        try:
            run.append("intent", intent(call))
        except StorageError:
            return call
        run.append("outcome", outcome(call), hold=call % 2 == 0)
    raise AssertionError("the disk never filled up")


def test_room_is_kept_really(disk: Path, store: Store) -> None:
    recorded_run(store)
    reserve = disk / "runs.db-reserve"
    assert reserve.stat().st_size == RESERVE_BYTES
    assert reserve.stat().st_blocks * 512 >= RESERVE_BYTES
    assert reserve.stat().st_mode & 0o777 == 0o600


def test_a_run_on_a_disk_that_fills_up_can_end(disk: Path, store: Store) -> None:
    with store.begin(START) as run:
        refused = record_until_full(run)
        with pytest.raises(StorageError, match=r"the run can only end \[5002\]") as caught:
            run.append("intent", intent(refused))
        assert caught.value.hint
        run.end({**end("failed"), "error": {"code": 5002}})
    assert not (disk / "runs.db-reserve").exists()
    ended = store.run(run.run_id)
    assert (ended.status, ended.counts.completed, ended.counts.unknown) == (RunStatus.FAILED, refused - 1, 0)
    assert store.verify().ok


def test_an_outcome_is_recorded_in_the_room_that_was_kept(disk: Path, store: Store) -> None:
    with store.begin(START) as run:
        run.append("intent", intent(1))
        fill(disk)
        run.append("outcome", outcome(1, output=noise(30_000)))
        assert [record.kind for record in store.records(run.run_id)] == ["start", "intent", "outcome"]
        with pytest.raises(StorageError, match=r"\[5002\]"):
            run.append("intent", intent(2))
        run.end(end("failed"))
    assert store.run(run.run_id).status is RunStatus.FAILED


def test_an_outcome_that_is_too_large_may_be_recorded_smaller(disk: Path, store: Store) -> None:
    with store.begin(START) as run:
        run.append("intent", intent(1))
        fill(disk)
        with pytest.raises(StorageError, match=r"\[5002\]"):
            run.append("outcome", outcome(1, output=noise(500_000)))
        run.append("outcome", outcome(1, output=None, status="error", error={"code": 5002}))
        run.end(end("failed"))
    assert store.run(run.run_id).counts.failed == 1
    assert store.verify().ok


def test_what_is_held_is_not_lost_with_the_intent_that_does_not_fit(disk: Path, store: Store) -> None:
    with store.begin(START) as run:
        run.append("intent", intent(1))
        run.append("outcome", outcome(1), hold=True)
        fill(disk)
        with pytest.raises(StorageError, match=r"\[5002\]"):
            run.append("intent", intent(2, args={"content": noise(300_000)}))
    assert [record.kind for record in store.records(run.run_id)] == ["start", "intent", "outcome"]
    assert store.run(run.run_id).status is RunStatus.INTERRUPTED


def test_no_run_begins_on_a_full_disk(disk: Path, store: Store) -> None:
    recorded_run(store)
    ballast = fill(disk)
    with pytest.raises(StorageError, match=r"\[5002\]"):
        store.begin({**START, "inputs": noise(300_000)})
    assert len(open_store(disk / "runs.db", readonly=True).runs()) == 1
    ballast.unlink()
    recorded_run(store)
    assert (disk / "runs.db-reserve").stat().st_size == RESERVE_BYTES
    assert len(store.runs()) == 2


def test_half_a_reserve_is_not_kept(disk: Path, store: Store) -> None:
    recorded_run(store)
    (disk / "runs.db-reserve").unlink()
    fill(disk)
    os.truncate(disk / "ballast", (disk / "ballast").stat().st_size - RESERVE_BYTES // 2)
    recorded_run(store)
    assert not (disk / "runs.db-reserve").exists()


def test_a_store_cannot_be_made_on_a_full_disk(disk: Path) -> None:
    ballast = fill(disk)
    with pytest.raises(StorageError, match=r"\[500[12]\]"):
        open_store(disk / "runs.db")
    ballast.unlink()
    assert list(disk.iterdir()) == []
    recorded_run(open_store(disk / "runs.db"))


def test_a_run_that_nothing_can_record_is_let_go_of(disk: Path, store: Store) -> None:
    """The disk is full and the reserve went to somebody else."""
    run = store.begin(START)
    run.append("intent", intent(1))
    (disk / "runs.db-reserve").unlink()
    ballast = fill(disk)
    with pytest.raises(StorageError, match=r"\[5002\]"):
        run.end({**end("failed"), "error": {"message": noise(50_000)}})
    ballast.unlink()
    assert store.run(run.run_id).status is RunStatus.INTERRUPTED
    assert not (disk / "runs.db-locks").exists()
