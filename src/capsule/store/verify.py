"""Whether chains are whole: what was written, in the order it was written, and nothing else.

Reads only, also while a run goes on. Trusts neither index nor view: rows are taken in the order of their places.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from capsule.canon import Json
from capsule.errors import StorageError
from capsule.store.bodies import REFERENCE_TEXT, check_body, references
from capsule.store.chain import FIRST_PREV, RUN_SPAN, record_hash
from capsule.store.ids import run_id_text

_Row: TypeAlias = tuple[int, bytes, int, str, str, bytes, bytes, bytes]

_ROWS = """SELECT id, run_id, seq, kind, body, salt, prev, hash FROM records NOT INDEXED
    WHERE id BETWEEN ? AND ? ORDER BY id"""
_FIRST_PLACE = "SELECT id, run_id FROM records NOT INDEXED WHERE id >= ? ORDER BY id LIMIT 1"
_LEAST_PLACE, _GREATEST_PLACE = -(2**63), 2**63 - 1
_BEGUN = re.compile(r'\{"at":\d+,"begun":(\d+),').match  # a canonical outcome, so that it need not be parsed
_REMEMBERED_BODIES = 10_000  # a shared body is hashed once; past this many, all may be hashed again


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """Where a chain stops being believable, and why."""

    seq: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainCheck:
    """`records` and `head` are of the part that holds; `unknown` are its intents that have no outcome."""

    run_id: str
    records: int
    head: str
    ended: bool
    unknown: tuple[int, ...]
    breach: Breach | None

    @property
    def ok(self) -> bool:
        return self.breach is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    checks: tuple[ChainCheck, ...]
    problem: str | None = None  # of the store as a whole

    @property
    def ok(self) -> bool:
        return self.problem is None and all(check.ok for check in self.checks)


class _Broken(Exception):
    pass


@dataclass(slots=True)
class _Chain:
    """One run, as far as its records hold."""

    run_id: bytes
    base: int  # the place of a record is this and its seq
    seq: int = 0
    head: bytes = FIRST_PREV
    ended: bool = False
    begun: set[int] = field(default_factory=set)


class ChainReader:
    """Checks the runs of one store over one connection.

    `head_seen` turns true when a record that holds has that hash; `damage` says why there was no going on.
    """

    def __init__(self, db: sqlite3.Connection, *, head: bytes | None = None) -> None:
        self._db = db
        self._head = head
        self.head_seen = head is None
        self.damage: str | None = None
        self._bodies: dict[tuple[str, int], str | None] = {}

    def every_run(self) -> Iterator[ChainCheck]:
        seen: set[bytes] = set()
        place = _LEAST_PLACE
        while place <= _GREATEST_PLACE:
            found = self._next(place)
            if found is None:
                return
            first, run_id = found
            yield self._of_run(first // RUN_SPAN, run_id, twice=run_id in seen)
            seen.add(run_id)
            place = (first // RUN_SPAN + 1) * RUN_SPAN

    def _next(self, place: int) -> tuple[int, bytes] | None:
        try:
            found: tuple[int, bytes] | None = self._db.execute(_FIRST_PLACE, (place,)).fetchone()
        except sqlite3.Error as error:
            self.damage = f"the file is damaged: {damage_of(error)}"
            return None
        return found

    def run_at(self, place: int, run_id: bytes) -> ChainCheck:
        return self._of_run(place // RUN_SPAN, run_id, twice=False)

    def _of_run(self, number: int, run_id: bytes, *, twice: bool) -> ChainCheck:
        chain = _Chain(run_id, base=number * RUN_SPAN)
        breach = Breach(seq=1, message="another run of this store has the same id") if twice else None
        text = run_id_text(run_id) if type(run_id) is bytes else str(run_id)
        try:
            self._follow(chain, text, self._db.execute(_ROWS, (chain.base, chain.base + RUN_SPAN - 1)))
        except _Broken as broken:
            breach = Breach(seq=chain.seq + 1, message=str(broken))
        except sqlite3.Error as error:
            breach = Breach(seq=chain.seq + 1, message=f"cannot be read: {damage_of(error)}")
        return ChainCheck(
            run_id=text,
            records=chain.seq,
            head=chain.head.hex(),
            ended=chain.ended,
            unknown=tuple(sorted(chain.begun)),
            breach=breach,
        )

    def _follow(self, chain: _Chain, run: str, rows: Iterable[_Row]) -> None:
        run_id, head = chain.run_id, self._head
        for row in rows:
            place, row_run_id, seq, kind, body, salt, prev, sealed = row
            if (
                row_run_id != run_id
                or seq != chain.seq + 1
                or place != chain.base + seq
                or prev != chain.head
                or type(salt) is not bytes
                or type(body) is not str
                or type(kind) is not str
                or not kind.isalpha()  # else text could move between kind and body with no change of the hash
                or record_hash(run, seq, kind, body, salt, prev) != sealed
            ):
                raise _Broken(_difference(chain, run, row))
            self._understand(chain, seq, kind, body)
            chain.seq, chain.head = seq, sealed
            if sealed == head:
                self.head_seen = True

    def _understand(self, chain: _Chain, seq: int, kind: str, body: str) -> None:
        if (seq == 1) != (kind == "start"):
            raise _Broken(f"is a {kind}; a run has one start, its first record")
        if chain.ended:
            raise _Broken("stands after the end of the run")
        if kind == "intent":
            chain.begun.add(seq)
        elif kind == "outcome":
            match = _BEGUN(body)
            begun = int(match[1]) if match else _fields(body).get("begun")
            if not isinstance(begun, int) or begun not in chain.begun:
                raise _Broken("is an outcome of a call that did not begin, or that has one already")
            chain.begun.remove(begun)
        elif kind == "end":
            chain.ended = True
        if REFERENCE_TEXT in body:
            self._look_up_bodies(body)

    def _look_up_bodies(self, body: str) -> None:
        try:
            moved = references(_fields(body))
        except StorageError as error:
            raise _Broken(error.message) from None
        for name, where in moved.items():
            if where not in self._bodies:
                if len(self._bodies) >= _REMEMBERED_BODIES:
                    self._bodies.clear()
                self._bodies[where] = self._body_problem(*where)
            if problem := self._bodies[where]:
                raise _Broken(f"{name}: {problem}")

    def _body_problem(self, digest: str, size: int) -> str | None:
        try:
            check_body(self._db, digest, size)
        except StorageError as error:
            return error.message
        return None


def damage_of(error: sqlite3.Error) -> str:
    """What a fault says about the file; one that says nothing about it is raised again."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise error
    return str(error)


def _fields(body: str) -> Mapping[str, Json]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _Broken("its body is not an object")
    return value


def _difference(chain: _Chain, run: str, row: _Row) -> str:
    """What is wrong with a row that does not follow, said as far as the row itself tells."""
    place, run_id, seq, kind, body, salt, prev, sealed = row
    if run_id != chain.run_id:
        return "carries the id of another run"
    if seq != chain.seq + 1:
        return f"is missing: record {seq} stands in its place"
    formed = type(kind) is str and kind.isalpha() and type(body) is str and type(salt) is bytes and type(prev) is bytes
    if formed and record_hash(run, seq, kind, body, salt, chain.head) == sealed:
        return "its prev was changed" if place == chain.base + seq else "lies in another place than it was given"
    if formed and record_hash(run, seq, kind, body, salt, prev) == sealed:
        return "follows another record than the one before it: that one was replaced, put in or moved"
    return "its kind, body, salt, prev or hash is not what was recorded"
