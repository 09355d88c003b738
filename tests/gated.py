"""What tests of the one door share: gates with small real tools, and what their journals and the disk hold."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from sqlite3 import connect
from typing import TypeAlias

from capsule.approval import deny_all
from capsule.calls import (
    BUILTIN,
    Approver,
    Context,
    Guard,
    RunStatus,
    Source,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Trust,
    World,
)
from capsule.canon import Json
from capsule.effects import SystemClock
from capsule.gate import Gate, Opening, Step, assemble, open_journal
from capsule.plans import Plan, PlanOutcome, run_plan
from capsule.policy import Policy
from capsule.settings import Settings
from capsule.store import Record, Run

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"  # in two parts, so that no scanner takes it for a leak
MARK = "⟦redacted:github_token:1⟧"

Body: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class Made:
    """Implements `calls.Tool` with any function."""

    act: Callable[[Mapping[str, Json], Context], object]
    definition: ToolDefinition

    def run(self, args: Mapping[str, Json], context: Context) -> Json:
        return self.act(args, context)  # type: ignore[return-value]  # foreign code returns what it likes


_VALUE: Mapping[str, Json] = {"type": "object", "properties": {"value": {}}, "additionalProperties": False}
_PATH: Mapping[str, Json] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def made(
    act: Callable[[Mapping[str, Json], Context], object], *, trust: Trust = Trust.TRUSTED, guard: Guard | None = None
) -> Made:
    """A tool `made.tool` with one free argument `value`, or with a guarded `path`."""
    definition = ToolDefinition(
        name="made.tool",
        description="Made.",
        args_schema=_VALUE if guard is None else _PATH,
        guards={} if guard is None else {"path": guard},
        max_bytes=1000,
        trust=trust,
    )
    return Made(act=act, definition=definition)


class LateClock(SystemClock):
    """The real clock, put forward by hand."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_ms / 1000


def gate_of(
    workdir: Path,
    *policies: str | Policy,
    approver: Approver = deny_all,
    tool: Made | None = None,
    world: Callable[[World], World] = lambda world: world,
    clock: SystemClock | None = None,
) -> Gate:
    """A gate over a journal beside the workdir; a policy over a tool of its own is given as text."""
    definitions = {**BUILTIN, **({tool.definition.name: tool.definition} if tool else {})}
    parsed = [Policy.parse(text, definitions=definitions) if isinstance(text, str) else text for text in policies]
    parts = assemble(
        Opening(
            settings=Settings.load(os.environ), policies=parsed, workdir=workdir, db=db_of(workdir), approver=approver
        )
    )
    if tool is not None:
        parts.registry.add(tool)
    seen = world(parts.world)
    layers = tuple(policy.bind(seen) for policy in parsed)
    parts = replace(parts, world=seen, layers=layers, clock=clock or parts.clock)
    return Gate(parts)


def db_of(workdir: Path) -> Path:
    return workdir.with_name("journal") / "runs.db"


def read(path: str, source: Source = Source.API, **more: Json) -> ToolCall:
    return ToolCall(tool="fs.read", args={"path": path, **more}, source=source)


def write(path: str, content: str = "new", source: Source = Source.API, **more: Json) -> ToolCall:
    return ToolCall(tool="fs.write", args={"path": path, "content": content, **more}, source=source)


def code(result: ToolResult) -> int | None:
    return result.error.code if result.error else None


def records(db: Path, run_id: str | None = None) -> list[Record]:
    """Of one run, or of the newest; none where there is no run yet."""
    if not db.exists():
        return []
    store = open_journal(db)
    runs = [run_id] if run_id else [run.run_id for run in store.runs(limit=1)]
    return [record for run in runs for record in store.records(run)]


def kinds(db: Path, run_id: str | None = None) -> list[str]:
    return [record.kind for record in records(db, run_id)]


def newest(db: Path) -> Run:
    return open_journal(db).runs(limit=1)[0]


def bodies(db: Path, kind: str, run_id: str | None = None) -> list[Body]:
    return [record.body for record in records(db, run_id) if record.kind == kind]


def holds(db: Path) -> bool:
    """Every chain of the journal."""
    return open_journal(db).verify().ok


def ends_as(db: Path, run_id: str) -> RunStatus:
    """How a run stands; its chain holds and nobody keeps its lock."""
    assert open_journal(db).verify(run_id).ok
    assert not db.with_name(f"{db.name}-locks").exists()
    return open_journal(db).run(run_id).status


def everything_stored(db: Path) -> bytes:
    """The journal's files as they lie on the disk, and once more with what is compressed laid open."""
    files = [path.read_bytes() for path in sorted(db.parent.iterdir()) if path.is_file()]
    with closing(connect(f"file:{db}?mode=ro", uri=True)) as opened:
        opened.text_factory = bytes
        tables = [name.decode() for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        cells = [cell for table in tables for row in opened.execute(f'SELECT * FROM "{table}"') for cell in row]
    return b"\0".join([*files, *(_laid_open(cell) for cell in cells if isinstance(cell, bytes))])


def _laid_open(cell: bytes) -> bytes:
    try:
        return zlib.decompress(cell)
    except zlib.error:
        return cell


def tree(directory: Path) -> dict[str, bytes | str | None]:
    """What lies beneath a directory: bytes of files, targets of links, None for directories."""
    return {
        path.relative_to(directory).as_posix(): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in sorted(directory.rglob("*"))
    }


def grown(directory: Path, **files: str) -> Path:
    """A directory with these files; in names `__` stands for a slash."""
    for name, text in files.items():
        path = directory / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    directory.mkdir(parents=True, exist_ok=True)
    return directory


CAPSULE = (sys.executable, "-P", "-m", "capsule")


@contextmanager
def started(*words: object, cwd: Path, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """The command line as a process with a session, and so without a terminal, of its own; none of it is left."""
    with subprocess.Popen(
        [*CAPSULE, *map(str, words)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@dataclass(frozen=True, kw_only=True)
class Ran:
    code: int
    out: bytes
    err: bytes

    @property
    def json(self) -> dict[str, Json]:
        value: dict[str, Json] = json.loads(self.out)
        return value


def ran(*words: object, cwd: Path, env: Mapping[str, str] | None = None) -> Ran:
    with started(*words, cwd=cwd, env=env) as process:
        out, err = process.communicate(timeout=60)
    return Ran(code=process.returncode, out=out, err=err)


def is_gone(group: int) -> bool:
    """Whether no process of a session is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def eventually(holds_now: Callable[[], bool], *, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds_now():
            return True
        time.sleep(0.01)
    return False


def dumped(path: Path, value: Json) -> Path:
    """A document; what is written as JSON is read as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


class Quiet:
    """Implements `plans.Watcher` and shows nothing."""

    def opened(self, run_id: str) -> None:
        pass

    def check(self) -> None:
        pass

    def began(self, step: Step) -> None:
        pass

    def ended(self, step: Step, tool: str, result: ToolResult) -> None:
        pass

    def waiting(self, step: Step, left_ms: int) -> None:
        pass


def planned(
    workdir: Path, plan: Mapping[str, Json], policy: str, given: Mapping[str, Json] | None = None
) -> PlanOutcome:
    """A plan that is run in this process, over the journal beside the workdir."""
    loaded = Plan.parse(json.dumps(plan), format="json")
    opening = Opening(
        settings=Settings.load(os.environ), policies=[Policy.parse(policy)], workdir=workdir, db=db_of(workdir)
    )
    return run_plan(loaded, loaded.read_inputs(given or {}), opening, watcher=Quiet())


def plan_of(*steps: Json) -> dict[str, Json]:
    return {"steps": list(steps)}


def step_of(tool: str, args: Mapping[str, Json], **more: Json) -> Json:
    return {"tool": tool, "args": args, **more}


def statuses(report: Mapping[str, Json]) -> list[tuple[Json, Json]]:
    """Of a report's steps: the id and how it ended."""
    steps = report["steps"]
    assert isinstance(steps, Sequence)
    return [(step["step_id"], step["status"]) for step in steps if isinstance(step, Mapping)]
