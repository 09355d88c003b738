"""What kind of file system a handle is on: the kernel's own windows (procfs), and volumes that ignore case."""

from __future__ import annotations

import ctypes
import os
import sys
from itertools import islice

if sys.platform == "linux":
    import fcntl

_LIBC = ctypes.CDLL(None)

_PROCFS = 0x9FA0
# vfat, exfat, ntfs, ntfs3, cifs, smb2, hfs, hfs+ ignore case unless told otherwise; asked where no name is there to try
_FOLDING = frozenset({0x4D44, 0x2011BAB0, 0x5346544E, 0x7366746E, 0xFF534D42, 0xFE534D42, 0x4244, 0x482B})

_GETFLAGS = 0x80086601  # FS_IOC_GETFLAGS where long has 64 bits
_CASEFOLD = 0x40000000  # FS_CASEFOLD_FL
_PC_CASE_SENSITIVE = 11  # macOS
_SAMPLE = 100  # entries looked at for a name that has letters; the first is nearly always one


def is_procfs(descriptor: int) -> bool:
    return _type(descriptor) == _PROCFS


def folds_case(directory: int) -> bool:
    """Whether a name in this readable directory is found in other case too.

    Two hard links whose names differ by case alone are taken for folding: that only makes a policy stricter.
    """
    if sys.platform == "darwin":
        return os.fpathconf(directory, _PC_CASE_SENSITIVE) == 0
    answer = _seen_to_fold(directory)
    if answer is not None:
        return answer
    return _flagged(directory) or _type(directory) in _FOLDING


def _seen_to_fold(directory: int) -> bool | None:
    """The portable trick: look one entry up with its case turned over; None where no entry has letters."""
    with os.scandir(directory) as entries:
        names = (entry.name for entry in islice(entries, _SAMPLE))
        name = next((name for name in names if name.isascii() and name.swapcase() != name), None)
    if name is None:
        return None
    try:
        one = os.stat(name, dir_fd=directory, follow_symlinks=False)
        other = os.stat(name.swapcase(), dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(one, other)


def _flagged(directory: int) -> bool:
    """ext4, f2fs and tmpfs fold by directory."""
    if sys.platform != "linux":
        return False
    try:
        answer = fcntl.ioctl(directory, _GETFLAGS, bytes(8))
    except OSError:
        return False
    return bool(int.from_bytes(answer, sys.byteorder) & _CASEFOLD)


def _type(descriptor: int) -> int | None:
    if sys.platform != "linux":
        return None
    answer = ctypes.create_string_buffer(512)  # struct statfs needs 120; f_type is its first long
    if _LIBC.fstatfs(descriptor, answer) != 0:
        return None
    return ctypes.c_long.from_buffer(answer).value & 0xFFFFFFFF
