"""A run's lock: a file that its writer keeps locked for its whole life, and takes away at the end.

What a killed writer leaves behind is unlocked, and so says nothing; whoever next opens the store for writing tidies it.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import ExitStack, suppress
from pathlib import Path

CREATING = "create"  # held while the store's file is made

_OURS = re.compile(r"create|[0-9a-f-]{36}")
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


def locks_directory(store: Path) -> Path:
    return store.with_name(store.name + "-locks")


class RunLock:
    """Held from `acquire` to `release`; the operating system lets go of it when the process dies."""

    def __init__(self, path: Path, handle: int) -> None:
        self._path = path
        self._handle = handle

    @classmethod
    def acquire(cls, directory: Path, name: str) -> RunLock:
        path = directory / name
        while True:
            with suppress(FileExistsError):
                directory.mkdir(mode=0o700)
            try:
                handle = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
            except FileNotFoundError:
                continue  # whoever held the last lock has just taken the empty directory away
            with ExitStack() as undo:
                undo.callback(os.close, handle)
                fcntl.flock(handle, fcntl.LOCK_EX)
                if _is_at(path, handle):  # else it was tidied away before it was locked
                    undo.pop_all()
                    return cls(path, handle)

    def release(self) -> None:
        self._path.unlink(missing_ok=True)  # while it is held: nobody can have locked the next file of this name
        os.close(self._handle)
        with suppress(OSError):  # not empty, or already gone
            self._path.parent.rmdir()


def is_held(directory: Path, name: str) -> bool:
    try:
        handle = os.open(directory / name, os.O_RDONLY | _FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError:
        return True  # another user's run: that the file is there is all that can be known
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def tidy_locks(directory: Path) -> None:
    """Take away what killed writers left."""
    if not directory.is_dir():
        return
    for path in directory.iterdir():
        if _OURS.fullmatch(path.name):
            with suppress(OSError):
                _tidy_lock(path)
    with suppress(OSError):
        directory.rmdir()


def _tidy_lock(path: Path) -> None:
    handle = os.open(path, os.O_RDWR | _FLAGS)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(path, handle):
            path.unlink()
    finally:
        os.close(handle)


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False
