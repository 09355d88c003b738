"""Capsule's home on disk: made at first use, for its owner only."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from capsule.calls import Clock
from capsule.errors import StorageError

_KEY_BYTES = 32
_OWNER_ONLY = 0o700
_KEY_MODE = 0o600


def machine_key(home: Path, clock: Clock) -> bytes:
    """The key under which masked values are compared; made once, never exported, never readable by a tool."""
    file = home / "key"
    try:
        home.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
        _keep_private(home, _OWNER_ONLY)
        if not file.exists():
            return _make(file, clock)
        _keep_private(file, _KEY_MODE)
        return _read(file)
    except OSError as error:
        reason = error.strerror or str(error)
        hint = f"make {home} a directory that you own, or set CAPSULE_HOME to one"
        raise StorageError(5001, f"{file}: the key cannot be read or made: {reason}", hint=hint) from error


def _keep_private(path: Path, mode: int) -> None:
    """Whoever owns the key can forge what is compared with it, and whoever reads it can guess what was masked."""
    status = path.stat()
    if status.st_uid != os.geteuid() and os.geteuid() != 0:
        raise StorageError(5001, f"{path} belongs to another user", hint="set CAPSULE_HOME to a directory of your own")
    if stat.S_IMODE(status.st_mode) & ~mode:
        path.chmod(mode)


def _make(file: Path, clock: Clock) -> bytes:
    """Written whole before it gets its name: two processes that start together agree on one key."""
    unnamed = file.with_name(f".key-{clock.random_bytes(8).hex()}")
    handle = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _KEY_MODE)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(clock.random_bytes(_KEY_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):  # another process was first: its key holds
            os.link(unnamed, file)
    finally:
        unnamed.unlink()
    _sync_directory(file.parent)  # records that are made under the key must not outlive it
    return _read(file)


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(file: Path) -> bytes:
    key = file.read_bytes()
    if len(key) != _KEY_BYTES:
        raise StorageError(
            5003,
            f"{file}: {len(key)} bytes instead of {_KEY_BYTES}",
            hint="restore it from a backup; another key cannot compare what was masked in earlier runs",
        )
    return key
