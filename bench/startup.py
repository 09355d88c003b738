"""Whole processes, from the shell's point of view."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial

from bench.place import BARE, Place, capsule_command
from bench.rows import Row
from bench.timing import Effort, in_turns, shown

_SECONDS = 15.0

_POLICY = "rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: ./*.md}}}]\n"
_PLAN = "name: three\nsteps:\n" + "- {tool: fs.read, args: {path: a.md}}\n" * 3
_WITH_TEMPLATES = """\
name: three
inputs: {name: {type: string, default: a}}
variables: {file: "{{ inputs.name }}.md"}
steps:
- {tool: fs.read, args: {path: "{{ file }}"}, store_as: first}
- {tool: fs.read, args: {path: "{{ inputs.name | lower }}.md"}}
- {tool: fs.read, args: {path: "{{ 'a' if first.size == 1 else inputs.name }}.md"}}
"""


def startup(effort: Effort, place: Place) -> Iterator[Row]:
    """Each kind of start ÷ an interpreter that does nothing."""
    capsule = capsule_command()
    (place.workdir / "a.md").write_text("x", encoding="utf-8")
    policy = place.write("policy.yaml", _POLICY)
    plain = place.write("plan.yaml", _PLAN)
    templates = place.write("templates.yaml", _WITH_TEMPLATES)
    run = [capsule, "run", "--policy", str(policy)]
    commands: dict[str, Sequence[str]] = {
        "bare": BARE,
        "version": [capsule, "--version"],
        "help": [capsule, "--help"],
        "run": [*run, str(plain)],
        "templates": [*run, str(templates)],
    }
    taken = in_turns(
        {name: partial(place.run, command) for name, command in commands.items()}, seconds=effort.seconds(_SECONDS)
    )
    bare = taken["bare"]
    yield _row("capsule --version ÷ bare python", taken["version"], bare, goal=1.5)
    yield _row("capsule --help ÷ bare python", taken["help"], bare, goal=6)
    yield _row("run, 3 steps ÷ bare python", taken["run"], bare, goal=16)
    yield _row("run, 3 steps with templates ÷ bare python", taken["templates"], bare, goal=22)


def _row(what: str, seconds: float, bare: float, *, goal: float) -> Row:
    how = f"{shown(seconds)}, bare {shown(bare)} (Python {sys.version_info.major}.{sys.version_info.minor})"
    return Row(what=what, measured=seconds / bare, goal=goal, how=how)
