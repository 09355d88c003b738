"""The peak memory of whole commands on large inputs, over that of the same command on a small one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bench.decision import KINDS, MANY, policy_text
from bench.place import Place
from bench.rows import Row
from bench.timing import Effort

MEGABYTE = 1e6
_GOAL = 100
_STEPS = 10_000
_FEW_STEPS, _MORE_STEPS = 50, 450  # two points of a line: 10,000 steps of 100 KB would take minutes
_OUTPUT_BYTES = 100_000
_FILE_BYTES = 10_000_000

_PEAK = Path(__file__).with_name("peak.py")
_READ_ALL = "rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: ./**}}}]\n"


def memory(effort: Effort, place: Place) -> Iterator[Row]:
    directory = place.workdir / "dir0"  # which the first of the many rules allows
    directory.mkdir()
    for name, size in (("small", 1), ("100k", _OUTPUT_BYTES), ("10M", effort.count(_FILE_BYTES))):
        (directory / name).write_text(_words(size), encoding="utf-8")
    commands = _Commands(place)
    commands.run(_plan("small", 1))  # compiling modules, which happens once, takes memory too
    empty = commands.run(_plan("small", 1))
    yield _long_run(commands, effort, empty)
    rules = effort.count(MANY)
    of_policy = commands.run(_plan("small", 1), policy=policy_text(rules, KINDS[0]))
    yield _row(f"policy of {rules:,} rules", of_policy - empty, "a run of one step under it")
    steps = effort.count(_STEPS)
    of_plan = commands.run(_plan("small", steps), "--dry-run") - commands.run(_plan("small", 1), "--dry-run")
    yield _row(f"plan document of {steps:,} steps", of_plan, "run --dry-run")
    yield _row("file of 10 MB", commands.run(_plan("10M", 1)) - empty, "a run of one step that reads it")


def _long_run(commands: _Commands, effort: Effort, empty: int) -> Row:
    few = effort.count(_FEW_STEPS)
    more = few + effort.count(_MORE_STEPS)
    begin, later = commands.run(_plan("100k", few)), commands.run(_plan("100k", more))
    growth = (later - begin) / (more - few)
    expected = begin - empty + growth * (_STEPS - few)
    how = f"from {few} and {more} steps: {growth / 1000:.1f} KB a step"
    return _row(f"run of {_STEPS:,} steps of 100 KB", expected, how)


def _row(what: str, more: float, how: str) -> Row:
    return Row(what=f"memory, {what}, over the empty run", measured=more / MEGABYTE, goal=_GOAL, unit="MB", how=how)


def _words(size: int) -> str:
    """Text that does not repeat within a compressor's sight."""
    return "".join(f"{number * 2654435761 % 2**32:x} " for number in range(size // 9 + 1))[:size]


def _plan(file: str, steps: int) -> str:
    return "name: many\nsteps:\n" + f"- {{tool: fs.read, args: {{path: dir0/{file}}}}}\n" * steps


class _Commands:
    def __init__(self, place: Place) -> None:
        self._place = place

    def run(self, plan: str, *options: str, policy: str = _READ_ALL) -> int:
        """The peak of `capsule run`, in bytes."""
        documents = (self._place.write("plan.yaml", plan), "--policy", self._place.write("policy.yaml", policy))
        said = self._place.run([sys.executable, "-P", _PEAK, "run", *documents, *options])
        return int(said.splitlines()[-1])
