"""`capsule show-run`"""

from __future__ import annotations

from itertools import chain

import typer

from capsule.cli.journal import RunReference, find_run, journal, warn_if_altered
from capsule.cli.options import AsJson, Db
from capsule.cli.show import show_document, show_lines
from capsule.gate import now_ms
from capsule.report import Report, end_lines, run_lines


def add_to(app: typer.Typer) -> None:
    app.command(name="show-run")(show_run)


def show_run(run: RunReference, *, db: Db = None, as_json: AsJson = False) -> None:
    """Show one run: where, when and how it ended, and each step in a line."""
    store = journal(db)
    found = find_run(store, run)
    report = Report(store, found, generated_ms=now_ms())
    if as_json:
        show_document({"run": report.head()["run"]}, report.steps)
    else:
        show_lines(chain(run_lines(report), end_lines(report)))
    warn_if_altered(store, found)
