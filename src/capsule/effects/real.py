"""Making a path real: going it component by component, as the kernel would, and writing down where that leads."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections import deque
from collections.abc import Iterable

from capsule.calls import Components
from capsule.effects.anchors import Anchors
from capsule.effects.beneath import O_PATH
from capsule.effects.volume import is_procfs

MAX_LINKS = 40  # as Linux has it
MAX_STEPS = 10_000  # links can spell far more names than any real path has
MAX_BYTES = 4096  # PATH_MAX: nobody can open a longer one by its name

# The same for what is a file and for what is not there: who may not look must not learn which.
_NO_WAY_UP = "goes up from what is no directory"
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})


class NoRealPath(Exception):
    """The message is the `problem` of a ConcretePath."""


class Resolver:
    """Finds real paths from the anchors' handles.

    What it finds may be out of date a moment later. That is no hole: what is decided is the path it answers,
    and the act opens exactly that path without following a link.
    """

    def __init__(self, anchors: Anchors) -> None:
        self._anchors = anchors
        self._procfs: dict[int, bool] = {}  # by device

    def real(self, base: Components, names: Iterable[str]) -> Components:
        """Where `names` lead from the real directory `base`; what does not exist yet keeps its plain names."""
        found = self._walk(list(base), deque(name for name in names if name not in ("", ".")))
        if 1 + len("/".join(found).encode()) >= MAX_BYTES:  # with the slash before, and a NUL behind
            raise NoRealPath(f"the real path is longer than {MAX_BYTES} bytes")
        return found

    def status(self, path: Components) -> os.stat_result | None:
        """Of the last name itself, were it a link; None where nothing is there."""
        directory, rest = self._anchors.below(path)
        try:
            return os.stat("/".join(rest).encode() or b".", dir_fd=directory, follow_symlinks=False)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise NoRealPath(f"/{'/'.join(path)}: {error.strerror}") from error

    def _walk(self, at: list[str], pending: deque[str]) -> Components:
        links = steps = 0
        in_directory, in_procfs = True, False
        while pending:
            name = pending.popleft()
            steps += 1
            if steps > MAX_STEPS:
                raise NoRealPath("the links on the way spell too long a path")
            if name == "..":
                if not in_directory:
                    raise NoRealPath(_NO_WAY_UP)
                del at[-1:]
                in_procfs = in_procfs and bool(at)
                continue
            if in_procfs and name.isdigit():
                raise NoRealPath("leads into a process's own directory in /proc")
            at.append(name)
            status = self.status(tuple(at))
            if status is None:
                return _plain_rest(at, pending)
            in_procfs = self._on_procfs(tuple(at), status)
            in_directory = stat.S_ISDIR(status.st_mode)
            if stat.S_ISLNK(status.st_mode):
                if in_procfs:
                    raise NoRealPath("leads through a link of the proc file system")
                links += 1
                if links > MAX_LINKS:
                    raise NoRealPath(f"more than {MAX_LINKS} links on the way: a loop?")
                self._follow(at, pending)
                in_directory = True
        return tuple(at)

    def _follow(self, at: list[str], pending: deque[str]) -> None:
        """Put the target of the link `at` in front of what is pending."""
        directory, rest = self._anchors.below(tuple(at))
        try:
            target = os.readlink("/".join(rest).encode(), dir_fd=directory).decode()
        except UnicodeDecodeError:
            raise NoRealPath("leads through a link whose target is not UTF-8 text") from None
        except OSError as error:
            raise NoRealPath("changed while it was looked at") from error
        del at[-1:]
        if target.startswith("/"):
            at.clear()
        pending.extendleft(name for name in reversed(target.split("/")) if name not in ("", "."))

    def _on_procfs(self, path: Components, status: os.stat_result) -> bool:
        known = self._procfs.get(status.st_dev) if sys.platform == "linux" else False
        if known is not None:
            return known
        # A link cannot be opened; it is on the device of its directory, because nothing is mounted on a link.
        directory, rest = self._anchors.below(path[:-1] if stat.S_ISLNK(status.st_mode) else path)
        try:
            handle = self._anchors.beneath.open(directory, rest, O_PATH)
        except OSError as error:
            raise NoRealPath("changed while it was looked at") from error
        try:
            self._procfs[status.st_dev] = is_procfs(handle)
        finally:
            os.close(handle)
        return self._procfs[status.st_dev]


def _plain_rest(at: list[str], pending: deque[str]) -> Components:
    if ".." in pending:
        raise NoRealPath(_NO_WAY_UP)
    return (*at, *pending)
