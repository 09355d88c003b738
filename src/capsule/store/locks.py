"""A run's lock: a file that its writer keeps locked for its whole life, and takes away at the end.

What a killed writer leaves behind is unlocked, and so says nothing; whoever next opens the store for writing tidies it.
The directory of locks is never reached through a link: who plants one beside a journal could have files of others
taken away.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from weakref import WeakSet

CREATING = "create"  # held while the store's file is made

_OURS = re.compile(r"create|[0-9a-f-]{36}")
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # what lies there may be anything: a FIFO must not hold us up
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def locks_directory(store: Path) -> Path:
    return store.with_name(store.name + "-locks")


class RunLock:
    """Held from `acquire` to `release`; the operating system lets go of it when the process dies."""

    def __init__(self, directory: Path, name: str, handle: int) -> None:
        self._directory = directory
        self._name = name
        self._handle = handle
        _held_here.add(self)

    @classmethod
    def acquire(cls, directory: Path, name: str) -> RunLock:
        while True:
            with suppress(FileExistsError):
                directory.mkdir(mode=0o700)
            with suppress(FileNotFoundError), _opened(directory) as parent:
                handle = _locked(parent, name)
                if handle is not None:
                    return cls(directory, name, handle)
            # Whoever held the last lock has just taken it, or the empty directory, away.

    def release(self) -> None:
        if self not in _held_here:
            return  # let go of already: this process was forked from the one that holds it
        with suppress(OSError), _opened(self._directory) as parent:
            os.unlink(self._name, dir_fd=parent)  # while it is held: nobody can have locked the next file of this name
        self.let_go()
        with suppress(OSError):  # not empty, or already gone
            self._directory.rmdir()

    def let_go(self) -> None:
        """Without taking the file away: it is another process's."""
        _held_here.discard(self)
        os.close(self._handle)


_held_here: WeakSet[RunLock] = WeakSet()


def _after_fork() -> None:
    """A child has its own handle on the same lock: it would keep its parent's run running after the parent's death."""
    for lock in list(_held_here):
        lock.let_go()


os.register_at_fork(after_in_child=_after_fork)


def _locked(parent: int, name: str) -> int | None:
    """None where it was tidied away before it was locked."""
    with ExitStack() as undo:
        handle = os.open(name, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600, dir_fd=parent)
        undo.callback(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not _is_at(parent, name, handle):
            return None
        undo.pop_all()
        return handle


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    handle = os.open(directory, _DIRECTORY)
    try:
        yield handle
    finally:
        os.close(handle)


def is_held(directory: Path, name: str) -> bool:
    try:
        with _opened(directory) as parent:
            handle = os.open(name, os.O_RDONLY | _FLAGS, dir_fd=parent)
    except PermissionError:
        return True  # another user's run: that the file is there is all that can be known
    except OSError:
        return False
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
    try:
        with _opened(directory) as parent:
            for name in os.listdir(parent):  # noqa: PTH208 - by its handle: the path may lead elsewhere by now
                if _OURS.fullmatch(name):
                    with suppress(OSError):
                        _tidy_lock(parent, name)
    except OSError:  # there is none, or it is not ours to tidy
        return
    with suppress(OSError):
        directory.rmdir()


def _tidy_lock(parent: int, name: str) -> None:
    handle = os.open(name, os.O_RDWR | _FLAGS, dir_fd=parent)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(parent, name, handle):
            os.unlink(name, dir_fd=parent)
    finally:
        os.close(handle)


def _is_at(parent: int, name: str, handle: int) -> bool:
    """Whether the file that was opened is the regular file of this name now."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode):
        raise FileExistsError(f"{name} is not a regular file")
    return os.path.samestat(found, os.fstat(handle))
