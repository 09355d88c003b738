"""From a path to a connection: make the file, know it for what it is, and leave alone what is not ours.

Nothing here opens the store's file but SQLite: closing any other handle on it would drop SQLite's own locks.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from capsule.errors import StorageError
from capsule.store.faults import not_understood, storage_faults
from capsule.store.locks import CREATING, RunLock, locks_directory
from capsule.store.migrations import APPLICATION_ID, MIGRATIONS, migrate, schema_version, strange_to

BUSY_SECONDS = 10.0  # a commit takes milliseconds; who waits longer waits for a process that hangs

_READING = ("query_only = ON", "user_version")  # SQLite looks at a file when it is first read
_NO_WAL = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY)
# 1 MiB: a file that no longer grows is synced in half the time, and three more syncs in some 200 commits do not count.
_WAL_PAGES = 128
_PAGES = "page_size = 8192"  # a small record is a fifth of a page of 4096, and what is left of each page adds up

_NAMED = 3  # of what is strange in a file; the rest follows when these are mended
_OTHER_STORE = "name another file with --db, or move this one away"


def ensure_store(path: Path, *, create: bool) -> None:
    """A regular file stands at the path; where there was none, or an empty one, a new store."""
    with storage_faults(path, "open"):
        try:
            status = path.stat()
        except FileNotFoundError:
            status = None
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise StorageError(5001, f"{path} is not a regular file", _OTHER_STORE, {"path": str(path)})
    _check_companions(path)
    if status is not None and status.st_size > 0:
        return
    if not create:
        raise StorageError(5001, f"there is no journal at {path}", hint="`capsule run` makes one; see also --db")
    with storage_faults(path, "open"):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_store(path)


def _check_companions(path: Path) -> None:
    """SQLite opens what it finds under these names, and would wait for ever at a FIFO."""
    for ending in ("-wal", "-shm", "-journal"):
        companion = path.with_name(path.name + ending)
        with storage_faults(path, "open"), suppress(FileNotFoundError):
            if not stat.S_ISREG(companion.lstat().st_mode):
                raise StorageError(5001, f"{companion} is not a regular file", hint="take it away: it is not Capsule's")


def open_for_reading(path: Path, *, busy_seconds: float) -> sqlite3.Connection:
    """A connection that cannot change the file, nor leave files beside it that were not there."""
    with storage_faults(path, "open"):
        left = any(_holds_something(path.with_name(path.name + ending)) for ending in ("-wal", "-journal"))
        # Only who may write takes -wal and -shm away again. But where one is left, by a crash or by a run that goes
        # on, who may write would also move its pages into the file.
        query = "mode=rw" if is_writable(path) and not left else "mode=ro"
        try:
            return _connect(path, query, busy_seconds, *_READING)
        except sqlite3.OperationalError as error:
            if left or error.sqlite_errorcode & 0xFF not in _NO_WAL:
                raise
            # On a full or read-only disk no -wal can be made. There is none, so nobody is writing.
            return _connect(path, "mode=ro&immutable=1", busy_seconds, *_READING)


def open_for_writing(path: Path, *, busy_seconds: float) -> sqlite3.Connection:
    with storage_faults(path, "write"):
        return _connect(path, "mode=rw", busy_seconds, "synchronous = FULL", f"wal_autocheckpoint = {_WAL_PAGES}")


def _holds_something(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def identify(db: sqlite3.Connection, path: Path) -> int:
    """The schema number of a store of ours; anything else is refused."""
    with storage_faults(path, "open"):
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = schema_version(db)
    if application != APPLICATION_ID:
        raise StorageError(
            5001, f"{path} is an SQLite file of another program, not a journal of Capsule", hint=_OTHER_STORE
        )
    if version > len(MIGRATIONS):
        raise StorageError(
            5005,
            f"the journal {path} has schema {version}; this Capsule knows up to {len(MIGRATIONS)}",
            hint="use the newer Capsule that wrote it, or name another store with --db",
            context={"path": str(path)},
        )
    if version > 0:
        with storage_faults(path, "read"):
            views = db.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall()
            if {("records",), ("bodies",)} & set(views):  # which could go on for ever
                raise not_understood(f"the journal {path}, whose records are a view,")
            db.execute("SELECT id FROM records LIMIT 1").fetchone()
    return version


def check_made(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Before anything is written: a trigger that is not ours could swallow what was recorded."""
    strange = strange_to(db, version)
    if strange:
        raise StorageError(
            5004,
            f"the journal {path} was altered: {'; '.join(strange[:_NAMED])}",
            hint="nothing is recorded in it; keep it as evidence, and name another store with --db",
            context={"path": str(path)},
        )


@contextmanager
def reading(path: Path, *, busy_seconds: float) -> Iterator[sqlite3.Connection]:
    """A connection of its own: what is read is one moment of the store, however long the reading takes."""
    db = open_for_reading(path, busy_seconds=busy_seconds)
    try:
        with storage_faults(path, "read"):
            yield db
    finally:
        db.close()


def _connect(path: Path, query: str, busy_seconds: float, *pragmas: str) -> sqlite3.Connection:
    db = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?{query}",
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        for pragma in pragmas:
            db.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _make_store(path: Path) -> None:
    """Made aside and put in its place whole, so that a store is never seen half made, whoever dies when."""
    directory = locks_directory(path)
    lock = RunLock.acquire(directory, CREATING)
    try:
        if path.exists() and path.stat().st_size > 0:
            return  # another process was faster
        draft = directory / "draft"
        for ending in ("", "-wal", "-shm", "-journal"):  # what a killed maker left
            draft.with_name(draft.name + ending).unlink(missing_ok=True)
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            _fill_store(draft)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        _sync_directory(path.parent)
    finally:
        lock.release()


def _fill_store(draft: Path) -> None:
    with closing(_connect(draft, "mode=rw", BUSY_SECONDS, "synchronous = FULL", _PAGES, "journal_mode = WAL")) as db:
        migrate(db)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # some file systems have no such thing, and need none
            os.fsync(handle)
    finally:
        os.close(handle)
