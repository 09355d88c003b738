"""What the commands that look back share: the journal opened for reading, and one of its runs by reference."""

from __future__ import annotations

from pathlib import Path

from capsule.cli.options import here, settings
from capsule.gate import open_journal
from capsule.store import Run, Store


def journal(db: Path | None) -> Store:
    return open_journal(db if db is not None else settings().db)


def find_id(store: Store, reference: str) -> str:
    return store.find(reference, workdir=here().resolve() if reference == "last" else None)


def find_run(store: Store, reference: str) -> Run:
    return store.run(find_id(store, reference))
