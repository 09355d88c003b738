"""What SQLite and the operating system report, as 5xxx errors that say what to do."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from capsule.errors import StorageError

Doing: TypeAlias = Literal["open", "read", "write"]

_CODES: dict[Doing, int] = {"open": 5001, "read": 5003, "write": 5002}
_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)

_ACCESS = "check that the file and its directory are yours to use, or name another store with --db"
_SPACE = "free some space on that disk, then go on"
_DAMAGE = "keep a copy of the file; restore a backup, or save what can be read with `sqlite3 FILE .recover`"
_DEVICE = "the disk failed or is full: look at the system's log, free some space, then go on"


@contextmanager
def storage_faults(path: Path, doing: Doing) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _of_sqlite(error, path, doing) from error
    except OSError as error:
        raise _of_system(error, path, doing) from error


def _of_sqlite(error: sqlite3.Error, path: Path, doing: Doing) -> StorageError:
    code, found = _CODES[doing], f"cannot {doing} the journal {path}: {error}"
    hint = _DAMAGE if doing == "read" else _ACCESS
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # the high bits only say where in SQLite it was seen
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            code, found = 5006, f"another process has kept the journal {path} locked for too long"
            hint = "wait until the other process is done, or end it; then try again"
        case sqlite3.SQLITE_NOTADB:
            code, found = 5001, f"{path} is not a journal of Capsule: it is not an SQLite file"
            hint = "name another file with --db, or move this one away"
        case sqlite3.SQLITE_CORRUPT:
            code, found, hint = 5003, f"the journal {path} is damaged: {error}", _DAMAGE
        case sqlite3.SQLITE_FULL:
            code, found, hint = 5002, f"the disk is full: the journal {path} cannot grow", _SPACE
        case sqlite3.SQLITE_IOERR if doing != "read":
            hint = _DEVICE
    return StorageError(code, found, hint, {"path": str(path)})


def _of_system(error: OSError, path: Path, doing: Doing) -> StorageError:
    full = error.errno in _FULL_ERRNOS
    code = 5002 if full else _CODES[doing]
    found = f"cannot {doing} the journal {path}: {error.strerror}"
    return StorageError(code, found, _SPACE if full else _ACCESS, {"path": str(path)})


def not_understood(what: str) -> StorageError:
    return StorageError(
        5004,
        f"{what} cannot be understood",
        hint="the journal was altered or damaged: `capsule verify --all` says where",
    )
