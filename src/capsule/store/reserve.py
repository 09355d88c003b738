"""Room that is kept so that a run can be ended on a full disk."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

RESERVE_BYTES = 256 * 1024  # some outcomes without their large bodies, the end, and what SQLite needs around them


def _reserve_of(store: Path) -> Path:
    return store.with_name(store.name + "-reserve")


def keep_reserve(store: Path) -> None:
    """Made where it is missing and there is room; really written, since a hole keeps no room."""
    path = _reserve_of(store)
    with suppress(OSError):
        if path.exists() and path.lstat().st_size >= RESERVE_BYTES:
            return
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            complete = os.write(handle, bytes(RESERVE_BYTES)) == RESERVE_BYTES
        except OSError:
            complete = False
        finally:
            os.close(handle)
        if not complete:
            path.unlink(missing_ok=True)  # what is left of the disk is worth more than half a reserve


def give_up_reserve(store: Path) -> None:
    with suppress(OSError):  # what lies there may be no file of ours: then there is nothing to give up
        _reserve_of(store).unlink()
