"""One writer: what is durable when, what it refuses, and what is left of a run that was killed or interrupted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

import pytest
from journals import (
    KILLED,
    START,
    end,
    intent,
    open_store,
    outcome,
    record_steps,
    recorded_run,
    refused,
    rows,
    run_script,
)

from capsule.calls import RunStatus
from capsule.canon import Json, NotCanonical
from capsule.errors import StorageError
from capsule.store import Counts, RunWriter, Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def store(path: Path) -> Store:
    return open_store(path)


def kinds(path: Path) -> list[object]:
    return [kind for (kind,) in rows(path, "SELECT kind FROM records ORDER BY id")]


def test_a_record_is_there_for_others_when_append_returns(path: Path, store: Store) -> None:
    with store.begin(START) as run:
        assert kinds(path) == ["start"]
        assert run.append("intent", intent(1)) == 2
        assert kinds(path) == ["start", "intent"]
        run.end(end())
    assert kinds(path) == ["start", "intent", "end"]


def test_what_is_held_goes_with_the_next(path: Path, store: Store) -> None:
    with store.begin(START) as run:
        run.append("intent", intent(1))
        assert run.append("outcome", outcome(1), hold=True) == 3
        assert kinds(path) == ["start", "intent"]
        run.append("intent", intent(2))
        assert kinds(path) == ["start", "intent", "outcome", "intent"]
        run.append("outcome", outcome(2), hold=True)
        run.append("intent", intent(3))
        run.append("outcome", outcome(3), hold=True)
    assert len(kinds(path)) == 7
    assert store.verify().ok


def test_the_counts_of_the_end_are_those_of_the_records(store: Store) -> None:
    with store.begin(START) as run:
        for call, status in enumerate(("success", "success", "error", "denied"), start=1):
            run.append("intent", intent(call))
            run.append("outcome", outcome(call, status=status))
        run.append("refused", refused(5))
        run.append("refused", refused(6, status="error"))
        run.append("intent", intent(7))
        run.append("skipped", {"steps": [{"step": "a"}, {"step": "b"}]})
        expected = Counts(total=9, completed=2, denied=2, failed=2, skipped=2, unknown=1)
        assert store.run(run.run_id).counts == expected
        run.end({**end("failed"), "counts": {"completed": 7}})
    assert store.run(run.run_id).counts == expected


REFUSED: list[tuple[str, Callable[[RunWriter], object], type[Exception]]] = [
    ("an outcome of nothing", lambda run: run.append("outcome", outcome(1)), ValueError),
    ("a second outcome", lambda run: run.append("outcome", outcome(9)), ValueError),
    ("a kind nobody knows", lambda run: run.append("note", {}), ValueError),  # type: ignore[arg-type]
    ("a second start", lambda run: run.append("start", {}), ValueError),  # type: ignore[arg-type]
    ("what has no canonical form", lambda run: run.append("wait", {"wait_ms": float("nan")}), NotCanonical),
]


@pytest.mark.parametrize(("attempt", "error"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused_leaves_the_run_as_it_was(
    store: Store, attempt: Callable[[RunWriter], object], error: type[Exception]
) -> None:
    with store.begin(START) as run:
        record_steps(run, [9])
        with pytest.raises(error):
            attempt(run)
        record_steps(run, [10])
        run.end(end())
    (check,) = store.verify().checks
    assert (check.ok, check.records) == (True, 6)


def test_nothing_follows_the_end(store: Store) -> None:
    with store.begin(START) as run:
        run.end(end())
        with pytest.raises(StorageError, match="is over"):
            run.append("intent", intent(1))
        run.close()


def test_a_start_that_cannot_be_written_leaves_nothing(path: Path, store: Store) -> None:
    with pytest.raises(NotCanonical):
        store.begin({"at": float("inf")})
    assert kinds(path) == []
    assert not path.with_name("runs.db-locks").exists()
    recorded_run(store)


def test_threads_share_a_writer(store: Store) -> None:
    with store.begin(START) as run:

        def act(thread: int) -> None:
            for call in range(thread * 100, thread * 100 + 20):
                run.append("intent", intent(call))
                run.append("outcome", outcome(call), hold=call % 3 == 0)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(act, range(4)))
        run.end(end())
    (check,) = store.verify().checks
    assert (check.ok, check.records, check.unknown) == (True, 162, ())


def test_runs_of_one_process_go_on_side_by_side(store: Store) -> None:
    with store.begin(START) as first, store.begin(START) as second:
        for call in range(1, 30):
            record_steps(first, [call])
            record_steps(second, [call])
        assert [run.status for run in store.runs()] == [RunStatus.RUNNING] * 2
        second.end(end())
        first.end(end())
    assert [check.records for check in store.verify().checks] == [60, 60]


def test_a_killed_run_is_interrupted_and_whole(path: Path) -> None:
    assert run_script(KILLED, path).returncode == -signal.SIGKILL
    store = open_store(path, readonly=True)
    (run,) = store.runs()
    assert (run.status, run.counts.completed, run.counts.unknown) == (RunStatus.INTERRUPTED, 3, 1)
    (check,) = store.verify().checks
    assert (check.ok, check.ended, check.unknown) == (True, False, (8,))


ACKNOWLEDGING = """
import sys
from pathlib import Path
from journals import *
with open_store(Path(sys.argv[1])).begin(START) as run:
    for call in range(1, 100_000):
        print(run.append("intent", intent(call)), flush=True)
        print(run.append("outcome", outcome(call, output="x" * 9000 * (call % 2))), flush=True)
"""


@pytest.mark.parametrize("after", [1, 2, 7, 40])
def test_what_was_acknowledged_survives_a_kill(path: Path, after: int) -> None:
    here = Path(__file__).parents[1]
    with subprocess.Popen(
        [sys.executable, "-c", ACKNOWLEDGING, path],
        env={**os.environ, "PYTHONPATH": str(here)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        acknowledged = [process.stdout.readline() for _ in range(after)]
        process.kill()
        acknowledged += process.stdout.readlines()
    store = open_store(path, readonly=True)
    (check,) = store.verify().checks
    assert check.ok
    whole = [line for line in acknowledged if line.endswith("\n")]
    assert check.records in (int(whole[-1]), int(whole[-1]) + 1)


def test_an_interrupt_at_any_moment_leaves_a_writer_that_works(path: Path, store: Store) -> None:
    """Ctrl-C takes effect when a call into C returns; here it does so after each of those in turn."""
    countdown = 0

    def interrupt(frame: FrameType, event: str, argument: object) -> None:
        nonlocal countdown
        if event == "c_return" and frame.f_code.co_filename.endswith(("store/writer.py", "store/bodies.py")):
            countdown -= 1
            if countdown == 0:
                raise KeyboardInterrupt

    interrupted = True
    calls = 0
    with store.begin(START) as run:
        while interrupted:
            calls += 1
            countdown = calls
            sys.setprofile(interrupt)
            try:
                run.append("refused", refused(calls, args={"path": "x" * 9000, "nonce": calls}))
                interrupted = False
            except KeyboardInterrupt:
                interrupted = True
            finally:
                sys.setprofile(None)
        run.end(end())
    (check,) = store.verify().checks
    stored = kinds(path).count("refused")
    assert (check.breach, check.ended, store.run(run.run_id).counts.total) == (None, True, stored)
    assert 1 < stored < calls


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace, to count what reaches the disk")
@pytest.mark.parametrize(("hold", "most"), [("True", 1.1), ("False", 2.1)])
def test_syncs_of_a_step(path: Path, tmp_path: Path, hold: str, most: float) -> None:
    def syncs(steps: int) -> int:
        script = f"""
import sys
from pathlib import Path
from journals import *
with open_store(Path(sys.argv[1])).begin(START) as run:
    for call in range(1, {steps} + 1):
        run.append("intent", intent(call))
        run.append("outcome", outcome(call), hold={hold})
    run.end(end())
"""
        counted = tmp_path / f"strace-{steps}"
        command = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(counted)]
        subprocess.run(
            [*command, sys.executable, "-c", script, path.with_name(f"{steps}.db")],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            check=True,
            capture_output=True,
            timeout=60,
        )
        return counted.read_text().count("sync(")

    assert (syncs(220) - syncs(20)) / 200 <= most


def test_a_small_step_is_small(path: Path, store: Store) -> None:
    """What the chain and the file add to the bodies of a step with its two records."""
    recorded_run(store, 1000)
    before = path.stat().st_size
    recorded_run(store, 1000)
    ((text,),) = rows(path, "SELECT sum(length(body)) FROM records")
    assert isinstance(text, int)
    assert (path.stat().st_size - before - text / 2) / 1000 < 300


def test_a_writer_is_let_go_of_by_its_block(path: Path, store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.begin(START) as run:
        run.append("intent", intent(1 // 0))
    assert store.run(run.run_id).status is RunStatus.INTERRUPTED
    assert not path.with_name("runs.db-locks").exists()
    assert threading.active_count() == 1


def test_fields_are_written_as_they_were_given(store: Store) -> None:
    body: dict[str, Json] = {"steps": [], "ünïcode": "\U0001f4a9\x00", "$": {"b": 1, "a": [None, True, 1.5]}}
    with store.begin(START) as run:
        run.append("skipped", body)
    assert [dict(record.body) for record in store.records(run.run_id)] == [START, body]
