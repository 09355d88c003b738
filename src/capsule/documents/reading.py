"""A file's text, at once or not at all: only regular files are opened, and no more is read than a document may hold."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from pathlib import Path

from capsule.documents.places import error_at
from capsule.documents.wording import spell_name
from capsule.errors import PlanError

MAX_BYTES = 1024 * 1024  # 29,000 of the smallest steps; a reader that takes more can be kept busy

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_REASONS = {
    errno.ENOENT: "there is no such file",
    errno.EACCES: "its permissions forbid it",
    errno.ELOOP: "it is a loop of links",
    errno.ENAMETOOLONG: "its name is too long",
    errno.ENOTDIR: "a part of its path is not a directory",
}
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(path: Path, *, kind: str) -> str:
    """The text of a configuration file of any kind; PlanError 3001 for everything that is not one."""
    name = spell_name(str(path))
    try:
        data = _read(path)
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, (error.strerror or str(error)).lower())
        raise _unreadable(name, kind, reason) from error
    except ValueError as error:
        raise _unreadable(name, kind, "its name is not one that a file can have") from error
    if isinstance(data, str):
        raise _unreadable(name, kind, f"it is {data}")
    return decoded(data, name)


def _read(path: Path) -> bytes | str:
    """What the file holds, or what it is instead of a file."""
    before = path.stat()
    if not stat.S_ISREG(before.st_mode):
        return _what(before.st_mode)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        now = os.fstat(handle)
        return file.read(MAX_BYTES + 1) if stat.S_ISREG(now.st_mode) else _what(now.st_mode)


def _what(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "not a regular file")


def _unreadable(name: str, kind: str, reason: str) -> PlanError:
    return PlanError(3001, f"{name}: cannot read this {kind}: {reason}", "name a regular file", {"file": name})


def decoded(data: bytes, name: str) -> str:
    """The text of some bytes, which must be few enough and UTF-8; a byte order mark is dropped."""
    if len(data) > MAX_BYTES:
        message = f"too large: found more than {MAX_BYTES:,} bytes (1 MiB), which is all that is allowed"
        raise error_at(_roughly(data[:MAX_BYTES]), name, message)
    if data.startswith(_UTF16):
        raise error_at("", name, "found UTF-16, allowed: UTF-8", hint="save the file as UTF-8")
    nul = data.find(0)
    if nul >= 0:
        raise error_at(_roughly(data[:nul]), name, "found a NUL byte, allowed: text", hint="this is a binary file")
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        message = f"found the byte 0x{data[error.start]:02x}, which is not UTF-8"
        raise error_at(_roughly(data[: error.start]), name, message, hint="save the file as UTF-8") from error


def _roughly(data: bytes) -> str:
    """For counting lines in what may not be text at all."""
    return data.removeprefix(codecs.BOM_UTF8).decode(errors="replace")
