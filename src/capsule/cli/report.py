"""`capsule report`"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TextIO

import typer

from capsule.cli.journal import find_run, journal
from capsule.cli.options import AsJson, Db, RunReference, settings
from capsule.cli.output import json_text, print_json
from capsule.cli.show import show_lines
from capsule.gate import is_kept, now_ms
from capsule.report import build_report, console_lines


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
    built = build_report(store, find_run(store, run), generated_ms=now_ms())
    wants_json = as_json or format is Format.JSON
    if output is None:
        print_json(built) if wants_json else show_lines(console_lines(built))
        return
    if is_kept(output, settings(), store.path):
        raise typer.BadParameter(f"{output} is a file of Capsule's own", param_hint="-o")
    with _writing(output) as stream:
        if wants_json:
            stream.write(json_text(built, indent=2) + "\n")
        else:
            show_lines(console_lines(built), stream)


@contextmanager
def _writing(output: Path) -> Iterator[TextIO]:
    try:
        with output.open("w", encoding="utf-8") as stream:
            yield stream
    except OSError as error:
        raise typer.BadParameter(f"{output} cannot be written: {error.strerror}", param_hint="-o") from error
