"""Capsule's home on disk: made at first use, for its owner only."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from capsule.calls import Clock
from capsule.errors import StorageError

_KEY_BYTES = 32
_OWNER_ONLY = 0o700


def machine_key(home: Path, clock: Clock) -> bytes:
    """The key under which masked values are compared; made once, never exported, never readable by a tool."""
    file = home / "key"
    try:
        home.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
        return _read(file) if file.exists() else _make(file, clock)
    except OSError as error:
        reason = error.strerror or str(error)
        hint = f"make {home} a directory that you own, or set CAPSULE_HOME to one"
        raise StorageError(5001, f"{file}: the key cannot be read or made: {reason}", hint=hint) from error


def _make(file: Path, clock: Clock) -> bytes:
    """Written whole before it gets its name: two processes that start together agree on one key."""
    unnamed = file.with_name(f".key-{clock.random_bytes(8).hex()}")
    handle = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(clock.random_bytes(_KEY_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):  # another process was first: its key holds
            os.link(unnamed, file)
    finally:
        unnamed.unlink()
    return _read(file)


def _read(file: Path) -> bytes:
    key = file.read_bytes()
    if len(key) != _KEY_BYTES:
        raise StorageError(
            5003,
            f"{file}: {len(key)} bytes instead of {_KEY_BYTES}",
            hint="restore it from a backup; another key cannot compare what was masked in earlier runs",
        )
    return key
