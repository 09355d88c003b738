"""Writing exactly the file that was granted: all of it or nothing, and never through a link of either kind.

Every write makes a new file beside the old one and renames it into place, so other names of the old file keep the
old content. Meanwhile the old file is locked: of several writers none loses what another has added. A process that is
killed at the wrong moment leaves `.capsule-XXXXXXXXXXXXXXXX.tmp` behind, nothing else.
Kept of the old file: its permission bits, and its owner and group where the system lets us; not kept: set-user-id
bits (as with any write), extended attributes and access lists.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from capsule.calls import Clock, FileGrant, Written
from capsule.calls.marker import joins_to_marker
from capsule.effects.anchors import Anchors
from capsule.effects.beneath import DIRECTORY
from capsule.effects.failures import failure, grant_path, link_appeared
from capsule.effects.reading import BLOCK, FILE, Bounds, only_regular
from capsule.errors import PolicyDenied, ToolError

_PERMISSIONS = 0o777
_TAIL = 1024  # bytes of an old file that what is appended could make a marker with
_PAUSE_SECONDS = 0.002  # a write takes about as long
_NOREPLACE = 1  # RENAME_NOREPLACE
_NO_SUCH_CALL = frozenset({errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.EOPNOTSUPP})
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF})  # the last from NFS: not for writing


def write(
    anchors: Anchors, grant: FileGrant, data: bytes, *, mode: str, create_dirs: bool, clock: Clock, bounds: Bounds
) -> Written:
    """`mode` is create, overwrite or append; the bounds are those of the whole file."""
    if not grant.components:
        raise ToolError(2003, f"{grant_path(grant)} is a directory; only regular files are read and written")
    try:
        parent = _parent(anchors, grant, create_dirs=create_dirs)
        try:
            if anchors.kept.is_place(parent, anchors.absolute(grant)):
                raise _another_name(grant)
            return _Write(
                anchors=anchors, grant=grant, data=data, mode=mode, clock=clock, bounds=bounds, parent=parent
            ).done()
        finally:
            os.close(parent)
    except OSError as error:
        raise failure(error, "write", grant) from error


def _parent(anchors: Anchors, grant: FileGrant, *, create_dirs: bool) -> int:
    directory = grant.components[:-1]
    try:
        return anchors.beneath.open(anchors.handle(grant), directory, DIRECTORY)
    except FileNotFoundError:
        if not create_dirs:
            raise ToolError(
                2003, f"cannot write {grant_path(grant)}: its directory does not exist", hint="set create_dirs to true"
            ) from None
    here, is_new = anchors.beneath.open(anchors.handle(grant), (), DIRECTORY), False
    for depth, name in enumerate(directory, start=1 - len(grant.components)):
        try:
            below = _entered(anchors, here, name)
            if below is None:
                if not is_new and anchors.kept.is_place(here, anchors.absolute(grant)[:depth]):
                    raise _another_name(grant)
                is_new = True  # what is made in it lies where it lies
                below = _made(anchors, here, name)
        finally:
            os.close(here)
        here = below
    return here


def _entered(anchors: Anchors, parent: int, name: str) -> int | None:
    try:
        return anchors.beneath.open(parent, (name,), DIRECTORY)
    except FileNotFoundError:
        return None


def _made(anchors: Anchors, parent: int, name: str) -> int:
    with suppress(FileExistsError):
        os.mkdir(name.encode(), dir_fd=parent)
    _sync_directory(parent)
    return anchors.beneath.open(parent, (name,), DIRECTORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    anchors: Anchors
    grant: FileGrant
    data: bytes
    mode: str
    clock: Clock
    bounds: Bounds
    parent: int

    @property
    def name(self) -> bytes:
        return self.grant.components[-1].encode()

    def done(self) -> Written:
        """Again where another writer was faster: it holds the old file while it makes the new one, and so do we."""
        while True:
            self.bounds.in_time()
            with ExitStack() as held:
                source, old = self._old(held)
                self._fits(old)
                if self._replaced(source, old):
                    return Written(created=old is None)
                if self.mode == "create":
                    raise self._exists()

    def _old(self, held: ExitStack) -> tuple[int, os.stat_result | None]:
        """The file that is there, held against other writers; -1 where there is none, or none that may be read."""
        while (old := self._status()) is not None:
            self.bounds.in_time()
            self._may_replace(old)
            try:
                source = self.anchors.beneath.open(self.parent, self.grant.components[-1:], FILE)
            except FileNotFoundError:
                continue
            except PermissionError:
                if self.mode == "append":
                    raise
                return -1, old
            with ExitStack() as ours:  # let go of before the next try, which may meet the same file again
                ours.callback(os.close, source)
                if self.mode == "append":
                    self._hold(source)
                now = self._status()
                if now is not None and os.path.samestat(now, os.fstat(source)):
                    self._may_replace(now)  # once more: what was looked at before may have been another file
                    held.push(ours.pop_all())
                    return source, os.fstat(source)
        return -1, None

    def _hold(self, source: int) -> None:
        """A file system without locks is done without: what then changes under an append is noticed at its end."""
        while True:
            try:
                fcntl.flock(source, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.bounds.in_time()
                time.sleep(_PAUSE_SECONDS)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
                return
            else:
                return

    def _replaced(self, source: int, old: os.stat_result | None) -> bool:
        """False where a file has appeared since there was none."""
        with _temporary(self.parent, self.clock, 0o666 if old is None else 0o600) as (descriptor, name):
            if old is not None and self.mode == "append":
                self._copy_old(source, old, descriptor)
            self._write_all(descriptor, self.data)
            if old is not None:
                _take_over(descriptor, old)
            os.fsync(descriptor)
            self.bounds.in_time()  # what comes too late is not put in place
            if not self._put_in_place(name, old):
                return False
        _sync_directory(self.parent)
        return True

    def _status(self) -> os.stat_result | None:
        try:
            return os.stat(self.name, dir_fd=self.parent, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _may_replace(self, old: os.stat_result) -> None:
        if stat.S_ISLNK(old.st_mode):
            raise link_appeared(self.grant)
        only_regular(old, self.grant)
        if self.anchors.kept.is_unwritable(old, self.anchors.absolute(self.grant)):
            raise _another_name(self.grant)
        if self.mode == "create":
            raise self._exists()
        if not os.access(self.name, os.W_OK, dir_fd=self.parent):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))  # a rename alone would not ask

    def _fits(self, old: os.stat_result | None) -> None:
        size = len(self.data) + (old.st_size if old is not None and self.mode == "append" else 0)
        if size > self.bounds.max_bytes:
            raise PolicyDenied(
                1005,
                f"{grant_path(self.grant)} would become {size} bytes; {self.bounds.max_bytes} are granted",
                hint="raise max_bytes, or write to a new file",
            )

    def _copy_old(self, source: int, old: os.stat_result, target: int) -> None:
        left, tail = old.st_size, b""
        while left > 0 and (piece := os.read(source, min(BLOCK, left))):
            self._write_all(target, piece)
            left -= len(piece)
            tail = tail[-_TAIL:] + piece[-_TAIL:]
        if joins_to_marker(tail, self.data):
            raise PolicyDenied(
                1009, f"{grant_path(self.grant)} would end in a redaction marker", hint="append the original value"
            )

    def _write_all(self, descriptor: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self.bounds.in_time()
            rest = rest[os.write(descriptor, rest[:BLOCK]) :]

    def _put_in_place(self, temporary: bytes, old: os.stat_result | None) -> bool:
        if old is None:
            try:
                _rename_new(self.parent, temporary, self.name)
            except FileExistsError:
                return False
            return True
        if self.mode == "append":
            now = self._status()
            if now is None or not _same(now, old):
                raise self._changed()  # what another process added in the meantime must not be lost
        os.rename(temporary, self.name, src_dir_fd=self.parent, dst_dir_fd=self.parent)
        return True

    def _exists(self) -> ToolError:
        return ToolError(
            2003,
            f"{grant_path(self.grant)} exists already",
            hint="to replace it, set mode to overwrite; to add, to append",
        )

    def _changed(self) -> ToolError:
        return ToolError(2003, f"{grant_path(self.grant)} changed while it was appended to", hint="call again")


def _another_name(grant: FileGrant) -> PolicyDenied:
    return PolicyDenied(1001, f"{grant_path(grant)} is another name of what no tool may write")


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return os.path.samestat(one, other) and (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)


@contextmanager
def _temporary(parent: int, clock: Clock, mode: int) -> Iterator[tuple[int, bytes]]:
    """A new file under a name that nobody can foretell; whatever happens, the name is gone afterwards."""
    name = f".capsule-{clock.random_bytes(8).hex()}.tmp".encode()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = -1
    try:  # from before the file is made: an interrupt may come at any moment
        descriptor = os.open(name, flags, mode, dir_fd=parent)
        yield descriptor, name
    finally:
        if descriptor >= 0:
            os.close(descriptor)
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)


def _take_over(descriptor: int, old: os.stat_result) -> None:
    """Owner first: changing it would clear bits that were set before."""
    new = os.fstat(descriptor)
    if new.st_gid != old.st_gid:
        with suppress(PermissionError):
            os.fchown(descriptor, -1, old.st_gid)
    if new.st_uid != old.st_uid:
        with suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, -1)
    os.fchmod(descriptor, old.st_mode & _PERMISSIONS)


def _sync_directory(parent: int) -> None:
    """Needs a handle that may read; who may not read a directory can still write in it, less durably."""
    with suppress(PermissionError):
        descriptor = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _rename_new(parent: int, old: bytes, new: bytes) -> None:
    """Rename without replacing; FileExistsError where something has that name."""
    code = _renameat2(parent, old, new)
    if code in _NO_SUCH_CALL:
        os.link(old, new, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    elif code:
        raise OSError(code, os.strerror(code))


def _find_renameat2() -> Callable[..., int] | None:
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # glibc 2.28; not in macOS
    if call is not None:
        call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return call


_RENAMEAT2 = _find_renameat2()


def _renameat2(parent: int, old: bytes, new: bytes) -> int:
    """0, or an errno."""
    if _RENAMEAT2 is None:
        return errno.ENOSYS
    return 0 if _RENAMEAT2(parent, old, parent, new, _NOREPLACE) == 0 else ctypes.get_errno()
