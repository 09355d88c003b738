"""What the commands that look back share: the journal opened for reading, and one of its runs by reference."""

from __future__ import annotations

from pathlib import Path

from capsule.cli.options import settings
from capsule.effects import SystemClock
from capsule.store import Run, Store


def open_journal(db: Path | None) -> Store:
    """For reading only: looking back changes nothing, not even an older schema."""
    return Store.open(db if db is not None else settings().db, clock=SystemClock(), create=False, readonly=True)


def find_run(store: Store, reference: str) -> Run:
    return store.run(store.find(reference, workdir=Path.cwd().resolve() if reference == "last" else None))
