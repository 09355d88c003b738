"""Opening exactly the path that was decided, beneath a directory handle, following no link on the way.

There are two ways to do it: one call to `openat2` where the kernel has it, else one `open` per component.
Both raise plain OSError; ELOOP and EXDEV mean that something on the way is a link now, or leads out.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import stat
import sys
from collections.abc import Callable
from typing import Any, Protocol

from capsule.calls import Components

O_PATH: int = getattr(os, "O_PATH", os.O_RDONLY)  # macOS has none: there a handle needs read permission
DIRECTORY = O_PATH | os.O_DIRECTORY | os.O_CLOEXEC

_NR_OPENAT2 = 437  # the same on every architecture since numbers were unified
_NO_XDEV = 0x01
_EXACTLY = 0x08 | 0x04 | 0x02  # RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS
_ATTEMPTS = 100  # EAGAIN asks to try again (a rename raced with us, a lease is being broken); not for ever
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
_NOT_NAMES = frozenset({"", ".", ".."})


class Beneath(Protocol):
    def open(self, directory: int, components: Components, flags: int) -> int:
        """A close-on-exec descriptor of exactly this path; no components is the directory itself."""

    def is_plain(self, directory: int, components: Components) -> bool:
        """Whether no link and no mount point lies on the way, as far as the path exists; False is "look closer"."""


class OpenHow(ctypes.Structure):
    """`struct open_how`; the kernel only reads it, so one serves all threads."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@functools.cache
def _how(flags: int, resolve: int) -> Any:  # a prepared pointer; ctypes has no public name for its type
    return ctypes.byref(OpenHow(flags | os.O_CLOEXEC, 0, resolve))


def _syscall() -> Callable[..., int]:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
    call.restype = ctypes.c_long
    return call


_SIZE = ctypes.sizeof(OpenHow)
_CALL = _syscall()


def _openat2(directory: int, path: bytes, how: Any) -> int:
    """A descriptor, or a negative errno."""
    code = 0
    for _ in range(_ATTEMPTS):
        descriptor = _CALL(_NR_OPENAT2, directory, path, how, _SIZE)
        if descriptor >= 0:
            return descriptor
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    return -code


def _encoded(components: Components) -> bytes:
    """A name that is not one plain component would open something else than was decided."""
    path = "/".join(components)
    if not _NOT_NAMES.isdisjoint(components) or path.count("/") >= (len(components) or 1) or "\0" in path:
        raise OSError(errno.EINVAL, "not plain names", path)
    return path.encode() or b"."


class Openat2:
    """One system call; the kernel holds to every component."""

    def open(self, directory: int, components: Components, flags: int) -> int:
        descriptor = _openat2(directory, _encoded(components), _how(flags, _EXACTLY))
        if descriptor < 0:
            raise OSError(-descriptor, os.strerror(-descriptor), "/".join(components))
        return descriptor

    def is_plain(self, directory: int, components: Components) -> bool:
        descriptor = _openat2(directory, _encoded(components), _how(O_PATH, _EXACTLY | _NO_XDEV))
        if descriptor < 0:
            return -descriptor in _ABSENT
        os.close(descriptor)
        return True


class ComponentWalk:
    """One `open` per component, each refusing a link: for macOS, old kernels, and sandboxes that forbid openat2."""

    def open(self, directory: int, components: Components, flags: int) -> int:
        _encoded(components)
        if not components:
            return os.open(b".", flags | os.O_CLOEXEC, dir_fd=directory)
        here = directory
        try:
            for name in components[:-1]:
                below = _step(here, name, DIRECTORY)
                if here != directory:
                    os.close(here)
                here = below
            return _step(here, components[-1], flags)
        finally:
            if here != directory:
                os.close(here)

    def is_plain(self, directory: int, components: Components) -> bool:  # noqa: ARG002 - no one call can tell
        return False


def _step(directory: int, name: str, flags: int) -> int:
    path = name.encode()
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except NotADirectoryError:  # what O_DIRECTORY says of a link, too
        if stat.S_ISLNK(os.stat(path, dir_fd=directory, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise
    if flags & O_PATH and stat.S_ISLNK(os.fstat(descriptor).st_mode):  # O_PATH opens the link itself
        os.close(descriptor)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return descriptor


@functools.cache
def has_openat2() -> bool:
    """Asked with a bad descriptor, so that no file is touched: only a kernel that has the call complains about that."""
    return sys.platform == "linux" and _openat2(-1, b".", _how(O_PATH, _EXACTLY)) == -errno.EBADF


def best() -> Beneath:
    return Openat2() if has_openat2() else ComponentWalk()
