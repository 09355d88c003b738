"""`capsule list-runs`"""

from __future__ import annotations

from typing import Annotated

import typer

from capsule.calls import RunStatus
from capsule.canon import Json
from capsule.cli.journal import journal
from capsule.cli.options import AsJson, Db
from capsule.cli.output import coloured, print_json, print_line
from capsule.report import iso
from capsule.screen import printable
from capsule.store import Run

_COLOURS = {
    RunStatus.COMPLETED: "green",
    RunStatus.FAILED: "red",
    RunStatus.DENIED: "yellow",
    RunStatus.RUNNING: "blue",
    RunStatus.INTERRUPTED: "red",
}


def add_to(app: typer.Typer) -> None:
    app.command(name="list-runs")(list_runs)


def list_runs(
    *,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="How many.")] = 20,
    status: Annotated[RunStatus | None, typer.Option("--status", help="Only runs that stand so.")] = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """List recorded runs, newest first."""
    runs = journal(db).runs(limit=limit, status=status)
    if as_json:
        print_json([_json(run) for run in runs])
        return
    if not runs:
        print_line("no runs" if status is None else f"no runs are {status.value}")
    for run in runs:
        print_line(_line(run))


def _json(run: Run) -> Json:
    return {
        "run_id": run.run_id,
        "status": run.status.value,
        "mode": run.mode,
        "created_at": iso(run.start.at),
        "plan": run.start.body.get("plan_name"),
        "workdir": run.start.body.get("workdir"),
        "counts": run.counts.as_json(),
    }


def _line(run: Run) -> str:
    status = coloured(f"{run.status.value:<11}", _COLOURS[run.status])
    counts = run.counts
    steps = f"{counts.completed}/{counts.total} steps" + (f", {counts.denied} denied" if counts.denied else "")
    name = printable(str(run.start.body.get("plan_name") or "calls"))
    return f"{run.run_id[-8:]}  {status}  {iso(run.start.at)}  {name}  {steps}"
