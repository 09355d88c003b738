"""Journals for tests: a clock that ticks by itself, bodies as a gate writes them, and ways to look at the bytes."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from capsule.canon import Json
from capsule.store import RunWriter, Store

START: dict[str, Json] = {
    "at": 1_700_000_000_000,
    "mode": "run",
    "workdir": "/work",
    "plan_name": "notes",
    "plan_digest": "aa" * 32,
    "plan": {"name": "notes", "steps": []},
    "policies": [{"name": "p", "digest": "bb" * 32, "document": {"rules": []}}],
}


class TickingClock:
    """Implements `calls.Clock`: each look is a millisecond later, and chance repeats for the same seed."""

    def __init__(self, start_ms: int = 1_700_000_000_000, seed: str = "") -> None:
        self.ms = start_ms
        self._seed = seed
        self._drawn = 0

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms

    def monotonic(self) -> float:
        return self.now_ms() / 1000

    def random_bytes(self, count: int) -> bytes:
        self._drawn += 1
        return hashlib.shake_128(f"{self._seed}:{self._drawn}".encode()).digest(count)


def intent(call: int, **more: Json) -> dict[str, Json]:
    return {
        "args": {"path": f"docs/{call}.md"},
        "at": 1_700_000_000_000 + call,
        "call": call,
        "decision": {"effect": "allow", "rule": "read-docs"},
        "source": "plan",
        "step": f"step_{call}",
        "step_index": call - 1,
        "tool": "fs.read",
        **more,
    }


def outcome(call: int, **more: Json) -> dict[str, Json]:
    return {
        "at": 1_700_000_000_500 + call,
        "call": call,
        "duration_ms": 500,
        "output": {"content": f"text of {call}"},
        "status": "success",
        **more,
    }


def refused(call: int, **more: Json) -> dict[str, Json]:
    return {**intent(call), "status": "denied", "error": {"code": 1001, "message": "no"}, **more}


def end(status: str = "completed") -> dict[str, Json]:
    return {"at": 1_700_000_009_000, "status": status}


def open_store(path: Path, **options: bool | float) -> Store:
    return Store.open(path, clock=TickingClock(seed=path.name), **options)  # type: ignore[arg-type]


def record_steps(run: RunWriter, calls: Sequence[int], **outcome_fields: Json) -> None:
    for call in calls:
        run.append("intent", intent(call))
        run.append("outcome", outcome(call, **outcome_fields))


def recorded_run(store: Store, calls: int = 3, **start: Json) -> str:
    """The id of a run that has ended."""
    with store.begin({**START, **start}) as run:
        record_steps(run, range(1, calls + 1))
        run.end(end())
    return run.run_id


def rows(path: Path, sql: str, *values: object) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql, values).fetchall()


def forge(path: Path, *statements: str, values: Sequence[object] = ()) -> None:
    """What someone does who has the file and no scruples: drop the triggers, then change what they like."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {trigger}")
        for statement in statements:
            db.execute(statement, values)


def beside(path: Path) -> dict[str, bytes]:
    """Everything in the store's directory, to be compared later."""
    return {entry.name: entry.read_bytes() for entry in path.parent.iterdir() if entry.is_file()}


def run_script(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A process of its own, which sees this module too."""
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


KILLED = """
import os, sys
from pathlib import Path
from journals import *
run = open_store(Path(sys.argv[1])).begin(START)
record_steps(run, range(1, 4))
run.append("intent", intent(4))
os.kill(os.getpid(), 9)
"""
