"""Class A on the real file system: what a path leads to, what is then done there, and the bytes afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from granted import everything, grant, names, no_hurry, up_to

from capsule.calls import Access, Components
from capsule.effects import Anchors, Beneath, OnDisk, SystemClock, files, places_of
from capsule.errors import CapsuleError, PolicyDenied, ToolError

CORPUS = Path(__file__).parents[3] / "shared/corpora/paths.jsonl"
SECRET = b"outside bytes"
DENIED = frozenset({".env", ".git"})

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has it")


class Jail:
    """A policy of two lines, on disk: everything that is really beneath the workdir, but no `.env` and no `.git`."""

    def __init__(self, base: Path, anchors: Anchors) -> None:
        self.base = base
        self.anchors = anchors
        places = places_of(workdir=base / "ws", home=base / "home", capsule_home=base / "capsule", db=base / "runs.db")
        self.world = OnDisk(places, anchors)

    def real(self, text: str, access: Access = Access.READ) -> Components | None:
        """Where an allowed path leads, below the workdir; None is a denial."""
        found = self.world.path(text, argument="path", access=access)
        root = names(self.base / "ws")
        below = found.real[len(root) :]
        inside = found.problem is None and found.real[: len(root)] == root
        return below if inside and DENIED.isdisjoint(below) else None

    def read(self, text: str) -> bytes | None:
        real = self.real(text)
        if real is None:
            return None
        return files.read(self.anchors, grant("/".join(real)), offset=0, length=None, bounds=up_to(1000)).data

    def write(self, text: str, mode: str) -> bool:
        real = self.real(text, Access.WRITE)
        if real is None:
            return False
        granted = grant("/".join(real), access=Access.WRITE)
        files.write(self.anchors, granted, b"W", mode=mode, create_dirs=True, clock=SystemClock(), bounds=up_to(1000))
        return True


@pytest.fixture
def base(workdir: Path) -> Path:
    base = workdir.parent
    for name in ("ws/sub/ok.txt", "ws/ok.txt", "ws/.env", "ws-evil/ok.txt", "outside/ok.txt", "home/ok.txt"):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(b"inside" if name.startswith("ws/") and "." not in name[3] else SECRET)
    for name, target in {
        "link_dir": "/etc",
        "link_file": "../outside/ok.txt",
        "absolute": f"{base}/outside",
        "sibling": "../ws-evil",
        "chain1": "chain2",
        "chain2": "sub/../../outside/ok.txt",
        "loop": "loop",
        "dangling_file": "../outside/new.txt",
        "dangling_dir": "../outside/new",
        "env_link": ".env",
        "link_inside": "ok.txt",
        "up": "..",
        "sub/back": "../up/ws/up/outside",
    }.items():
        (workdir / name).symlink_to(target)
    return base


@pytest.fixture
def jail(base: Path, anchors: Anchors) -> Jail:
    return Jail(base, anchors)


def beyond(base: Path) -> dict[str, bytes | None]:
    """Everything outside the workdir, and what is hidden in it."""
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for place in (base / "ws-evil", base / "outside", base / "home", base / "ws/.env")
        for path in (place, *place.rglob("*"))
    }


ESCAPES = [
    pytest.param("../ws-evil/ok.txt", id="a1-sibling"),
    pytest.param("{base}/ws-evil/ok.txt", id="a1-sibling-absolute"),
    pytest.param("{base}/ws-evil/../ws-evil/ok.txt", id="a1-sibling-dots"),
    pytest.param("link_file", id="a2-file"),
    pytest.param("link_dir/passwd", id="a2-directory"),
    pytest.param("absolute/ok.txt", id="a2-absolute"),
    pytest.param("sibling/ok.txt", id="a2-sibling"),
    pytest.param("chain1", id="a2-chain"),
    pytest.param("loop", id="a2-loop"),
    pytest.param("dangling_file", id="a2-dangling"),
    pytest.param("dangling_dir/made/file", id="a2-dangling-directory"),
    pytest.param("env_link", id="a2-hidden-inside"),
    pytest.param("up/ws/.env", id="a2-there-and-back"),
    pytest.param("sub/back/ok.txt", id="a2-links-in-links"),
    pytest.param("../outside/ok.txt", id="a3-dots"),
    pytest.param("sub/../../outside/ok.txt", id="a3-dots-later"),
    pytest.param("./sub/./..//..///outside/./ok.txt", id="a3-slashes"),
    pytest.param("sub/back/../outside/ok.txt", id="a3-dots-after-a-link"),
    pytest.param("missing/../../outside/ok.txt", id="a3-dots-after-nothing"),
    pytest.param("ok.txt/../../outside/ok.txt", id="a3-dots-after-a-file"),
    pytest.param("~/ok.txt", id="a3-home"),
    pytest.param("{base}/ws/../outside/ok.txt", id="a3-absolute-dots"),
    pytest.param("//{base}/outside/ok.txt", id="a3-double-slash"),
    pytest.param("ok.txt\0.png", id="a3-nul"),
    pytest.param("../outside/ok.txt\0", id="a3-nul-at-the-end"),
    pytest.param("\udcff", id="a3-surrogate"),
    pytest.param("x" * 1_000_000, id="a3-a-megabyte"),
    pytest.param("./" * 500_000, id="a3-a-megabyte-of-dots"),
    pytest.param(".env/", id="a3-trailing-slash"),
    pytest.param(".env/.", id="a3-trailing-dot"),
    pytest.param("/proc/self/root{base}/outside/ok.txt", id="a3-proc-root", marks=linux),
    pytest.param("/proc/self/cwd/../outside/ok.txt", id="a3-proc-cwd", marks=linux),
    pytest.param("/proc/{pid}/fd/0", id="a3-proc-fd", marks=linux),
    pytest.param("/dev/fd/0", id="a3-dev-fd"),
    pytest.param("/proc/{pid}/mem", id="a11-mem", marks=linux),
    pytest.param("/dev/zero", id="a11-device"),
]


@pytest.mark.parametrize("text", ESCAPES)
def test_nothing_outside_is_reached(jail: Jail, base: Path, text: str) -> None:
    text = text.format(base=base, pid=os.getpid())
    before = beyond(base)
    begun = time.perf_counter()
    assert jail.read(text) is None
    for mode in ("create", "overwrite", "append"):
        assert jail.write(text, mode) is False
    assert time.perf_counter() - begun < 1
    assert beyond(base) == before


@pytest.mark.parametrize(
    "text", ["link_inside", "up/ws/ok.txt", "{base}/ws/sub/../ok.txt", "sub//ok.txt", "../ws/ok.txt"]
)
def test_a2_a3_what_leads_inside_is_reached(jail: Jail, base: Path, text: str) -> None:
    assert jail.read(text.format(base=base)) == b"inside"
    assert jail.write(text.format(base=base), "overwrite") is True
    assert (base / "ws/link_inside").is_symlink()


@pytest.mark.parametrize(
    "text",
    [
        "%2e%2e/outside/ok.txt", "..%2foutside%2fok.txt", "..%c0%af", "..\\outside\\ok.txt", "ok.txt ", "ok.txt.",
        "...", "ok\u200b.txt", "\u202etxt.ko", "cafe\u0301", "caf\u00e9", "OK.TXT", "\uff0e\uff0e\u2215outside",
        "*.txt", "-rf", "~root", "$HOME", "$(id)", "a\nb", "\x1b[2J",
    ],
)  # fmt: skip
def test_a3_odd_names_are_just_names(jail: Jail, base: Path, text: str) -> None:
    """Nobody decodes, trims, folds or expands them, so they lead to files of exactly that name."""
    before = beyond(base)
    assert jail.real(text) == names(text)
    assert jail.write(text, "overwrite") is True
    assert jail.read(text) == b"W"
    assert beyond(base) == before


@pytest.mark.parametrize("mode", ["overwrite", "append"])
@pytest.mark.parametrize("kept", ["outside/ok.txt", "ws/.env"])
def test_a12_nothing_is_written_through_a_hard_link(jail: Jail, base: Path, mode: str, kept: str) -> None:
    (base / "ws/hard").hardlink_to(base / kept)
    before = beyond(base)
    assert jail.write("hard", mode) is True
    assert beyond(base) == before
    assert (base / "ws/hard").read_bytes() == (b"W" if mode == "overwrite" else SECRET + b"W")


def test_a12_nothing_is_renamed_over_another_name_by_create(jail: Jail, base: Path) -> None:
    (base / "ws/hard").hardlink_to(base / "outside/ok.txt")
    with pytest.raises(ToolError, match="exists already"):
        jail.write("hard", "create")
    assert (base / "ws/hard").samefile(base / "outside/ok.txt")


@pytest.mark.parametrize("kind", ["fifo", "directory", "sparse"])
def test_a11_odd_files_hold_nothing_up(jail: Jail, base: Path, kind: str) -> None:
    thing = base / "ws/thing"
    if kind == "sparse":
        thing.touch()
        os.truncate(thing, 10**12)
        assert jail.read("thing") == bytes(1000)
        with pytest.raises(PolicyDenied, match="1000 are granted"):
            jail.write("thing", "append")
        return
    os.mkfifo(thing) if kind == "fifo" else thing.mkdir()
    begun = time.perf_counter()
    with pytest.raises(ToolError, match="only regular files"):
        jail.read("thing")
    for mode in ("create", "overwrite", "append"):
        with pytest.raises(ToolError, match="only regular files"):
            jail.write("thing", mode)
    assert time.perf_counter() - begun < 1


def test_a11_who_waits_at_a_fifo_is_not_woken(jail: Jail, base: Path) -> None:
    fifo = base / "ws/thing"
    os.mkfifo(fifo)
    woken = threading.Event()

    def wait() -> None:
        os.close(os.open(fifo, os.O_WRONLY))
        woken.set()

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    try:
        time.sleep(0.05)
        with pytest.raises(ToolError, match="only regular files"):
            jail.read("thing")
        assert not woken.wait(0.1)
    finally:
        os.close(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))
        waiting.join(5)


DYING_WRITER = """
import os, signal, sys
from pathlib import Path
from capsule.calls import Access, FileGrant
from capsule.effects import Anchors, Bounds, SystemClock, files

granted = FileGrant(argument="path", access=Access.WRITE, anchor="workdir", components=("file",))
sys.stdout.write("ready\\n")
sys.stdout.flush()
with Anchors.open(Path(sys.argv[1])) as anchors:
    data = bytes(200_000_000)
    bounds = Bounds(max_bytes=len(data), in_time=lambda: None)
    files.write(anchors, granted, data, mode="overwrite", create_dirs=False, clock=SystemClock(), bounds=bounds)
"""


def test_a8_a_killed_write_leaves_the_old_file_and_a_name_that_says_what_it_is(workdir: Path) -> None:
    (workdir / "file").write_bytes(b"old")
    with subprocess.Popen([sys.executable, "-c", DYING_WRITER, str(workdir)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + 20
        while len(list(workdir.iterdir())) == 1 and writer.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        writer.send_signal(signal.SIGKILL)
    assert writer.returncode == -signal.SIGKILL
    assert (workdir / "file").read_bytes() == b"old"
    (left,) = (path for path in workdir.iterdir() if path.name != "file")
    assert re.fullmatch(r"\.capsule-[0-9a-f]{16}\.tmp", left.name)
    assert left.stat().st_mode & 0o777 == 0o600


def test_a8_every_temporary_name_is_new(jail: Jail, base: Path) -> None:
    """Seen from a listing that another hand makes while the writes run: no name comes twice."""
    drawn: set[str] = set()

    class Noting(SystemClock):
        def random_bytes(self, count: int) -> bytes:
            made = super().random_bytes(count)
            drawn.add(made.hex())
            return made

    for number in range(50):
        files.write(
            jail.anchors,
            grant(f"file{number}"),
            b"x",
            mode="create",
            create_dirs=False,
            clock=Noting(),
            bounds=up_to(10),
        )
    assert len(drawn) == 50
    assert {len(name) for name in drawn} == {16}
    assert not list((base / "ws").glob(".capsule-*"))


def rows() -> list[dict[str, object]]:
    if not CORPUS.exists():
        return []
    return [json.loads(line) for line in CORPUS.read_text().splitlines()]


@pytest.mark.skipif(not CORPUS.exists(), reason=f"the corpus {CORPUS.name} is not here")
def test_a_corpus_of_paths_never_leaves_the_workdir(base: Path, beneath: Beneath) -> None:
    """Of each row's path as it stands: what is read is inside, what is written is inside, or nothing happens."""
    before = beyond(base)
    wrong: list[object] = []
    with Anchors.open(base / "ws", beneath=beneath) as anchors:
        jail = Jail(base, anchors)
        for row in rows():
            text = str(row["path"])
            if "allowed" in row:
                continue  # rows about other roots: a policy's matter
            try:
                reached = jail.read(text)
            except CapsuleError:
                reached = b"" if row["deny"] is False else None
            if (row["deny"] is True and reached is not None) or reached == SECRET:
                wrong.append(row)
            if row["deny"] == "contained_or_deny":
                try:
                    jail.write(text, "overwrite")
                except CapsuleError:
                    continue
            if row["deny"] is False and jail.real(text) is None:
                wrong.append(row)
        assert wrong == []
        listing = files.list(
            anchors, grant(""), pattern="**", offset=0, limit=10_000, visible=everything, in_time=no_hurry
        )
        assert len(listing.entries) > 300
    assert beyond(base) == before
