"""Runs and records, read back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from capsule.calls import RunStatus
from capsule.canon import Json
from capsule.store.bodies import filled_in
from capsule.store.chain import RUN_SPAN
from capsule.store.faults import not_understood
from capsule.store.ids import run_id_text
from capsule.store.tally import Counts, Tally

_YEAR_9999 = 253_370_764_800_000  # ms: what comes later cannot be written as a date

IsHeld: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    seq: int
    kind: str
    body: Mapping[str, Json]
    hash: str

    @property
    def at(self) -> int | None:
        """Milliseconds since 1970, where the record has a time."""
        at = self.body.get("at")
        return at if isinstance(at, int) and 0 <= at < _YEAR_9999 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    run_id: str
    status: RunStatus
    counts: Counts
    records: int
    head: str
    start: Record
    end: Record | None

    @property
    def mode(self) -> str:
        return str(self.start.body.get("mode"))


_NEWEST_FIRST = "SELECT run_id FROM records WHERE kind = 'start' AND typeof(run_id) = 'blob' ORDER BY run_id DESC"
_START = "SELECT id, run_id, seq, kind, body, hash FROM records {} WHERE kind = 'start' AND run_id = ?"
_ALL = "SELECT seq, kind, body, hash FROM records WHERE id BETWEEN ? AND ? ORDER BY id"
_LAST = "SELECT seq, kind, body, hash FROM records WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1"


def run_ids(db: sqlite3.Connection) -> list[bytes]:
    """The newest first."""
    return [run_id for (run_id,) in db.execute(_NEWEST_FIRST)]


def newest_run(db: sqlite3.Connection) -> bytes | None:
    row: tuple[bytes] | None = db.execute(_NEWEST_FIRST + " LIMIT 1").fetchone()
    return None if row is None else row[0]


def starts(db: sqlite3.Connection) -> Iterator[tuple[int, bytes, Record]]:
    """First place, id and first record of each run, the newest first; between them the connection sees what is new."""
    for run_id in run_ids(db):
        if found := start_of(db, run_id):
            yield found


def start_of(db: sqlite3.Connection, run_id: bytes) -> tuple[int, bytes, Record] | None:
    """By the index, else by the table itself: an index that was tampered with must not make a run vanish."""
    looks = (db.execute(_START.format(how), (run_id,)).fetchone() for how in ("", "NOT INDEXED"))
    row = next((found for found in looks if found is not None), None)
    return None if row is None else (row[0], row[1], _record(*row[2:]))


def records_from(db: sqlite3.Connection, place: int, *, bodies: bool) -> Iterator[Record]:
    """The records of the run whose first one lies at the place, one at a time."""
    for columns in db.execute(_ALL, _span(place)):
        record = _record(*columns)
        yield with_bodies(db, record) if bodies else record


def with_bodies(db: sqlite3.Connection, record: Record) -> Record:
    body = filled_in(db, record.body)
    return Record(seq=record.seq, kind=record.kind, body=body, hash=record.hash)


def run_of(db: sqlite3.Connection, place: int, run_id: bytes, start: Record, *, is_held: IsHeld) -> Run:
    text = run_id_text(run_id)
    try:
        return _run_of(db, place, text, start, is_held)
    except (KeyError, TypeError, ValueError):
        raise not_understood(f"run {text}") from None


def _run_of(db: sqlite3.Connection, place: int, text: str, start: Record, is_held: IsHeld) -> Run:
    last = _last(db, place)
    status = _ended(last)
    if status is None and is_held(text):
        status = RunStatus.RUNNING
    elif status is None:
        last = _last(db, place)  # it may have ended between the first look and the look at its lock
        status = _ended(last) or RunStatus.INTERRUPTED
    return Run(
        run_id=text,
        status=status,
        counts=_counts(db, place, last),
        records=last.seq,
        head=last.hash,
        start=start,
        end=last if last.kind == "end" else None,
    )


def _span(place: int) -> tuple[int, int]:
    return place, place + RUN_SPAN - 2


def _last(db: sqlite3.Connection, place: int) -> Record:
    return _record(*db.execute(_LAST, _span(place)).fetchone())


def _ended(last: Record) -> RunStatus | None:
    return RunStatus(str(last.body["status"])) if last.kind == "end" else None


def _counts(db: sqlite3.Connection, place: int, last: Record) -> Counts:
    if last.kind == "end":
        return _recorded(last.body["counts"])
    tally = Tally()
    for record in records_from(db, place, bodies=False):
        whole = with_bodies(db, record) if record.kind == "skipped" else record  # its steps may have been moved out
        tally.take(record.seq, record.kind, whole.body)
    return tally.counts


def _recorded(counts: Json) -> Counts:
    if not isinstance(counts, Mapping) or not all(type(count) is int for count in counts.values()):
        raise ValueError("counts are numbers")
    return Counts(**cast("Mapping[str, int]", counts))


def _record(seq: int, kind: str, body: str, sealed: bytes) -> Record:
    try:
        value = json.loads(body)
    except (TypeError, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not isinstance(sealed, bytes):
        raise not_understood(f"record {seq}")
    return Record(seq=seq, kind=kind, body=value, hash=sealed.hex())
