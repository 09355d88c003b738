"""Calls of one run from several threads: the tape has one order, and no counter is passed by."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from gated import bodies, code, db_of, ends_as, eventually, gate_of, grown, holds, made, read, records, tree, write

from capsule.calls import Answer, Context, Question, RunStatus, Source, ToolCall, ToolResult, Trust
from capsule.canon import Json

THREADS = 8
POLICY = """
rules:
  - {action: allow, tool: fs.read, constraints: {path: {pattern: ./docs/**}}}
  - {id: out, action: allow, tool: fs.write, constraints: {path: {pattern: "./out/*"}}}
  - {id: few, action: limit, tool: fs.write, constraints: {max_calls: 20}}
  - {action: allow, tool: made.tool}
"""


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    return grown(tmp_path.resolve() / "ws", docs__a="a", out__old="old")


def _together(act: Callable[[int], ToolResult], count: int = THREADS) -> list[ToolResult]:
    """All begin at once."""
    barrier = threading.Barrier(count)

    def wait_and_act(number: int) -> ToolResult:
        barrier.wait(10)
        return act(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(wait_and_act, range(count)))


def test_calls_from_eight_threads_keep_one_order(workdir: Path, db: Path) -> None:
    results: list[ToolResult] = []

    with gate_of(workdir, POLICY) as gate:

        def mixed(number: int) -> ToolResult:
            for round_ in range(5):
                results.append(gate.call(read("docs/a")))
                results.append(gate.call(write(f"out/{number}-{round_}", f"{number}")))
                results.append(gate.call(read(f"other/{number}")))
            return gate.call(ToolCall(tool="none"))

        results += _together(mixed)
    assert ends_as(db, gate.run_id) is RunStatus.COMPLETED
    outcomes = Counter((result.status.value, code(result)) for result in results)
    assert outcomes == {
        ("success", None): 40 + 20,
        ("denied", 1006): 20,
        ("denied", 1001): 40,
        ("error", 2001): 8,
    }
    assert len(tree(workdir / "out")) == 1 + 20
    _is_in_order(db, {result.call_id for result in results})


def _is_in_order(db: Path, answered: set[str]) -> None:
    """Each outcome follows its own intent, numbers count up, and every answer has its record."""
    begun: dict[Json, int] = {}
    numbers = []
    for record in records(db):
        body = record.body
        if record.kind in ("intent", "refused"):
            numbers.append(body["call"])
        if record.kind == "intent":
            begun[body["call"]] = record.seq
        elif record.kind == "outcome":
            assert body["begun"] == begun.pop(body["call"])
    assert begun == {}
    assert numbers == list(range(1, len(numbers) + 1))
    run_id = next(iter(answered)).rpartition(".")[0]
    assert answered == {f"{run_id}.{number}" for number in numbers}
    assert holds(db)


def test_a_call_in_flight_counts(workdir: Path) -> None:
    """The quota is taken with the intent, not with the outcome: all eight are in the tool at once, or denied."""
    inside = threading.Semaphore(0)
    release = threading.Event()

    def act(args: Mapping[str, Json], context: Context) -> object:
        inside.release()
        return release.wait(10)

    policy = "rules: [{action: allow, tool: made.tool, constraints: {max_calls: 3}}]"
    with gate_of(workdir, policy, tool=made(act)) as gate, ThreadPoolExecutor(THREADS) as pool:
        calls = [pool.submit(gate.call, ToolCall(tool="made.tool")) for _ in range(THREADS)]
        for _ in range(3):
            assert inside.acquire(timeout=10)
        release.set()
        results = [call.result(10) for call in calls]
    assert Counter(code(result) for result in results) == {None: 3, 1006: 5}


def test_taint_of_one_thread_holds_for_all(workdir: Path) -> None:
    policy = POLICY + "  - {action: deny, tool: fs.write, when: {tainted: true}}"
    tool = made(lambda args, context: "from outside", trust=Trust.UNTRUSTED)
    with gate_of(workdir, policy, tool=tool) as gate:
        tainting = threading.Thread(target=lambda: gate.call(ToolCall(tool="made.tool", source=Source.AGENT)))
        tainting.start()
        tainting.join(10)
        assert code(gate.call(write("out/new"))) == 1008


def test_one_question_at_a_time(workdir: Path, db: Path) -> None:
    asking = threading.Lock()
    overlaps: list[str] = []

    def approver(question: Question) -> Answer:
        if not asking.acquire(blocking=False):
            overlaps.append(question.call_id)
        threading.Event().wait(0.01)
        asking.release()
        return Answer(approved=True, by="x")

    policy = POLICY.replace("id: out, action: allow", "id: out, action: ask")
    with gate_of(workdir, policy, approver=approver) as gate:
        results = _together(lambda number: gate.call(write(f"out/{number}")))
    assert overlaps == []
    assert all(result.ok for result in results)
    assert [body["call"] for body in bodies(db, "question")] == [body["call"] for body in bodies(db, "answer")]
    assert holds(db)


def test_e4_a_forked_child_lets_go_whatever_other_threads_are_at(workdir: Path) -> None:
    asked, answered = threading.Event(), threading.Event()

    def approve(question: Question) -> Answer:
        asked.set()
        answered.wait(20)
        return Answer(approved=False, by="x")

    policy = 'rules: [{action: ask, tool: fs.write, constraints: {path: {pattern: "./out/*"}}}]'
    with gate_of(workdir, policy, approver=approve) as gate:
        caller = threading.Thread(target=lambda: gate.call(write("out/new")))
        caller.start()
        assert asked.wait(10)
        child = os.fork()
        if child == 0:
            try:
                gate.close()
            finally:
                os._exit(0)
        try:
            assert eventually(lambda: os.waitpid(child, os.WNOHANG)[0] == child)
        finally:
            answered.set()
            caller.join(10)
    assert holds(db_of(workdir))
