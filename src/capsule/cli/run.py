"""`capsule run`"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from capsule.calls import Approver, Effect, RunStatus
from capsule.canon import Json
from capsule.cli.inputs import given_inputs
from capsule.cli.interrupts import INTERRUPTS
from capsule.cli.options import AsJson, Db, PolicyOption, Workdir, here, settings
from capsule.cli.outermost import EXIT_DENIED, EXIT_FAILED, EXIT_INTERRUPTED
from capsule.cli.output import coloured, print_json, print_line
from capsule.cli.progress import Progress
from capsule.cli.prompt import terminal_approver
from capsule.cli.said import masked, said
from capsule.cli.show import show_document, show_lines
from capsule.gate import Opening, allow_all, deny_all, now_ms, open_journal, reads_only
from capsule.plans import Plan, PlanOutcome, dry_run, run_plan
from capsule.policy import Policy
from capsule.report import Report, summary_lines
from capsule.screen import printable
from capsule.settings import Approve

_COLOURS = {"allow": "green", "ask": "blue", "deny": "red", "unknown": "yellow"}


def add_to(app: typer.Typer) -> None:
    app.command()(run)


def run(  # noqa: PLR0913 - each is an option of the contract
    plan: Annotated[Path, typer.Argument(metavar="PLAN", readable=False, help="The plan (YAML or JSON).")],
    *,
    policy: PolicyOption,
    workdir: Workdir = Path(),
    inputs: Annotated[
        list[str] | None, typer.Option("--input", metavar="K=V", help="An input; @FILE gives all. Repeatable.")
    ] = None,
    db: Db = None,
    out: Annotated[
        Path | None, typer.Option("--out", readable=False, hidden=True, help="Another word for --db.")
    ] = None,
    approve: Annotated[
        Approve | None, typer.Option("--approve", help="Who answers an ask. [default: ask, at the terminal]")
    ] = None,
    fail_fast: Annotated[bool, typer.Option(help="End at the first denied or failed step.")] = True,
    only_decide: Annotated[bool, typer.Option("--dry-run", help="Decide every step; run and record nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a plan under a policy: each step is decided, recorded and answered through the gate.

    Example: capsule run plan.yaml --policy policy.yaml
    """
    if db is not None and out is not None:
        raise typer.BadParameter("--out is another word for --db; give one of them")
    loaded = Plan.load(plan)
    values = loaded.read_inputs(given_inputs(inputs or []))
    progress = Progress(len(loaded.steps), check=INTERRUPTS.check, quiet=as_json)
    found = settings()
    opening = Opening(
        settings=found,
        policies=tuple(Policy.load(file) for file in policy),
        workdir=here(workdir),
        db=db or out,
        approver=approver(approve or found.approve, progress),
    )
    if only_decide:
        _foresee(loaded, values, opening, as_json=as_json)
        return
    try:
        outcome = run_plan(loaded, values, opening, watcher=progress, fail_fast=fail_fast)
    except KeyboardInterrupt:
        progress.stop()
        _interrupted(progress.run_id, opening, as_json=as_json)
    _show(outcome.run_id, outcome.status, opening, as_json=as_json)
    code = _exit_code(outcome)
    if code:
        raise typer.Exit(code)


def approver(mode: Approve, progress: Progress) -> Approver:
    match mode:
        case Approve.ALL:
            return allow_all
        case Approve.DENY:
            return deny_all
        case Approve.READS:
            return reads_only(terminal_approver(before=progress.stop))
        case Approve.ASK:
            return terminal_approver(before=progress.stop)


def _interrupted(run_id: str | None, opening: Opening, *, as_json: bool) -> NoReturn:
    """The run has its last record, and can be shown like any other; before it began there is nothing to show."""
    if run_id is None:
        raise KeyboardInterrupt
    seen = f"`capsule report {run_id[-8:]}{_journal(opening)}` shows how far it came"
    sys.stderr.write(f"capsule: interrupted; {seen}\n")
    if as_json:
        _show(run_id, RunStatus.INTERRUPTED, opening, as_json=True)
    sys.exit(EXIT_INTERRUPTED)


def _show(run_id: str, status: RunStatus, opening: Opening, *, as_json: bool) -> None:
    store = open_journal(opening.db or opening.settings.db)
    report = Report(store, store.run(run_id), generated_ms=now_ms(), outputs=as_json)
    if as_json:
        before: dict[str, Json] = {"run_id": run_id, "status": status.value, **report.head()}
        show_document(before, report.steps, lambda: {"summary": report.summary()})
    else:
        show_lines(summary_lines(report))
        print_line(coloured(f"each step: capsule report {run_id[-8:]}{_journal(opening)}", "dim"))


def _journal(opening: Opening) -> str:
    """What a command that looks back needs to find the same journal."""
    return f" --db {printable(str(opening.db))}" if opening.db else ""


def _exit_code(outcome: PlanOutcome) -> int:
    if outcome.denied:
        return EXIT_DENIED
    return 0 if outcome.status is RunStatus.COMPLETED else EXIT_FAILED


def _foresee(plan: Plan, values: dict[str, Json], opening: Opening, *, as_json: bool) -> None:
    steps = list(dry_run(plan, values, opening))
    if as_json:
        print_json(masked({"dry_run": True, "steps": [step.as_json() for step in steps]}))
    else:
        for step in steps:
            effect = "unknown" if step.decision is None else step.decision.effect.value
            reason = step.note if step.decision is None else step.decision.reason
            shown = coloured(f"{effect:<7}", _COLOURS[effect])
            print_line(f"{shown} {said(step.step_id)}  {said(step.tool)}  {said(str(reason))}")
            if step.decision is not None and step.decision.suggestion:
                print_line(f"        to allow: {said(step.decision.suggestion)}")
    if any(step.decision is not None and step.decision.effect is Effect.DENY for step in steps):
        raise typer.Exit(EXIT_DENIED)
    if any(step.code is not None for step in steps):
        raise typer.Exit(EXIT_FAILED)
