"""A process that uses a gate step by step, and tells after each step which audit events Python raised meanwhile.

Started as `watched.py WORKDIR DB POLICY`. For each line on its input it does the step of that name and answers with one
line of JSON: `events`, each with its event, its path made absolute as far as it has one, and the modules of ours that
were on the stack; `sockets` and `children` that the process has then; and the `status` of the call.
"""

from __future__ import annotations

import difflib  # noqa: F401 - the product imports it at the first mistake
import json
import os
import resource
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType

from gated import Quiet, made

from capsule.calls import BUILTIN, Context, Guard, Source, ToolCall
from capsule.canon import Json
from capsule.gate import Gate, Opening, assemble
from capsule.plans import Plan, run_plan
from capsule.policy import Policy
from capsule.settings import Settings

WATCHED = (
    "open",
    "os.",
    "socket.",
    "subprocess.",
    "shutil.",
    "glob.",
    "pathlib.",
    "tempfile.",
    "fcntl.",
    "sqlite3.connect",
)

PLAN = """
variables: {name: docs}
steps:
  - {id: one, tool: fs.read, args: {path: "{{ name }}/a"}, store_as: got}
  - {tool: fs.write, args: {path: out/plan, content: "{{ got.content | upper }}", mode: overwrite}}
  - {tool: fs.read, args: {path: other/c}, continue_on_error: true}
"""


class Watch:
    """The hook cannot be taken away again; it notes what happens while `noted` is a list."""

    def __init__(self) -> None:
        self.noted: list[Json] | None = None
        self._within = threading.local()
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.noted is None or not event.startswith(WATCHED) or getattr(self._within, "hook", False):
            return
        self._within.hook = True
        try:
            path = _path(event, arguments)
            self.noted.append({"event": event, "path": path, "stack": [*_ours(sys._getframe())]})
        finally:
            self._within.hook = False


def _path(event: str, arguments: tuple[object, ...]) -> str | None:
    """Made absolute by the handle that it hangs from or stands for; `open` tells no handle."""
    name, last = arguments[0], arguments[-1]
    if event == "os.scandir" and isinstance(name, int):
        return _handle(name)
    if not isinstance(name, str | bytes | os.PathLike):
        return None
    text = os.fsdecode(name)
    hangs = not text.startswith("/") and event != "open" and isinstance(last, int) and last >= 0
    return os.path.normpath(f"{_handle(last)}/{text}") if hangs else text


def _handle(number: object) -> str:
    return str(Path(f"/proc/self/fd/{number}").readlink())


def _ours(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("capsule."):
            yield f"{module}:{frame.f_code.co_name}"
        frame = frame.f_back


class Leak:
    """A tool that takes more than it is granted: at once, or in a thread that goes on when told to."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._go = threading.Event()
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self.tool = made(self._act, guard=Guard.READ_PATH)

    def _act(self, args: Mapping[str, Json], context: Context) -> None:
        if args["path"] == "docs/a":
            self._file.read_bytes()
        else:
            self._thread.start()

    def _wait(self) -> None:
        if self._go.wait(30):
            self._file.read_bytes()

    def late(self) -> None:
        self._go.set()
        self._thread.join()


class Steps:
    def __init__(self, workdir: Path, db: Path, policy: Path) -> None:
        leak = Leak(workdir / "other/c")
        self.policy = Policy.load(policy, definitions={**BUILTIN, "made.tool": leak.tool.definition})
        self.opening = Opening(settings=Settings.load(os.environ), policies=[self.policy], workdir=workdir, db=db)
        self.leak = leak
        self.plan = Plan.parse(PLAN)
        self.gate: Gate | None = None

    def open(self) -> None:
        parts = assemble(self.opening)
        parts.registry.add(self.leak.tool)
        self.gate = Gate(parts)

    def call(self, tool: str, **args: Json) -> str:
        assert self.gate is not None
        return self.gate.call(ToolCall(tool=tool, args=args, source=Source.API)).status.value

    def idle(self) -> None:
        """What policies and plans do beside the gate."""
        for path in ("docs/a", "/etc/passwd", "~/x", "../x"):
            self.policy.decide(ToolCall(tool="fs.read", args={"path": path}))
        self.policy.decide(ToolCall(tool="http.get", args={"url": "https://example.com"}))
        self.policy.decide(ToolCall(tool="shell.run", args={"command": ["git", "status"]}))
        Policy.parse(self.policy.document.text, definitions=self.policy.definitions)
        Plan.parse(PLAN).read_inputs({})

    def run(self) -> str:
        return run_plan(self.plan, {}, self.opening, watcher=Quiet()).status.value

    def do(self, name: str) -> str | None:
        if name.startswith("{"):
            call = json.loads(name)
            return self.call(call.pop("tool"), **call)
        acts: Mapping[str, Callable[[], str | None]] = {
            "open": self.open,
            "idle": self.idle,
            "run": self.run,
            "close": self.close,
            "late": self.leak.late,
        }
        return acts[name]()

    def close(self) -> None:
        assert self.gate is not None
        with self.gate:
            pass


def _sockets() -> int:
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found += str(entry.readlink()).startswith("socket:")
        except FileNotFoundError:  # the handle of the listing itself
            continue
    return found


def _children() -> int:
    """Living ones, and faults of those that were waited for."""
    living = [(task / "children").read_text().split() for task in Path("/proc/self/task").iterdir()]
    return sum(map(len, living)) + resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt


def main() -> None:
    workdir, db, policy = map(Path, sys.argv[1:])
    watch = Watch()
    steps = Steps(workdir, db, policy)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        events: list[Json] = []
        watch.noted = events
        status = steps.do(line.strip())
        watch.noted = None
        told: Json = {"events": events, "status": status, "sockets": _sockets(), "children": _children()}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
