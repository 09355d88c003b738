"""`capsule report`"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from capsule.cli.journal import RunReference, find_run, journal, warn_if_altered
from capsule.cli.options import AsJson, Db, settings
from capsule.cli.show import show_document, show_lines
from capsule.gate import is_kept, now_ms
from capsule.report import Report, console_lines


class Format(StrEnum):
    CONSOLE = "console"
    JSON = "json"


def add_to(app: typer.Typer) -> None:
    app.command()(report)


def report(
    run: RunReference,
    *,
    format: Annotated[Format, typer.Option("--format", help="The form of the report.")] = Format.CONSOLE,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", readable=False, help="Write it to a file.")
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Make a run readable: its timeline, what was touched, what was denied and the edit that would allow it."""
    store = journal(db)
    wants_json = as_json or format is Format.JSON
    found = find_run(store, run)
    made = Report(store, found, generated_ms=now_ms())
    if output is not None and is_kept(output, settings(), store.path):
        raise typer.BadParameter(f"{output} is a file of Capsule's own", param_hint="-o")
    if wants_json:
        show_document(made.head(), made.steps, lambda: {"summary": made.summary()}, output=output)
    else:
        show_lines(console_lines(made), output)
    warn_if_altered(store, found)
