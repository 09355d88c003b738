"""Reading a range of exactly the file that was granted."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from capsule.calls import Chunk, FileGrant
from capsule.effects.anchors import Anchors
from capsule.effects.beneath import O_PATH
from capsule.effects.failures import failure, grant_path
from capsule.errors import PolicyDenied, ToolError

FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY  # a FIFO or a terminal must not hold the call up

# Where there is no O_PATH a look is an opening like any other, and a FIFO must not hold that up either.
_LOOK = FILE if O_PATH == os.O_RDONLY else O_PATH

_LEAST = 64 * 1024  # what is asked for at least: files of procfs and sysfs say that they are empty
BLOCK = 1024 * 1024  # what is read or written between two looks at the clock

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link",
}


InTime: TypeAlias = Callable[[], None]
"""Raises when the time of a call is up; asked before each block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much one call may read, or how large it may make a file, and until when."""

    max_bytes: int
    in_time: InTime


def read(anchors: Anchors, grant: FileGrant, *, offset: int, length: int | None, bounds: Bounds) -> Chunk:
    """From `offset`; `length` None is the rest of the file."""
    try:
        _look(anchors, grant)
        descriptor = anchors.open_granted(grant, FILE)
        try:
            status = os.fstat(descriptor)
            only_regular(status, grant)
            if anchors.kept.is_unreadable(status):
                raise PolicyDenied(1001, f"{grant_path(grant)} is another name of a file that no tool may read")
            want = bounds.max_bytes if length is None else min(length, bounds.max_bytes)
            data = _range(descriptor, offset, want, status.st_size, bounds.in_time)
            size = _size(descriptor, offset, data, want=want, told=status.st_size)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise failure(error, "read", grant) from error
    return Chunk(data=data, size=size, hard_link=status.st_nlink > 1)


def _look(anchors: Anchors, grant: FileGrant) -> None:
    """Before anything is opened: whoever waits at the other end of a FIFO would take that for a reader."""
    handle = anchors.open_granted(grant, _LOOK)
    try:
        only_regular(os.fstat(handle), grant)
    finally:
        os.close(handle)


def only_regular(status: os.stat_result, grant: FileGrant) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise ToolError(
            2003,
            f"{grant_path(grant)} is {_KINDS.get(kind, 'not a file')}; only regular files are read and written",
            hint="use fs.list" if kind == stat.S_IFDIR else None,
        )


def _range(descriptor: int, offset: int, want: int, size: int, in_time: InTime) -> bytes:
    """Memory follows what is there, not what is asked for."""
    pieces = []
    while want > 0:
        in_time()
        piece = os.pread(descriptor, min(want, max(size - offset, _LEAST), BLOCK), offset)
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
        want -= len(piece)
    return b"".join(pieces)


def _size(descriptor: int, offset: int, data: bytes, *, want: int, told: int) -> int:
    """The size of the whole file, also where the system does not tell it or it changed meanwhile."""
    end = offset + len(data)
    if not data or (end < told and len(data) == want):
        return told
    return end if len(data) < want else end + len(os.pread(descriptor, 1, end))
