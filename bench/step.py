"""One call through the whole gate: decided, recorded before and after, read, screened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product

from bench.place import Place
from bench.rows import Row
from bench.timing import Effort, in_turns, shown
from capsule.calls import Source, Status, ToolCall
from capsule.gate import Gate, assemble

_SECONDS = 15.0
_BATCH = 20
_TEXT = ("The quick brown fox jumps over the lazy dog, and then it goes home to read. " * 20)[:1024]
_GOALS = {("plan", "off"): 1.8, ("agent", "off"): 2.8, ("plan", "secrets"): 3.6, ("agent", "secrets"): 4.6}
_SCREENING = {"off": "off", "secrets": "on"}


def policy_text(redact: str) -> str:
    rule = '{{action: allow, tool: fs.read, redact: "{}", constraints: {{path: {{pattern: ./**}}}}}}'
    return f"rules: [{rule.format(redact)}]"


def recorded_step(effort: Effort, place: Place) -> Iterator[Row]:
    """`fs.read` of 1 KB through the gate ÷ an append of 1 KB and one fdatasync."""
    (place.workdir / "a.md").write_text(_TEXT, encoding="utf-8")
    times = effort.count(_BATCH)
    with ExitStack() as stack:
        sides: dict[str, Callable[[], None]] = {"append": _append(place, stack, times)}
        for door, redact in product(("plan", "agent"), ("off", "secrets")):
            opening = place.opening(policy_text(redact), db=f"{door}-{redact}.db")
            gate = stack.enter_context(Gate(assemble(opening)))
            sides[f"{door} {redact}"] = _steps(gate, times, hold=door == "plan")
        taken = in_turns(sides, seconds=effort.seconds(_SECONDS))
    for (door, redact), goal in _GOALS.items():
        seconds = taken[f"{door} {redact}"]
        yield Row(
            what=f"recorded step, {door}, screening {_SCREENING[redact]} ÷ append + fdatasync",
            measured=seconds / taken["append"],
            goal=goal,
            how=f"{shown(seconds / times)} ÷ {shown(taken['append'] / times)}, 1 KB",
        )


def _append(place: Place, stack: ExitStack, times: int) -> Callable[[], None]:
    handle = os.open(place.root / "plain.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    stack.callback(os.close, handle)
    data = _TEXT.encode()
    sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync

    def append() -> None:
        for _ in range(times):
            os.write(handle, data)
            sync(handle)

    return append


def _steps(gate: Gate, times: int, *, hold: bool) -> Callable[[], None]:
    """A plan lets the outcome of a read wait for the next record, an agent does not."""
    call = ToolCall(tool="fs.read", args={"path": "a.md"}, source=Source.PLAN if hold else Source.AGENT)

    def steps() -> None:
        for _ in range(times):
            result = gate.call(call, hold_read=hold)
            assert result.status is Status.SUCCESS

    return steps
