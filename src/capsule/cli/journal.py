"""What the commands that look back share: the journal opened for reading, and one of its runs by reference."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from capsule.cli.options import here, settings
from capsule.cli.outermost import EXIT_INTEGRITY
from capsule.errors import CapsuleError
from capsule.gate import open_journal
from capsule.screen import printable
from capsule.store import Run, Store

_OFFERED = 20


def _known_runs(begun: str) -> list[str]:
    """For a shell that completes: the last eight characters of the newest runs of the usual journal."""
    try:
        known = [run.run_id[-8:] for run in journal(None).runs(limit=_OFFERED)]
    except (CapsuleError, OSError):
        known = []
    return [name for name in ("last", *known) if name.startswith(begun)]


RunReference: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run id, 4 or more characters of its beginning or end, or `last`.",
        autocompletion=_known_runs,
    ),
]


def journal(db: Path | None) -> Store:
    return open_journal(db if db is not None else settings().db)


def find_id(store: Store, reference: str) -> str:
    return store.find(reference, workdir=here().resolve() if reference == "last" else None)


def find_run(store: Store, reference: str) -> Run:
    return store.run(find_id(store, reference))


def warn_if_altered(store: Store, run: Run) -> None:
    """Said last, when everything was shown: what stands there is not what was recorded. Exit 4."""
    checked = store.verify(run.run_id)
    if checked.ok:
        return
    breaches = [f"record {check.breach.seq} {check.breach.message}" for check in checked.checks if check.breach]
    found = "; ".join([*breaches, *([checked.problem] if checked.problem else [])])
    sys.stderr.write(f"capsule: run {run.run_id} was altered: {printable(found)} [5004]\n")
    sys.stderr.write("  hint: what is shown is not what was recorded; see `capsule verify`\n")
    raise typer.Exit(EXIT_INTEGRITY)
