"""The one writer of a run: it alone appends, under a lock that it holds for its whole life."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from capsule.calls import Clock
from capsule.canon import Json
from capsule.errors import StorageError
from capsule.store.bodies import insert_body, split_body
from capsule.store.chain import (
    APPEND_KINDS,
    FIRST_PREV,
    RUN_SPAN,
    SALT_BYTES,
    AppendKind,
    Kind,
    SealedRecord,
    record_hash,
)
from capsule.store.faults import storage_faults
from capsule.store.ids import RANDOM_BYTES, make_run_id, run_id_text
from capsule.store.locks import RunLock, locks_directory
from capsule.store.opening import open_for_writing
from capsule.store.reading import newest_run
from capsule.store.reserve import give_up_reserve, keep_reserve
from capsule.store.tally import Tally

_INSERT = "INSERT INTO records (id, run_id, seq, kind, body, salt, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_NOT_YET_DONE = ("start", "intent")  # nothing has happened: better not at all than unrecorded


class RunWriter:
    """Appends the records of one run, from any thread; `end` it, or leave the `with` block, to let go of the run."""

    def __init__(self, start: Mapping[str, Json], *, db: sqlite3.Connection, path: Path, lock: RunLock, clock: Clock,
                 run_id: bytes, number: int) -> None:  # fmt: skip
        self.run_id = run_id_text(run_id)
        self._key = run_id
        self._base = number * RUN_SPAN
        self._db = db
        self._path = path
        self._lock = lock
        self._clock = clock
        self._process = os.getpid()
        self._mutex = threading.Lock()
        self._seq = 0
        self._head = FIRST_PREV
        self._tally = Tally()
        self._held: list[SealedRecord] = []
        self._full = False
        self._closed = False
        self._append("start", start)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, kind: AppendKind, body: Mapping[str, Json], *, hold: bool = False) -> int:
        """The record's seq; durable on return, or with `hold` together with what is appended next."""
        if kind not in APPEND_KINDS:
            raise ValueError(f"a record of kind {kind!r} cannot be appended")
        with self._mutex:
            return self._append(kind, body, hold=hold)

    def end(self, body: Mapping[str, Json]) -> None:
        """The last record, its counts taken from the others; the run is let go of even if it cannot be written."""
        try:
            with self._mutex:
                self._append("end", {**body, "counts": self._tally.counts.as_json()})
        finally:
            self.close()

    def close(self) -> None:
        """Without an end the run is interrupted from now on."""
        with self._mutex:
            if self._closed:
                return
            self._closed = True
            if os.getpid() != self._process:
                return  # a forked child has its parent's records in hand, and must not write them a second time
            try:
                self._write()
            finally:
                self._db.close()
                self._lock.release()

    def _append(self, kind: Kind, body: Mapping[str, Json], *, hold: bool = False) -> int:
        if self._closed:
            raise StorageError(5002, f"run {self.run_id} is over", hint="begin another run for further calls")
        if os.getpid() != self._process:
            raise StorageError(5002, "this process was forked from the one that runs", hint="open a gate of its own")
        if self._full and kind == "intent":
            raise StorageError(5002, "the journal could not be written; the run can only end", hint="free some space")
        if kind == "outcome":
            body = {**body, "begun": self._tally.began_at(str(body["call"]))}
        record = self._seal(kind, body)
        if hold:
            self._held.append(record)
            self._accept(record)
        else:
            self._write(record)
        return record.seq

    def _seal(self, kind: Kind, body: Mapping[str, Json]) -> SealedRecord:
        text, moved = split_body(body)
        seq, salt = self._seq + 1, self._clock.random_bytes(SALT_BYTES)
        sealed = record_hash(self.run_id, seq, kind, text, salt, self._head)
        return SealedRecord(
            seq=seq, kind=kind, fields=body, body=text, bodies=moved, salt=salt, prev=self._head, hash=sealed
        )

    def _accept(self, record: SealedRecord) -> None:
        self._seq, self._head = record.seq, record.hash
        self._tally.take(record.seq, record.kind, record.fields)

    def _write(self, *new: SealedRecord) -> None:
        try:
            self._store(new)
        except StorageError as error:
            if error.code != 5002:
                raise
            self._full = True
            give_up_reserve(self._path)
            if any(record.kind in _NOT_YET_DONE for record in new):
                raise
            self._store(new)

    def _store(self, new: Sequence[SealedRecord]) -> None:
        records = [*self._held, *new]
        if not records:
            return
        stored = False
        try:
            with storage_faults(self._path, "write"):
                self._commit(records)
            stored = True
        finally:
            if stored or self._is_stored(records[-1]):
                self._held = []
                for record in new:
                    self._accept(record)

    def _commit(self, records: Sequence[SealedRecord]) -> None:
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
        for record in records:
            for body in record.bodies:
                insert_body(self._db, body)
            place = self._base + record.seq
            inserted = self._db.execute(
                _INSERT,
                (place, self._key, record.seq, record.kind, record.body, record.salt, record.prev, record.hash),
            )
            if inserted.rowcount != 1:
                hint = "it was altered; keep it as evidence, and name another store with --db"
                raise StorageError(5004, f"the journal {self._path} takes no record", hint=hint)
        self._db.execute("COMMIT")

    def _is_stored(self, record: SealedRecord) -> bool:
        """After a fault or an interrupt, whose moment is not known, the file is asked."""
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            row = self._db.execute("SELECT hash FROM records WHERE id = ?", (self._base + record.seq,)).fetchone()
        except sqlite3.Error:
            return False
        return row is not None and row[0] == record.hash


def begin_run(path: Path, start: Mapping[str, Json], *, clock: Clock, busy_seconds: float) -> RunWriter:
    """A new run at the end of the store, its first record durable, its lock held."""
    keep_reserve(path)
    with ExitStack() as undo:
        db = open_for_writing(path, busy_seconds=busy_seconds)
        undo.callback(db.close)
        with storage_faults(path, "write"):
            db.execute("BEGIN IMMEDIATE")  # two runs that begin at once must not take the same number
            last = db.execute("SELECT max(id) FROM records").fetchone()[0]
            run_id = make_run_id(clock.now_ms(), clock.random_bytes(RANDOM_BYTES), newest_run(db))
            lock = RunLock.acquire(locks_directory(path), run_id_text(run_id))
        undo.callback(lock.release)
        number = 1 if last is None else last // RUN_SPAN + 1
        writer = RunWriter(start, db=db, path=path, lock=lock, clock=clock, run_id=run_id, number=number)
        undo.pop_all()
    return writer
