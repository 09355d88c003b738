"""The journal: one SQLite file of runs, each an append-only chain of records."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from capsule.calls import Clock, RunStatus
from capsule.canon import Json
from capsule.errors import ReplayError, StorageError
from capsule.store.faults import storage_faults
from capsule.store.ids import nearest_runs, reference_digits, run_id_text
from capsule.store.locks import is_held, locks_directory, tidy_locks
from capsule.store.migrations import MIGRATIONS, migrate, strange_to
from capsule.store.opening import (
    BUSY_SECONDS,
    check_made,
    ensure_store,
    identify,
    is_writable,
    open_for_writing,
    reading,
)
from capsule.store.reading import Record, Run, records_from, run_ids, run_of, start_of, starts, with_bodies
from capsule.store.verify import ChainCheck, ChainReader, Verification, damage_of
from capsule.store.writer import RunWriter, begin_run

_NEAREST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A journal at a path. It holds nothing open: each reading is a connection of its own, and so is each run."""

    path: Path
    clock: Clock
    readonly: bool = False
    busy_seconds: float = BUSY_SECONDS

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        create: bool = True,
        readonly: bool = False,
        busy_seconds: float = BUSY_SECONDS,
    ) -> Self:
        """The journal at the path, made or migrated where need be; a file that is something else is left untouched."""
        real = Path(os.path.realpath(path))  # locks lie beside the file: all its names must lead to the same ones
        ensure_store(real, create=create and not readonly)
        with reading(real, busy_seconds=busy_seconds) as db:
            version = identify(db, real)
            if not readonly:
                check_made(db, real, version)
        if not readonly:
            _make_ready(real, version, busy_seconds)
        elif version < len(MIGRATIONS):
            raise StorageError(
                5001, f"the journal {real} has an older form", hint="begin a run in it; that brings it up to date"
            )
        return cls(path=real, clock=clock, readonly=readonly, busy_seconds=busy_seconds)

    def begin(self, start: Mapping[str, Json]) -> RunWriter:
        """A new run: its first record is durable and its lock is held on return."""
        if self.readonly:
            raise StorageError(5001, f"the journal {self.path} was opened for reading only", hint="open it for writing")
        return begin_run(self.path, start, clock=self.clock, busy_seconds=self.busy_seconds)

    def runs(self, *, limit: int | None = None, status: RunStatus | None = None) -> list[Run]:
        """The newest first; large fields of their records are left as references."""
        found: list[Run] = []
        with self._reading() as db:
            for place, run_id, start in starts(db):
                if limit is not None and len(found) >= limit:
                    break
                run = run_of(db, place, run_id, start, is_held=self._is_held)
                if status in (None, run.status):
                    found.append(run)
        return found

    def run(self, run_id: str) -> Run:
        """One run by its whole id, its first record filled in."""
        with self._reading() as db:
            place, key, start = self._start(db, run_id)
            return run_of(db, place, key, with_bodies(db, start), is_held=self._is_held)

    def records(self, run_id: str, *, bodies: bool = True) -> Iterator[Record]:
        """The records of a run as of this moment, one at a time; without `bodies`, large fields stay references."""
        with self._reading() as db:
            place, _, _ = self._start(db, run_id)
            yield from records_from(db, place, bodies=bodies)

    def find(self, reference: str, *, workdir: Path | None = None) -> str:
        """The id of one run, by its beginning or end, or `last`: the newest of the workdir that is no replay."""
        with self._reading() as db:
            if reference == "last":
                return self._last(db, workdir)
            digits = reference_digits(reference)
            known = run_ids(db)
        named = [key for key in known if digits and (key.hex().startswith(digits) or key.hex().endswith(digits))]
        if len(named) == 1:
            return run_id_text(named[0])
        if named:
            several = ", ".join(map(run_id_text, named[:_NEAREST]))
            raise ReplayError(4001, f"{reference!r} names {len(named)} runs", hint=f"say more of it: {several} …")
        nearest = ", ".join(nearest_runs(reference, known, count=_NEAREST))
        raise ReplayError(
            4001, f"there is no run {reference!r}", hint=f"the nearest: {nearest}" if nearest else "no run is recorded"
        )

    def verify(self, run_id: str | None = None, *, head: str | None = None) -> Verification:
        """One chain or all of them; `head` is an exported head that one of these must hold."""
        with self._reading() as db:
            reader = ChainReader(db, head=None if head is None else bytes.fromhex(head))
            if run_id is None:
                checks = tuple(reader.every_run())
                problem = reader.damage or _strange(db, checks)
            else:
                place, key, _ = self._start(db, run_id)
                checks = (reader.run_at(place, key),)
                problem = reader.damage or _strange(db, ())
        lost = None if reader.head_seen else f"no chain that holds has a record with the hash {head}"
        return Verification(checks=checks, problem=problem or lost)

    def _reading(self) -> AbstractContextManager[sqlite3.Connection]:
        return reading(self.path, busy_seconds=self.busy_seconds)

    def _is_held(self, run_id: str) -> bool:
        return is_held(locks_directory(self.path), run_id)

    def _start(self, db: sqlite3.Connection, run_id: str) -> tuple[int, bytes, Record]:
        digits = reference_digits(run_id)
        found = start_of(db, bytes.fromhex(digits)) if digits and len(digits) == 32 else None
        if found is None:
            raise ReplayError(4001, f"there is no run {run_id!r}", hint="`capsule list-runs` shows the runs there are")
        return found

    def _last(self, db: sqlite3.Connection, workdir: Path | None) -> str:
        for _, run_id, start in starts(db):
            here = workdir is None or start.body.get("workdir") == str(workdir)
            if here and start.body.get("mode") != "replay":
                return run_id_text(run_id)
        where = "" if workdir is None else f" of {workdir}"
        raise ReplayError(4001, f"there is no run{where} yet", hint="`capsule list-runs` shows the runs there are")


def _strange(db: sqlite3.Connection, found: Iterable[ChainCheck]) -> str | None:
    """What was done to the store beside its records; `found` are runs that its index must know too."""
    try:
        hidden = {check.run_id for check in found} - {run_id_text(key) for key in run_ids(db)}
        strange = [*strange_to(db, len(MIGRATIONS)), *(f"the index of runs hides run {run}" for run in sorted(hidden))]
    except sqlite3.DatabaseError as error:
        return f"the file is damaged: {damage_of(error)}"
    return "; ".join(strange) or None


def _make_ready(path: Path, version: int, busy_seconds: float) -> None:
    """For writing: up to date, and without what killed writers left."""
    if not is_writable(path):
        raise StorageError(
            5001,
            f"the journal {path} or its directory is read-only",
            hint="make both writable for you, or name another store with --db",
            context={"path": str(path)},
        )
    if version < len(MIGRATIONS):
        with closing(open_for_writing(path, busy_seconds=busy_seconds)) as db, storage_faults(path, "write"):
            migrate(db)
    tidy_locks(locks_directory(path))
