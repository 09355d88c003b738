"""Journals for tests: a clock that ticks by itself, bodies as a gate writes them, and ways to look at the bytes."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

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


def record_steps(run: RunWriter, calls: Sequence[int], *, hold: bool = False) -> None:
    for call in calls:
        run.append("intent", intent(call), hold=hold)
        run.append("outcome", outcome(call), hold=hold)


def recorded_run(store: Store, calls: int = 3, **start: Json) -> str:
    """The id of a run that has ended."""
    with store.begin({**START, **start}) as run:
        record_steps(run, range(1, calls + 1), hold=True)
        run.end(end())
    return run.run_id


def rows(path: Path, sql: str, *values: object) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql, values).fetchall()


def forge(path: Path, *statements: str, values: Sequence[object] = ()) -> None:
    """What someone does who has the file and no scruples: drop the triggers, change what they like, put them back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN")
        triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            db.execute(statement, values)
        for _, made in triggers:
            db.execute(made)
        db.execute("COMMIT")


@contextmanager
def mounted(target: Path, *options: str) -> Iterator[None]:
    """Needs root and the right to mount, which a container may not have."""
    if os.geteuid() != 0 or subprocess.run(["mount", *options, target], check=False, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", target], check=True)


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


def mixed_journal(path: Path) -> None:
    """Three runs: one that ended, with bodies moved out; one that was interrupted; and the first once more."""
    store = open_store(path)
    large: dict[str, Json] = {"content": "x" * 9000}
    for ended in (True, False, True):
        with store.begin(START) as run:
            run.append("intent", intent(1))
            run.append("outcome", outcome(1, output=large, error={"code": 1, "kind": "odd"}))
            if not ended:
                run.append("refused", refused(2))
            run.append("intent", intent(3))
            if ended:
                run.append("intent", intent(4, args={**large, "path": "p"}))
                run.append("outcome", outcome(4))
                run.append("outcome", outcome(3), hold=True)
                run.append("refused", refused(5))
                run.end(end())
            else:
                run.append("wait", {"at": 1, "wait_ms": 5})


_FIRST, _SECOND = "id >> 32 = 1", "id >> 32 = 2"
_REST = "kind, body, salt, prev, hash"

# name: what is done; in which run it shows; at which record, and as what
FORGERIES: dict[str, tuple[tuple[str, ...], int, str]] = {
    "edit": (
        (f"UPDATE records SET body = replace(body, 'fs.read', 'fs.list') WHERE {_FIRST} AND seq = 2",),
        0,
        "2 its kind, body, salt, prev or hash is not what was recorded",
    ),
    "edit an outcome": (
        (f"UPDATE records SET body = replace(body, 'text of 3', 'text of 4') WHERE {_FIRST} AND seq = 7",),
        0,
        "7 its kind, body",
    ),
    "edit the verdict": (
        ("""UPDATE records SET body = replace(body, '"completed"', '"denied"') WHERE kind = 'end' AND id >> 32 = 3""",),
        2,
        "9 its kind, body",
    ),
    "hash": ((f"UPDATE records SET hash = zeroblob(32) WHERE {_FIRST} AND seq = 3",), 0, "3 its kind"),
    "prev": ((f"UPDATE records SET prev = zeroblob(32) WHERE {_FIRST} AND seq = 3",), 0, "3 its prev was changed"),
    "kind": ((f"UPDATE records SET kind = 'refused' WHERE {_SECOND} AND seq = 5",), 1, "5 its kind, body"),
    "kind as a blob": ((f"UPDATE records SET kind = CAST(kind AS BLOB) WHERE {_FIRST} AND seq = 2",), 0, "2 its kind"),
    "body as a blob": ((f"UPDATE records SET body = CAST(body AS BLOB) WHERE {_FIRST} AND seq = 2",), 0, "2 its kind"),
    "salt as text": ((f"UPDATE records SET salt = hex(salt) WHERE {_FIRST} AND seq = 2",), 0, "2 its kind"),
    "not text": ((f"UPDATE records SET body = CAST(x'ff' AS TEXT) WHERE {_FIRST} AND seq = 4",), 0, "4 cannot be read"),
    "delete": ((f"DELETE FROM records WHERE {_FIRST} AND seq = 4",), 0, "4 is missing: record 5 stands in its place"),
    "delete and close up": (
        (
            f"DELETE FROM records WHERE {_FIRST} AND seq = 4",
            f"UPDATE records SET seq = seq - 1, id = id - 1 WHERE {_FIRST} AND seq > 4",
        ),
        0,
        "4 its kind, body",
    ),
    "delete the start": ((f"DELETE FROM records WHERE {_SECOND} AND seq = 1",), 1, "1 is missing: record 2 stands"),
    "insert at the end": (
        (f"INSERT INTO records SELECT id + 1, run_id, 10, {_REST} FROM records WHERE {_FIRST} AND seq = 9",),
        0,
        "10 its kind, body",
    ),
    "insert wherever it goes": (
        (
            f"INSERT INTO records (run_id, seq, {_REST}) "  # noqa: ISC004
            f"SELECT run_id, 3, {_REST} FROM records WHERE {_SECOND} AND seq = 3",
        ),
        2,
        "10 carries the id of another run",
    ),
    "reorder": (
        (
            f"UPDATE records SET seq = 99, id = id + 99 WHERE {_FIRST} AND seq = 5",
            f"UPDATE records SET seq = 5, id = id + 1 WHERE {_FIRST} AND seq = 4",
            f"UPDATE records SET seq = 4, id = id - 100 WHERE {_FIRST} AND seq = 99",
        ),
        0,
        "4 its kind, body",
    ),
    "move": ((f"UPDATE records SET id = id + 5 WHERE {_SECOND} AND seq = 6",), 1, "6 lies in another place"),
    "splice": (
        (f"UPDATE records SET ({_REST}) = (SELECT {_REST} FROM records o WHERE o.id = (3 << 32) + 4) "  # noqa: ISC004
         "WHERE id = (1 << 32) + 4",),
        0,
        "4 its kind, body",
    ),
    "a record of another run": (
        (
            "DELETE FROM records WHERE id = (1 << 32) + 4",
            f"INSERT INTO records SELECT (1 << 32) + 4, run_id, 4, {_REST} FROM records WHERE id = (3 << 32) + 4",
        ),
        0,
        "4 carries the id of another run",
    ),
    "a run twice": (
        (
            "DROP INDEX runs_begun",
            f"INSERT INTO records SELECT id + (5 << 32), run_id, seq, {_REST} FROM records WHERE {_FIRST}",
        ),
        3,
        "1 another run of this store has the same id",
    ),
    "swap": (
        ("UPDATE records SET body = (SELECT o.body FROM records o WHERE o.id = 4294967300) WHERE id = 4294967298",),
        0,
        "2 its kind, body",
    ),
    "another id": (
        (f"UPDATE records SET run_id = x'00112233445566778899aabbccddeeff' WHERE {_SECOND}",),
        1,
        "1 its kind, body",
    ),
}  # fmt: skip
