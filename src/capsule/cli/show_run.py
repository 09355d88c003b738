"""`capsule show-run`"""

from __future__ import annotations

import typer

from capsule.cli.journal import find_run, journal
from capsule.cli.options import AsJson, Db, RunReference
from capsule.cli.output import print_json
from capsule.cli.show import show_lines
from capsule.gate import now_ms
from capsule.report import build_report, end_lines, run_lines


def add_to(app: typer.Typer) -> None:
    app.command(name="show-run")(show_run)


def show_run(run: RunReference, *, db: Db = None, as_json: AsJson = False) -> None:
    """Show one run: where, when and how it ended, and each step in a line."""
    store = journal(db)
    report = build_report(store, find_run(store, run), generated_ms=now_ms())
    if as_json:
        print_json({"run": report["run"], "steps": report["steps"]})
        return
    show_lines(run_lines(report))
    show_lines(end_lines(report))
