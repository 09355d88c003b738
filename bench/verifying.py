"""Checking chains against the least that any check must do."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench.place import Place
from bench.rows import Row
from bench.step import policy_text
from bench.timing import Effort, in_turns
from capsule.calls import Source, ToolCall
from capsule.effects import SystemClock
from capsule.gate import Gate, assemble
from capsule.store import Store

_SECONDS = 6.0
_CALLS = 20_000
_ROWS = "SELECT id, run_id, seq, kind, body, salt, prev, hash FROM records ORDER BY id"


def verify(effort: Effort, place: Place) -> Iterator[Row]:
    """`verify` of the chain ÷ reading the same rows and hashing them one into the next; as speeds."""
    store = _filled(effort, place)

    def check() -> None:
        assert store.verify().ok

    def scan() -> None:
        head = bytes(32)
        with closing(sqlite3.connect(store.path)) as db:
            for _, _, _, _, body, salt, _, _ in db.execute(_ROWS):
                head = hashlib.sha256(body.encode() + salt + head).digest()

    taken = in_turns({"verify": check, "scan": scan}, seconds=effort.seconds(_SECONDS))
    with closing(sqlite3.connect(store.path)) as db:
        rows: int = db.execute("SELECT count(*) FROM records").fetchone()[0]
    how = f"{rows / taken['verify']:,.0f} ÷ {rows / taken['scan']:,.0f} rows a second"
    yield Row(
        what="verify, chain ÷ scan + SHA-256 (speed)",
        measured=taken["scan"] / taken["verify"],
        goal=1 / 3,
        at_least=True,
        how=how,
    )


def _filled(effort: Effort, place: Place) -> Store:
    """The records of one real call again and again, as fast as they can be written."""
    (place.workdir / "a.md").write_text("x" * 20, encoding="utf-8")
    with Gate(assemble(place.opening(policy_text("secrets")))) as gate:
        gate.call(ToolCall(tool="fs.read", args={"path": "a.md"}, source=Source.PLAN))
    store = Store.open(Path(place.root / "runs.db"), clock=SystemClock())
    start, intent, outcome, end = (record.body for record in store.records(gate.run_id))
    with store.begin(start) as writer:
        for number in range(1, effort.count(_CALLS) + 1):
            writer.append("intent", {**intent, "call": number}, hold=True)
            writer.append("outcome", {**outcome, "call": number}, hold=True)
        writer.end(end)
    return store
