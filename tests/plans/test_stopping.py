"""Real `capsule run` processes that are stopped in the middle, or run side by side."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
from gated import (
    Ran,
    bodies,
    db_of,
    dumped,
    ends_as,
    eventually,
    grown,
    holds,
    is_gone,
    kinds,
    newest,
    plan_of,
    ran,
    records,
    started,
    step_of,
    tree,
)

import capsule
from capsule.calls import RunStatus
from capsule.gate import open_journal

POLICY = """
rules:
  - {action: allow, tool: fs.read, constraints: {path: {pattern: ./docs/**}}}
  - {action: allow, tool: fs.write, constraints: {path: {pattern: "./out/*"}}}
"""
SLOW = """
rules:
  - {action: allow, tool: fs.read, constraints: {path: {pattern: ./docs/**}, rate_limit: {requests_per_minute: 2}}}
"""
MANY = 20_000
OURS = bytes(Path(capsule.__file__).parent)  # as a traceback would name it


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    base = tmp_path.resolve()
    grown(base, **{"policy.yaml": POLICY, "slow.yaml": SLOW})
    each = [f"out/{number}" for number in range(MANY)]
    dumped(base / "many.json", plan_of(step_of("fs.write", {"path": "{{ item }}", "content": "x"}, foreach=each)))
    reads = [step_of("fs.read", {"path": "docs/a"})] * 4
    dumped(base / "reads.json", plan_of(*reads))
    grown(base / "ws", docs__a="a", out__old="old")
    return base / "ws"


def _start(workdir: Path, plan: str, policy: str = "policy.yaml") -> AbstractContextManager[subprocess.Popen[bytes]]:
    base = workdir.parent
    return started(
        "run", base / plan, "--policy", base / policy, "--workdir", workdir, "--db", db_of(workdir), cwd=base
    )


def _written(workdir: Path) -> set[str]:
    return {path.name for path in (workdir / "out").iterdir() if path.name.isdecimal()}


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_in_the_middle_a_run_is_interrupted_and_whole(workdir: Path, by: signal.Signals) -> None:
    db = db_of(workdir)
    with _start(workdir, "many.json") as process:
        assert eventually(lambda: len(_written(workdir)) > 20)
        process.send_signal(by)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in out + err
    assert is_gone(process.pid)
    run_id = newest(db).run_id
    assert ends_as(db, run_id) is RunStatus.INTERRUPTED
    assert kinds(db)[-1] == "end"
    _nothing_is_unrecorded(workdir)
    assert not list((workdir / "out").glob(".capsule-*"))
    shown = ran("report", run_id, "--json", "--db", db, cwd=workdir)
    assert shown.code == 0
    run = shown.json["run"]
    assert isinstance(run, Mapping)
    assert run["status"] == "interrupted"


def _nothing_is_unrecorded(workdir: Path) -> None:
    """Each file has its intent; each outcome that says so has its file; at most one call is unknown."""
    db = db_of(workdir)
    intents = {body["call"]: str(body["args"]) for body in bodies(db, "intent")}
    asked = {name for text in intents.values() for name in re.findall(r"out/([0-9]+)'", text)}
    done = {body["call"] for body in bodies(db, "outcome") if body["status"] == "success"}
    written = _written(workdir)
    assert written <= asked
    assert len(done) <= len(written) <= len(done) + 1
    assert newest(db).counts.unknown <= 1
    assert holds(db)


def test_stopped_while_it_waits(workdir: Path) -> None:
    db = db_of(workdir)
    with _start(workdir, "reads.json", "slow.yaml") as process:
        assert eventually(lambda: "wait" in kinds(db))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 130
    assert ends_as(db, newest(db).run_id) is RunStatus.INTERRUPTED
    assert kinds(db) == ["start", *["intent", "outcome"] * 2, "wait", "end"]
    (wait,) = bodies(db, "wait")
    assert wait["step_index"] == 2
    assert isinstance(wait["wait_ms"], int)
    assert 50_000 < wait["wait_ms"] <= 60_000


def test_killed_in_the_middle_a_run_is_interrupted_and_whole(workdir: Path) -> None:
    db = db_of(workdir)
    for more in (20, 25, 31):
        with _start(workdir, "many.json") as process:
            assert eventually(lambda enough=more: len(_written(workdir)) > enough)  # type: ignore[misc]  # bound now
            process.kill()
            process.communicate(timeout=20)
        assert process.returncode == -signal.SIGKILL
        assert is_gone(process.pid)
        assert newest(db).status is RunStatus.INTERRUPTED
        assert kinds(db)[-1] in ("intent", "outcome")
        _nothing_is_unrecorded(workdir)
        for path in (workdir / "out").iterdir():
            path.unlink()
    left = db.with_name(f"{db.name}-locks")
    assert len(list(left.iterdir())) <= 1
    last = _run(workdir, "reads.json")
    assert last.code == 0
    assert not left.exists()


def _run(workdir: Path, plan: str) -> Ran:
    base = workdir.parent
    return ran(
        "run", base / plan, "--policy", base / "policy.yaml", "--workdir", workdir, "--db", db_of(workdir), cwd=base
    )


def test_a_run_is_running_while_it_runs(workdir: Path) -> None:
    db = db_of(workdir)
    with _start(workdir, "reads.json", "slow.yaml") as process:
        assert eventually(lambda: "wait" in kinds(db))
        assert newest(db).status is RunStatus.RUNNING
        assert holds(db)
        os.killpg(process.pid, signal.SIGSTOP)
        assert newest(db).status is RunStatus.RUNNING
    assert newest(db).status is RunStatus.INTERRUPTED


def test_two_processes_at_once_lose_nothing(workdir: Path) -> None:
    base, db = workdir.parent, db_of(workdir)
    plans = []
    for name in ("one", "two", "three"):
        steps = [
            step_of("fs.write", {"path": f"out/{name}-{number}", "content": name}) if number % 2 else
            step_of("fs.read", {"path": "docs/a"})
            for number in range(40)
        ]  # fmt: skip
        plans.append(dumped(base / f"{name}.json", plan_of(*steps)))
    with ExitStack() as stack:
        processes = [stack.enter_context(_start(workdir, plan.name)) for plan in plans]
        for process in processes:
            out, err = process.communicate(timeout=60)
            assert (process.returncode, err.count("✓".encode())) == (0, 40), out + err
    store = open_journal(db)
    runs = store.runs()
    assert [(run.status, run.counts.completed) for run in runs] == [(RunStatus.COMPLETED, 40)] * 3
    assert [len(records(db, run.run_id)) for run in runs] == [82] * 3
    assert holds(db)
    assert len(tree(workdir / "out")) == 1 + 3 * 20
    assert all(is_gone(process.pid) for process in processes)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_at_any_moment_there_is_no_traceback_and_no_run_that_runs(
    workdir: Path, by: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("COV")]:
        monkeypatch.delenv(name)  # coverage starts before Capsule, and takes a Ctrl-C for an import that failed
    db = db_of(workdir)
    for milliseconds in range(60, 400, 40):
        with _start(workdir, "many.json") as process:
            time.sleep(milliseconds / 1000)
            process.send_signal(by)
            _, err = process.communicate(timeout=20)
        assert OURS not in err, (milliseconds, err.decode())
        # Before Python has come to our code it dies in its own way.
        assert process.returncode in (130, -by), (milliseconds, err.decode())
        for path in (workdir / "out").iterdir():
            path.unlink()
    if db.exists():
        assert {run.status for run in open_journal(db).runs()} <= {RunStatus.INTERRUPTED}
        assert holds(db)
