"""How often a step waits for the disk, counted by the kernel's own account of it."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.place import Place, capsule_command
from bench.rows import Row, Skipped
from bench.timing import Effort

_FEW, _MANY = 5, 55  # the difference is what fifty steps cost, without what a run costs once
_SYNC = re.compile(r"\b(?:fsync|fdatasync|sync|syncfs|msync)\(\d*(?:<(?P<file>[^>]*)>)?")

_POLICY = """\
rules:
- {action: allow, tool: fs.read, constraints: {path: {pattern: ./*.md}}}
- {action: allow, tool: fs.write, constraints: {path: {pattern: ./*.txt}}}
"""
_READ = "- {tool: fs.read, args: {path: a.md}}\n"
_WRITE = "- {tool: fs.write, args: {path: b.txt, content: x, mode: overwrite}}\n"
_AGENT = """\
import sys
from pathlib import Path
from capsule import Gate, ToolCall

policy, times = sys.argv[1:]
with Gate.open(policy=Path(policy), db="../runs.db") as gate:
    for _ in range(int(times)):
        gate.call(ToolCall(tool="fs.read", args={"path": "a.md"}))
"""


def syncs(effort: Effort, place: Place) -> Iterator[Row]:
    strace = shutil.which("strace")
    if strace is None:
        raise Skipped("strace is not installed, and nothing else counts the syncs of a process")
    (place.workdir / "a.md").write_text("x", encoding="utf-8")
    policy = place.write("policy.yaml", _POLICY)
    counter = _Counter(place, strace)
    command = capsule_command()

    def plan(step: str, times: int) -> list[str]:
        written = place.write(f"plan{times}.yaml", "name: many\nsteps:\n" + step * times)
        return [command, "run", str(written), "--policy", str(policy), "--db", "../runs.db"]

    def agent(times: int) -> list[str]:
        return [sys.executable, "-c", _AGENT, str(policy), str(times)]

    place.run(plan(_READ, 1))  # making the journal is no step's cost
    yield counter.row("a read of a plan", plan(_READ, _FEW), plan(_READ, _MANY), goal=1.1)
    yield counter.row("a write of a plan", plan(_WRITE, _FEW), plan(_WRITE, _MANY), goal=2.1)
    yield counter.row("a read of an agent", agent(_FEW), agent(_MANY), goal=2.1)


class _Counter:
    def __init__(self, place: Place, strace: str) -> None:
        self._place = place
        self._strace = strace

    def row(self, what: str, few: list[str], many: list[str], *, goal: float) -> Row:
        (once, once_beside), (often, often_beside) = self._count(few), self._count(many)
        steps = _MANY - _FEW
        beside = (often_beside - once_beside) / steps
        how = f"{once} for {_FEW} steps, {often} for {_MANY}" + (
            f"; and {beside:.2g} of the file itself" if beside else ""
        )
        return Row(
            what=f"syncs of the journal for {what}", measured=(often - once) / steps, goal=goal, unit="", how=how
        )

    def _count(self, command: list[str]) -> tuple[int, int]:
        """Those of the journal, and all others."""
        log = self._place.root / "strace.log"
        traced = "trace=fsync,fdatasync,sync,syncfs,msync"
        self._place.run([self._strace, "-f", "-y", "-qq", "-e", traced, "-o", log, *command])
        files = [found["file"] or "" for found in _SYNC.finditer(log.read_text(encoding="utf-8"))]
        journal = sum(Path(file).name.startswith("runs.db") for file in files)
        return journal, len(files) - journal
