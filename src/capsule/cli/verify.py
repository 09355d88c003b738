"""`capsule verify`"""

from __future__ import annotations

import re
from typing import Annotated

import typer

from capsule.canon import Json
from capsule.cli.journal import find_id, journal
from capsule.cli.options import AsJson, Db
from capsule.cli.outermost import EXIT_INTEGRITY
from capsule.cli.output import coloured, counted, print_json, print_line
from capsule.screen import printable
from capsule.store import ChainCheck, Verification

_HEAD = re.compile(r"[0-9a-f]{64}")


def add_to(app: typer.Typer) -> None:
    app.command()(verify)


def verify(
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", help="One run, or `last`; without it, all of them.")
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All runs, which is the default.")] = False,
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="HASH", help="A head that was exported before and must still be there."),
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Check that recorded runs were not altered; exit 4 names the run, the record and what changed."""
    if every and run is not None:
        raise typer.BadParameter("name a run, or give --all")
    if head is not None and not _HEAD.fullmatch(head):
        raise typer.BadParameter("a head is 64 lower-case hexadecimal digits", param_hint="--head")
    store = journal(db)
    checked = store.verify(find_id(store, run) if run is not None else None, head=head)
    if as_json:
        print_json(_json(checked))
    else:
        _print(checked)
    if not checked.ok:
        raise typer.Exit(EXIT_INTEGRITY)


def _json(checked: Verification) -> Json:
    return {
        "ok": checked.ok,
        "problem": checked.problem,
        "runs": [
            {
                "run_id": check.run_id,
                "ok": check.ok,
                "records": check.records,
                "head": check.head,
                "ended": check.ended,
                "unknown": list(check.unknown),
                "breach": {"seq": check.breach.seq, "message": check.breach.message} if check.breach else None,
            }
            for check in checked.checks
        ],
    }


def _print(checked: Verification) -> None:
    for check in checked.checks:
        print_line(_line(check))
    if checked.problem:
        print_line(f"{coloured('✗', 'red')} {printable(checked.problem)}")
    broken = sum(not check.ok for check in checked.checks)
    print_line(f"{counted(len(checked.checks), 'run')}, {broken} broken")


def _line(check: ChainCheck) -> str:
    if check.breach is not None:
        return f"{coloured('✗', 'red')} {check.run_id}  record {check.breach.seq}: {printable(check.breach.message)}"
    notes = [] if check.ended else ["not ended"]
    notes += [f"{counted(len(check.unknown), 'call')} began and left no outcome"] if check.unknown else []
    noted = f"  ({', '.join(notes)})" if notes else ""
    return f"{coloured('✓', 'green')} {check.run_id}  {counted(check.records, 'record')}  {check.head}{noted}"
