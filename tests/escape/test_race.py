"""A2: names that another process flips while they are decided on and used."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from granted import grant, names, no_hurry, up_to

from capsule.calls import Access, Components, Entry, FileGrant
from capsule.effects import Anchors, Beneath, OnDisk, SystemClock, files, places_of
from capsule.errors import PolicyDenied, ToolError

SECONDS = 3.0
ACTS = 20  # with one decision: the world may change at any time after it
CAP = 1000
ALLOWED = b"allowed"
WRITTEN = b"written by a tool"
FORBIDDEN = ("outside", "ws/secret", "ws/.hidden", "ws/.git")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for place in ("ws/live", "ws/par", *FORBIDDEN):
        directory = tmp_path / place
        directory.mkdir(parents=True)
        for name in ("read", "write"):
            (directory / name).write_bytes(place.encode() * CAP if place in FORBIDDEN else ALLOWED)
    for place in FORBIDDEN:
        (tmp_path / place / "marker").touch()
    return tmp_path.resolve() / "ws"


def forbidden(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for place in FORBIDDEN for path in (root.parent / place).rglob("*")}


@contextmanager
def flipped(root: Path) -> Iterator[None]:
    script = Path(__file__).with_name("flipper.py")
    targets = [str(root.parent / place) for place in FORBIDDEN]
    other = subprocess.Popen(
        [sys.executable, "-I", str(script), str(root), *targets], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        try:
            yield
            assert other.poll() is None
        finally:
            assert other.stdin is not None
            other.stdin.close()
    assert other.returncode == 0


class Guarded:
    """What the gate does, with the smallest policy there is: a path is allowed if it is really this one."""

    def __init__(self, root: Path, anchors: Anchors) -> None:
        self.root = names(root)
        self.anchors = anchors
        places = places_of(workdir=root, home=root.parent, capsule_home=root.parent, db=root.parent / "runs.db")
        self.world = OnDisk(places, anchors)
        self.seen: Counter[str] = Counter()

    def granted(self, path: str, access: Access = Access.READ) -> Iterator[FileGrant]:
        """One decision, and what it grants again and again."""
        found = self.world.path(path, argument="path", access=access)
        if found.problem is None and found.real == (*self.root, *names(path)):
            for _ in range(ACTS):
                yield grant(path, access=access)
        else:
            self.seen["denied at decision"] += 1

    @contextmanager
    def act(self, kind: str) -> Iterator[None]:
        """It may fail in any clean way, because the file is gone for a moment or is a link again."""
        try:
            yield
            self.seen[kind] += 1
        except PolicyDenied as error:
            self.seen[f"{error.code} at the act"] += 1
        except ToolError as error:
            self.seen[f"{error.code} at the act"] += 1

    def read(self, path: str) -> None:
        for granted in self.granted(path):
            with self.act("read"):
                data = files.read(self.anchors, granted, offset=0, length=None, bounds=up_to(CAP)).data
                assert re.fullmatch(rb"(allowed|written by a tool)*", data)

    def list(self, path: str, pattern: str) -> None:
        for granted in self.granted(path):
            with self.act("list"):
                found = files.list(
                    self.anchors, granted, pattern=pattern, offset=0, limit=100, visible=self.visible, in_time=no_hurry
                )
                assert all(map(self.may_be_listed, found.entries)), found

    def visible(self, path: Components) -> bool:
        return path[len(self.root)] in ("live", "par")

    def may_be_listed(self, entry: Entry) -> bool:
        """Names and sizes from the forbidden directories would be a leak, too."""
        return "marker" not in entry.path and (entry.size or 0) <= CAP

    def write(self, path: str, mode: str) -> None:
        clock = SystemClock()
        for granted in self.granted(path, Access.WRITE):
            with self.act("write"):
                files.write(self.anchors, granted, WRITTEN, mode=mode, create_dirs=True, clock=clock, bounds=up_to(CAP))


def test_a2_links_that_flip_under_every_act(root: Path, beneath: Beneath) -> None:
    before = forbidden(root)
    with Anchors.open(root, beneath=beneath) as anchors, flipped(root):
        guarded = Guarded(root, anchors)
        begun = time.monotonic()
        while time.monotonic() < begun + SECONDS / 2:
            guarded.read("live/read")
            guarded.read("par/read")
            guarded.list("par", "**")
            guarded.list(".", "{par,live}/**")
        while time.monotonic() < begun + SECONDS:
            guarded.write("live/write", "overwrite")
            guarded.write("live/write", "append")
            guarded.write("par/write", "overwrite")
            guarded.write("par/made/deep/file", "overwrite")
    assert forbidden(root) == before
    expected = {"read", "list", "write", "denied at decision", "1001 at the act"}
    assert expected <= set(guarded.seen) <= expected | {"2003 at the act"}, guarded.seen
