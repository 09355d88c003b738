"""What the system's errors mean to a caller: denied where the world changed under a decision, failed otherwise."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from capsule.calls import FileGrant
from capsule.errors import CapsuleError, PolicyDenied, ToolError

LINK_APPEARED = frozenset({errno.ELOOP, errno.EXDEV})

_MEANING: Mapping[int, tuple[str, str | None]] = {
    errno.ENOENT: ("there is no such file", "fs.list shows what is there"),
    errno.ENOTDIR: ("a name on the way is not a directory", "fs.list shows what is there"),
    errno.EISDIR: ("it is a directory", "use fs.list"),
    errno.ENXIO: ("it is a socket or a device; only regular files are read and written", None),
    errno.EACCES: ("the system refuses it: permission denied", "the user that runs Capsule may not do this"),
    errno.EPERM: ("the system refuses it: operation not permitted", "the user that runs Capsule may not do this"),
    errno.EROFS: ("the file system is read-only", None),
    errno.ENAMETOOLONG: ("the name is too long", "at most 255 bytes a name and 4095 bytes a path"),
    errno.ENOSPC: ("the disk is full", "make room and try again"),
    errno.EDQUOT: ("the disk quota is used up", "make room and try again"),
    errno.EMFILE: ("too many files are open", "raise the limit of open files (ulimit -n)"),
}


def grant_path(grant: FileGrant) -> str:
    """The granted path as a person would write it."""
    path = "/".join(grant.components)
    return (path or ".") if grant.anchor == "workdir" else "/" + path


def failure(error: OSError, act: str, grant: FileGrant) -> CapsuleError:
    """`act` is the verb of the sentence: read, write, list."""
    path = grant_path(grant)
    if error.errno in LINK_APPEARED:
        return link_appeared(grant)
    code = error.errno or 0
    meaning, hint = _MEANING.get(code, (os.strerror(code), None))
    return ToolError(2003, f"cannot {act} {path}: {meaning}", hint, {"errno": code})


def link_appeared(grant: FileGrant) -> PolicyDenied:
    return PolicyDenied(
        1001,
        f"{grant_path(grant)} is not what was decided on: a link lies on its way now",
        hint="something changes these files while they are used; call again when they stand still",
    )
