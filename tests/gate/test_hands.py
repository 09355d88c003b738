"""Nothing is touched while no gate call is open, and during a call only what it was granted.

Two watchers look at one process, for neither sees everything:

- Python's audit hook raises an event for each `open`, `os.*`, `socket.*`, `subprocess.*` … of Python code, with the
  stack it came from; of an `open` below a handle it tells the name alone. It says nothing of system calls made by C
  code: SQLite's, and `openat2` by ctypes, by which granted files are opened.
- inotify, in this process, sees every open, read, write, creation and rename of files in the directories that it
  watches, and every listing of these, whoever makes the call; not what only asks for a name (O_PATH, `stat`), and
  nothing elsewhere. Directories on the way of a path are listed when it is made concrete: that tells whether they fold
  case. They are held against the path that was asked for.

What is shown: of the workdir, its neighbours, Capsule's home and the journal's directory each access is accounted for,
and Python code opens nothing anywhere else. That C code reads nothing outside these directories is not shown.
Sockets and processes are counted from /proc after each step, beside their audit events. The last two tests show that
a tool that takes more than its grant would be seen by both.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from gated import db_of, grown

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify and /proc are Linux'")

POLICY = """
rules:
  - {id: docs, action: allow, tool: [fs.read, fs.list, made.tool], constraints: {path: {pattern: ./docs/**}}}
  - {id: out, action: allow, tool: fs.write, constraints: {path: {pattern: "./out/*"}}}
  - {id: never, action: deny, tool: "*", constraints: {paths: {patterns: ["**/hidden", "**/private"]}}}
  - {id: web, action: allow, tool: http.get, constraints: {url: {domains: [example.com]}}}
  - {id: git, action: allow, tool: shell.run, constraints: {command: {executables: [git]}}}
"""
ACCESS, MODIFY, OPEN, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x1, 0x2, 0x20, 0x40, 0x80, 0x100, 0x200
OVERFLOW, IS_DIRECTORY = 0x4000, 0x40000000


class Inotify:
    """What was accessed beneath some directories since the last look: files, and directories that were listed."""

    def __init__(self, *roots: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._handle: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self._handle >= 0
        self._names: dict[int, Path] = {}
        for root in roots:
            for directory in (root, *(path for path in root.rglob("*") if path.is_dir())):
                number = libc.inotify_add_watch(
                    self._handle, bytes(directory), ACCESS | MODIFY | OPEN | MOVED_FROM | MOVED_TO | CREATE | DELETE
                )
                assert number >= 0
                self._names[number] = directory

    def look(self) -> tuple[set[Path], set[Path]]:
        files: set[Path] = set()
        listed: set[Path] = set()
        while True:
            try:
                data = os.read(self._handle, 65536)
            except BlockingIOError:
                return files, listed
            for path, mask in self._parsed(data):
                (listed if mask & IS_DIRECTORY and mask & (OPEN | ACCESS) else files).add(path)

    def _parsed(self, data: bytes) -> Iterator[tuple[Path, int]]:
        place = 0
        while place < len(data):
            number, mask, _, length = struct.unpack_from("iIII", data, place)
            assert not mask & OVERFLOW, "too much happened for one look"
            name = data[place + 16 : place + 16 + length].rstrip(b"\0").decode()
            yield (self._names[number] / name if name else self._names[number]), mask
            place += 16 + length

    def close(self) -> None:
        os.close(self._handle)


@dataclass(kw_only=True)
class Watched:
    """A process under both watchers."""

    base: Path
    process: subprocess.Popen[str]
    inotify: Inotify
    told: dict[str, Any] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)

    def does(self, step: str | dict[str, object]) -> set[str]:
        """Names of the files that were accessed, from the common directory; the rest is kept."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.inotify.look()
        self.process.stdin.write((step if isinstance(step, str) else json.dumps(step)) + "\n")
        self.process.stdin.flush()
        self.told = json.loads(self.process.stdout.readline())
        files, listed = self.inotify.look()
        self.listed = {path.relative_to(self.base).as_posix() for path in listed}
        names = {path.relative_to(self.base).as_posix() for path in files}
        return {re.sub(r"\.capsule-[0-9a-f]{16}\.tmp$", "TEMPORARY", name) for name in names}

    @property
    def opened(self) -> set[str]:
        """What audit events name."""
        named = [event["path"] for event in self.told["events"] if event["path"] is not None]
        paths = {path.removeprefix(f"{self.base}/") for path in named}
        return {re.sub(r"\.capsule-[0-9a-f]{16}\.tmp$", "TEMPORARY", path) for path in paths}

    @property
    def stacks(self) -> list[Sequence[str]]:
        return [event["stack"] for event in self.told["events"]]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path.resolve()
    grown(
        base / "ws",
        docs__a="a",
        docs__b="b",
        docs__hidden="h",
        docs__sub__s="s",
        docs__private__p="p",
        out__old="o",
        other__c="c",
        e="e",
    )
    grown(base / "elsewhere", e="e")
    (base / "ws/docs/link").symlink_to("../other/c")
    grown(base, **{"policy.yaml": POLICY})
    (base / "home/.capsule").mkdir(parents=True)
    db_of(base / "ws").parent.mkdir()
    return base


@contextmanager
def _watched(base: Path) -> Iterator[Watched]:
    environment = {
        **os.environ,
        "HOME": str(base / "home"),
        "CAPSULE_HOME": str(base / "home/.capsule"),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    workdir = base / "ws"
    inotify = Inotify(base)
    with subprocess.Popen(
        [sys.executable, Path(__file__).with_name("watched.py"), workdir, db_of(workdir), base / "policy.yaml"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield Watched(base=base, process=process, inotify=inotify)
        finally:
            inotify.close()
            assert process.stdin is not None
            process.stdin.close()


def _beside_the_journal(names: set[str]) -> set[str]:
    return {name for name in names if not name.startswith("journal")}


CALLS: list[tuple[dict[str, object], str, set[str]]] = [
    ({"tool": "fs.read", "path": "docs/a"}, "success", {"ws/docs/a"}),
    ({"tool": "fs.read", "path": "docs/../docs/b", "offset": 1}, "success", {"ws/docs/b"}),
    ({"tool": "fs.read", "path": "docs/none"}, "error", set()),
    ({"tool": "fs.read", "path": "docs/hidden"}, "denied", set()),
    ({"tool": "fs.read", "path": "docs/link"}, "denied", set()),
    ({"tool": "fs.read", "path": "other/c"}, "denied", set()),
    ({"tool": "fs.read", "path": "../elsewhere/e"}, "denied", set()),
    ({"tool": "fs.read", "path": "docs/a", "bad": 1}, "error", set()),
    ({"tool": "fs.raed", "path": "docs/a"}, "error", set()),
    ({"tool": "fs.list", "path": "docs/sub"}, "success", set()),
    ({"tool": "fs.list", "path": "docs"}, "success", set()),
    ({"tool": "fs.write", "path": "out/new", "content": "x"}, "success", {"ws/out/TEMPORARY", "ws/out/new"}),
    (
        {"tool": "fs.write", "path": "out/old", "content": "x", "mode": "append"},
        "success",
        {"ws/out/TEMPORARY", "ws/out/old"},
    ),
    ({"tool": "fs.write", "path": "other/c", "content": "x"}, "denied", set()),
    ({"tool": "http.get", "url": "https://example.com"}, "error", set()),
    ({"tool": "http.get", "url": "https://example.org"}, "denied", set()),
    ({"tool": "shell.run", "command": ["git", "status"]}, "error", set()),
]


def test_nothing_is_touched_but_what_a_call_was_granted(base: Path) -> None:
    with _watched(base) as watched:
        watched.does("run")  # these warm up: what is imported late is imported now
        watched.does("idle")
        opening = watched.does("open")
        assert _beside_the_journal(opening) == {"home/.capsule/key"}
        assert watched.does("idle") == watched.listed == set()
        assert watched.told["events"] == []
        above = {str(base), *map(str, base.parents)}
        for call, status, granted in CALLS:
            touched = watched.does(call)
            assert (call, watched.told["status"]) == (call, status)
            assert _beside_the_journal(touched) == granted, call
            assert watched.listed - _on_the_way(base, call) == set(), call
            assert watched.opened - _on_the_way(base, call) - above - {".", "TEMPORARY"} <= granted, call
            assert all("capsule.gate.gate:call" in stack for stack in watched.stacks)
            assert (watched.told["sockets"], watched.told["children"]) == (0, 0)
            assert watched.does("idle") == watched.listed == set()
            assert watched.told["events"] == []
        closing = watched.does("close")
        assert _beside_the_journal(closing) == set()


def _on_the_way(base: Path, call: dict[str, object]) -> set[str]:
    """The directories above a path and what it leads to; of a listing also those beneath what was granted."""
    path = base / "ws" / str(call.get("path", ""))
    forms = (Path(os.path.normpath(path)), path.resolve())
    above = {str(parent.relative_to(base)) for form in forms for parent in form.parents if parent.is_relative_to(base)}
    return above | {"ws"} | ({"ws/docs", "ws/docs/sub", "ws/docs/private"} if call["tool"] == "fs.list" else set())


def test_a_plan_touches_nothing_beside_the_gate(base: Path) -> None:
    with _watched(base) as watched:
        watched.does("run")
        touched = watched.does("run")
        assert watched.told["status"] == "completed"
        assert _beside_the_journal(touched) == {
            "home/.capsule/key",
            "ws/docs/a",
            "ws/out/TEMPORARY",
            "ws/out/plan",
        }
        assert watched.stacks
        for stack in watched.stacks:
            assert any(frame.startswith("capsule.gate.") for frame in stack), stack
            hands = any(frame.startswith(("capsule.effects.", "capsule.tools.")) for frame in stack)
            opening = any(frame.startswith("capsule.gate.assemble:") or frame.endswith(":close") for frame in stack)
            assert "capsule.gate.gate:call" in stack or opening or not hands, stack
        assert (watched.told["sockets"], watched.told["children"]) == (0, 0)


def test_the_watch_sees_a_tool_that_takes_more_than_its_grant(base: Path) -> None:
    with _watched(base) as watched:
        watched.does("run")
        watched.does("open")
        touched = watched.does({"tool": "made.tool", "path": "docs/a"})
        assert "ws/other/c" in touched
        assert "ws/other/c" in watched.opened


def test_the_watch_sees_a_tool_that_goes_on_after_its_call(base: Path) -> None:
    with _watched(base) as watched:
        watched.does("run")
        watched.does("open")
        assert _beside_the_journal(watched.does({"tool": "made.tool", "path": "docs/b"})) == set()
        assert "ws/other/c" in watched.does("late")
        assert "ws/other/c" in watched.opened
        assert not any("capsule.gate.gate:call" in stack for stack in watched.stacks)
