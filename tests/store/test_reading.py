"""Runs and records read back: while they are written, after they ended, and when the file lies."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from journals import START, end, forge, intent, open_store, outcome, record_steps, recorded_run, refused

from capsule.calls import RunStatus
from capsule.errors import ReplayError, StorageError
from capsule.store import Counts, Record, Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def store(path: Path) -> Store:
    return open_store(path)


def test_records_come_as_they_were_appended(store: Store) -> None:
    large = {"content": "x" * 9000}
    with store.begin(START) as run:
        run.append("intent", intent(1))
        run.append("outcome", outcome(1, output=large))
        run.end(end())
    start, began, ended, last = store.records(run.run_id)
    assert (start.kind, start.body, start.at, start.seq) == ("start", START, 1_700_000_000_000, 1)
    assert (began.kind, began.body) == ("intent", intent(1))
    assert (ended.kind, ended.body) == ("outcome", {**outcome(1, output=large), "begun": 2})
    assert last.body["counts"] == Counts(total=1, completed=1).as_json()
    assert store.run(run.run_id).head == last.hash
    assert Record(seq=1, kind="wait", body={}, hash="").at is None


def test_how_a_run_stands(store: Store) -> None:
    with store.begin(START) as run:
        assert store.run(run.run_id).status is RunStatus.RUNNING
        run.append("intent", intent(1))
    interrupted = store.run(run.run_id)
    assert (interrupted.status, interrupted.end, interrupted.counts.unknown) == (RunStatus.INTERRUPTED, None, 1)
    for status in ("completed", "failed", "denied", "interrupted"):
        with store.begin(START) as run:
            run.end({**end(status), "error": {"code": 2003}})
        ended = store.run(run.run_id)
        assert ended.status == status
        assert ended.end
        assert ended.end.body["error"] == {"code": 2003}


def test_a_run_is_whole_and_a_list_is_light(store: Store) -> None:
    plan = {"steps": ["x" * 9000]}
    run_id = recorded_run(store, plan=plan, mode="replay")
    assert store.run(run_id).start.body["plan"] == plan
    (listed,) = store.runs()
    assert "$body" in str(listed.start.body["plan"])
    assert (listed.mode, listed.records) == ("replay", 8)


def test_runs_newest_first_by_status_and_number(store: Store) -> None:
    completed = [recorded_run(store) for _ in range(3)]
    with store.begin(START) as running:
        listed = store.runs()
        assert [run.run_id for run in listed] == [running.run_id, *completed[::-1]]
        assert [run.run_id for run in store.runs(limit=2)] == [running.run_id, completed[2]]
        assert [run.run_id for run in store.runs(limit=1, status=RunStatus.COMPLETED)] == [completed[2]]
        assert store.runs(status=RunStatus.FAILED) == []


def test_skipped_steps_are_counted_though_moved_out(store: Store) -> None:
    with store.begin(START) as run:
        run.append("skipped", {"steps": [{"step": f"step_{number}", "tool": "fs.read"} for number in range(1000)]})
    assert store.run(run.run_id).counts.skipped == 1000


def test_reading_is_of_one_moment(store: Store) -> None:
    with store.begin(START) as run:
        record_steps(run, [1])
        reading = store.records(run.run_id)
        assert next(reading).kind == "start"
        record_steps(run, [2])
        assert [record.seq for record in reading] == [2, 3]
        assert len(list(store.records(run.run_id))) == 5


def test_memory_is_flat_however_long_the_run(store: Store) -> None:
    with store.begin(START) as run:
        for call in range(1, 201):
            run.append("intent", intent(call))
            run.append("outcome", outcome(call, output={"content": str(call) * 50_000}))
        run.end(end())
    tracemalloc.start()
    try:
        assert sum(1 for _ in store.records(run.run_id)) == 402
        assert store.verify().ok
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


WATCHING = """
import sys
from pathlib import Path
from journals import *
store = open_store(Path(sys.argv[1]))
print(flush=True)
for _ in range(60):
    recorded_run(store, 1)
"""


def test_no_run_that_ended_is_ever_seen_as_interrupted(path: Path, store: Store) -> None:
    """Another process begins and ends runs, one after the other, under many looks at the list."""
    with subprocess.Popen(
        [sys.executable, "-c", WATCHING, path],
        env={"PYTHONPATH": str(Path(__file__).parents[1])},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        process.stdout.readline()
        seen: set[RunStatus] = set()
        while process.poll() is None:
            seen |= {run.status for run in store.runs(limit=3)}
        assert process.returncode == 0
    assert seen <= {RunStatus.RUNNING, RunStatus.COMPLETED}
    assert len(store.runs()) == 60


def test_an_unknown_run_is_4001(store: Store) -> None:
    recorded_run(store)
    for wrong in ("00000000-0000-7000-8000-000000000000", "", "last", "0000"):
        for look in (store.run, lambda run_id: list(store.records(run_id)), store.verify):
            with pytest.raises(ReplayError, match=r"\[4001\]"):
                look(wrong)


LIES = [
    "UPDATE records SET body = '{'",
    "UPDATE records SET body = '[]'",
    "UPDATE records SET body = '{}'",
    "UPDATE records SET body = printf('%.*c', 100000, '[')",
    "UPDATE records SET hash = 'text'",
    "UPDATE records SET kind = 'outcome' WHERE seq > 2",
    "UPDATE records SET kind = 'skipped' WHERE seq > 2",
    "UPDATE records SET run_id = 'text' WHERE seq = 1",
    """UPDATE records SET body = '{"status":"fine"}' WHERE kind = 'end'""",
    """UPDATE records SET body = '{"status":"failed","counts":{"most":1}}' WHERE kind = 'end'""",
    """UPDATE records SET body = '{"status":"failed","counts":[]}' WHERE kind = 'end'""",
    "DELETE FROM records WHERE seq = 1",
    "DELETE FROM records WHERE seq > 1",
]


@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_lies_is_met_with_a_plain_error(path: Path, store: Store, lie: str) -> None:
    run_id = recorded_run(store)
    forge(path, lie)
    for look in (
        store.runs,
        lambda: store.run(run_id),
        lambda: list(store.records(run_id)),
        lambda: store.find("last"),
    ):
        with suppress(ReplayError, StorageError):
            look()
    assert not store.verify().ok or lie.endswith("seq > 1")
    with store.begin(START) as run:
        run.append("refused", refused(1))
        run.end(end())


def test_damage_below_the_records_is_a_plain_error(path: Path, store: Store) -> None:
    run_id = recorded_run(store, 200)
    data = path.read_bytes()
    for page in range(12, len(data) // 4096, 5):
        data = data[: page * 4096] + bytes(4096) + data[(page + 1) * 4096 :]
    path.write_bytes(data)
    found = store.verify()
    assert not found.ok
    assert "damaged" in f"{found.problem}" or found.checks[0].breach
    with pytest.raises(StorageError, match=r"\[500[34]\]"):
        list(store.records(run_id))
