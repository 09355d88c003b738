"""The report as lines for a terminal: a timeline, what was touched, what was denied and what would allow it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from capsule.calls import BUILTIN, RunStatus, Status
from capsule.canon import Json
from capsule.report.build import Report
from capsule.report.reading import as_list, as_mapping
from capsule.screen import printable

Colour: TypeAlias = Literal["green", "red", "yellow", "blue", "dim", "bold"]

_LONGEST_ARGUMENT = 60

ICONS: Mapping[str, tuple[str, Colour]] = {
    Status.SUCCESS.value: ("✓", "green"),
    Status.ERROR.value: ("✗", "red"),
    Status.DENIED.value: ("⊘", "yellow"),
    Status.UNKNOWN.value: ("?", "red"),
    Status.SKIPPED.value: ("·", "dim"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """`icon` is shown in its colour, `text` is safe to show."""

    text: str
    icon: str = ""
    colour: Colour = "bold"


def run_lines(report: Report) -> Iterator[Line]:
    """The run itself and its timeline."""
    run = _part(report.head(), "run")
    yield Line(
        icon=f"Run {str(run['run_id'])[-8:]}", text=f"{run['status']} · {run['created_at']} · {_shown(run['workdir'])}"
    )
    for step in report.steps:
        yield from step_lines(step)


def console_lines(report: Report) -> Iterator[Line]:
    """The whole report: also what was touched, and each denial with the edit that would allow it."""
    yield from run_lines(report)
    yield Line(text="")
    yield from summary_lines(report)


def summary_lines(report: Report) -> Iterator[Line]:
    summary = report.summary()
    yield from _resources(_part(summary, "resources"))
    yield from _denials(cast("Sequence[Mapping[str, Json]]", summary["denials"]))
    yield from end_lines(report)


def end_lines(report: Report) -> Iterator[Line]:
    """How the run ended, and why where it was not a step."""
    run, summary = _part(report.head(), "run"), report.summary()
    planned = len(as_list(_part(report.head(), "plan").get("steps")))
    cut_short = run["status"] in (RunStatus.INTERRUPTED.value, RunStatus.RUNNING.value)
    of_plan = f", of a plan of {planned}" if cut_short and planned else ""
    yield Line(icon=f"{run['status']}:", text=_counts(_part(summary, "counts"), summary) + of_plan)
    if error := _part(run, "error"):
        yield Line(icon=f"  {error.get('code')}", text=_shown(error.get("message")), colour="red")
        if error.get("hint"):
            yield Line(icon="  hint:", text=_shown(error["hint"]), colour="dim")


def step_lines(step: Mapping[str, Json]) -> Iterator[Line]:
    """One step of the timeline, with what went wrong below it."""
    icon, colour = ICONS[str(step["status"])]
    timing = _part(step, "timing")
    took = "" if timing.get("duration_ms") is None else f"  {timing['duration_ms']} ms"
    approval = _part(step, "approval")
    notes = [
        *([f"approved by {_shown(approval.get('by'))}"] if approval.get("approved") else []),
        *_texts(step.get("flags")),
        *([f"{count} finding{'s'[: count != 1]}"] if (count := len(as_list(step.get("findings")))) else []),
    ]
    noted = f"  ({', '.join(notes)})" if notes else ""
    text = f"{_shown(step.get('step_id'))}  {_shown(step.get('tool_name'))}  {_arguments(step)}{took}{noted}"
    yield Line(icon=f"  {icon}", text=text, colour=colour)
    error = _part(step, "error")
    if error:
        yield Line(icon=f"      {error.get('code')}", text=_shown(error.get("message")), colour=colour)
        if error.get("hint") and step["status"] == Status.ERROR.value:
            yield Line(icon="      hint:", text=_shown(error["hint"]), colour="dim")


def _arguments(step: Mapping[str, Json]) -> str:
    """What a policy guards tells most: a path, a URL, a command; else the first argument."""
    args = _part(step, "args")
    guards = BUILTIN[tool].guards if (tool := str(step.get("tool_name"))) in BUILTIN else {}
    for name in sorted(args, key=lambda name: name not in guards):
        value = args[name]
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown = printable(text)
        return shown if len(shown) <= _LONGEST_ARGUMENT else shown[:_LONGEST_ARGUMENT] + "…"
    return ""


def _resources(resources: Mapping[str, Json]) -> Iterator[Line]:
    for name, values in resources.items():
        for index, value in enumerate(as_list(values)):
            title = f"  {name.replace('_', ' '):<18}" if index == 0 else " " * 20
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield Line(icon=title, text=printable(text), colour="dim")


def _denials(denials: Sequence[Mapping[str, Json]]) -> Iterator[Line]:
    for denial in denials:
        yield Line(
            icon=f"  denied {denial['code']}",
            text=f"{_shown(denial['step_id'])}: {_shown(denial['reason'])}",
            colour="yellow",
        )
        if denial.get("suggestion"):
            yield Line(icon="    to allow:", text=_shown(denial["suggestion"]), colour="dim")


def _counts(counts: Mapping[str, Json], summary: Mapping[str, Json]) -> str:
    parts = [f"{value} {name}" for name, value in counts.items() if value and name != "total"]
    took = summary.get("total_duration_ms")
    steps = "1 step" if counts["total"] == 1 else f"{counts['total']} steps"
    return ", ".join([steps, *parts]) + ("" if took is None else f" · {took} ms")


def _shown(value: Json) -> str:
    return printable(str(value))


def _part(value: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    return as_mapping(value.get(name))


def _texts(value: Json) -> list[str]:
    return [printable(str(item)) for item in as_list(value)]
