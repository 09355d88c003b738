from __future__ import annotations

import fcntl
import os
import resource
import stat
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pytest
from granted import grant, open_descriptors, up_to

from capsule.calls import Access, Written
from capsule.effects import Anchors, Bounds, SystemClock, files
from capsule.errors import CapsuleError, PolicyDenied, ToolError

CREATED = Written(created=True)
REPLACED = Written(created=False)


def write(
    anchors: Anchors, path: str, data: bytes = b"new", *, mode: str = "create", dirs: bool = False, cap: int = 1000
) -> Written:
    granted = grant(path, access=Access.WRITE)
    return files.write(anchors, granted, data, mode=mode, create_dirs=dirs, clock=SystemClock(), bounds=up_to(cap))


def tree(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }


@pytest.mark.parametrize(
    ("mode", "before", "after", "written"),
    [
        ("create", None, b"new", CREATED),
        ("overwrite", None, b"new", CREATED),
        ("append", None, b"new", CREATED),
        ("overwrite", b"a longer text", b"new", REPLACED),
        ("append", b"old ", b"old new", REPLACED),
        ("append", b"", b"new", REPLACED),
    ],
)
def test_modes(
    workdir: Path, anchors: Anchors, mode: str, before: bytes | None, after: bytes, written: Written
) -> None:
    if before is not None:
        (workdir / "file").write_bytes(before)
    assert write(anchors, "file", mode=mode) == written
    assert tree(workdir) == {"file": after}


def test_create_never_replaces(workdir: Path, anchors: Anchors) -> None:
    (workdir / "file").write_bytes(b"old")
    with pytest.raises(ToolError, match="exists already") as caught:
        write(anchors, "file")
    assert caught.value.code == 2003
    assert "overwrite" in (caught.value.hint or "")
    assert tree(workdir) == {"file": b"old"}


def test_an_empty_file_can_be_made(workdir: Path, anchors: Anchors) -> None:
    write(anchors, "file", b"")
    assert tree(workdir) == {"file": b""}


def test_missing_directories_are_made_only_when_asked(workdir: Path, anchors: Anchors) -> None:
    with pytest.raises(ToolError, match="directory does not exist") as caught:
        write(anchors, "a/b/file")
    assert "create_dirs" in (caught.value.hint or "")
    assert tree(workdir) == {}
    write(anchors, "a/b/file", dirs=True)
    write(anchors, "a/b/other", dirs=True)
    assert tree(workdir) == {"a": None, "a/b": None, "a/b/file": b"new", "a/b/other": b"new"}


@pytest.mark.parametrize("path", ["out/file", "out/made/file", "in/made/file", "dangling/file", "link", "dangling"])
@pytest.mark.parametrize("mode", ["create", "overwrite", "append"])
def test_a_link_that_was_not_decided_on_is_denied(workdir: Path, anchors: Anchors, path: str, mode: str) -> None:
    outside = workdir.parent / "outside"
    outside.mkdir()
    (workdir / "inside").mkdir()
    (workdir / "inside/kept").write_bytes(b"kept")
    for name, target in {"out": "../outside", "in": "inside", "dangling": "nowhere", "link": "inside/kept"}.items():
        (workdir / name).symlink_to(target)
    before = tree(workdir.parent)
    with pytest.raises(PolicyDenied) as caught:
        write(anchors, path, mode=mode, dirs=True)
    assert caught.value.code == 1001
    assert tree(workdir.parent) == before


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_other_names_of_the_file_keep_the_old_content(workdir: Path, anchors: Anchors, mode: str) -> None:
    (workdir.parent / "original").write_bytes(b"old ")
    os.link(workdir.parent / "original", workdir / "file")
    write(anchors, "file", mode=mode)
    assert (workdir.parent / "original").read_bytes() == b"old "
    assert (workdir / "file").read_bytes().endswith(b"new")


@pytest.mark.parametrize("mode", ["overwrite", "append"])
@pytest.mark.parametrize(("old", "new"), [(0o644, 0o644), (0o600, 0o600), (0o755, 0o755), (0o4755, 0o755)])
def test_permission_bits_are_kept(workdir: Path, anchors: Anchors, mode: str, old: int, new: int) -> None:
    (workdir / "file").touch()
    (workdir / "file").chmod(old)
    write(anchors, "file", mode=mode)
    assert stat.S_IMODE((workdir / "file").stat().st_mode) == new


def test_a_new_file_has_the_users_own_mode(workdir: Path, anchors: Anchors) -> None:
    (workdir / "usual").touch(mode=0o666)
    write(anchors, "file")
    assert (workdir / "file").stat().st_mode == (workdir / "usual").stat().st_mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_root_leaves_the_owner_as_it_was(workdir: Path, anchors: Anchors) -> None:
    (workdir / "file").touch()
    os.chown(workdir / "file", 1234, 4321)
    write(anchors, "file", mode="overwrite")
    status = (workdir / "file").stat()
    assert (status.st_uid, status.st_gid) == (1234, 4321)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_is_not_replaced(workdir: Path, anchors: Anchors) -> None:
    (workdir / "file").write_bytes(b"old")
    (workdir / "file").chmod(0o444)
    with pytest.raises(ToolError, match="permission denied"):
        write(anchors, "file", mode="overwrite")
    assert tree(workdir) == {"file": b"old"}


@pytest.mark.parametrize("mode", ["create", "overwrite", "append"])
@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_only_regular_files_are_written(workdir: Path, anchors: Anchors, mode: str, kind: str) -> None:
    path = workdir / "thing"
    os.mkfifo(path) if kind == "fifo" else path.mkdir()
    with pytest.raises(ToolError, match="only regular files") as caught:
        write(anchors, "thing", mode=mode)
    assert caught.value.code == 2003
    with pytest.raises(ToolError):
        write(anchors, "")


@pytest.mark.parametrize(
    ("mode", "old", "new", "allowed"),
    [
        ("create", 0, 10, True),
        ("create", 0, 11, False),
        ("overwrite", 100, 10, True),
        ("overwrite", 1, 11, False),
        ("append", 5, 5, True),
        ("append", 5, 6, False),
        ("append", 10**12, 1, False),
    ],
)
def test_no_file_grows_over_the_cap(
    workdir: Path, anchors: Anchors, mode: str, old: int, new: int, *, allowed: bool
) -> None:
    if old:
        with (workdir / "file").open("wb") as file:
            file.truncate(old)
    if allowed:
        write(anchors, "file", bytes(new), mode=mode, cap=10)
        return
    with pytest.raises(PolicyDenied, match="10 are granted") as caught:
        write(anchors, "file", bytes(new), mode=mode, cap=10)
    assert caught.value.code == 1005
    assert [path.stat().st_size for path in workdir.iterdir()] == ([old] if old else [])


def test_appending_holds_little_of_the_old_file(workdir: Path, anchors: Anchors) -> None:
    with (workdir / "file").open("wb") as file:
        file.truncate(50_000_000)
    tracemalloc.start()
    try:
        write(anchors, "file", mode="append", cap=100_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000
    assert (workdir / "file").stat().st_size == 50_000_003


@contextmanager
def no_room() -> Iterator[None]:
    """No file may grow over 100 bytes: a write fails halfway, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("mode", ["create", "overwrite", "append"])
def test_a_write_that_fails_leaves_everything_as_it_was(workdir: Path, anchors: Anchors, mode: str) -> None:
    if mode != "create":
        (workdir / "file").write_bytes(b"old")
    before, open_before = tree(workdir), open_descriptors()
    with no_room(), pytest.raises(ToolError, match="cannot write file") as caught:
        write(anchors, "file", bytes(101), mode=mode)
    assert caught.value.code == 2003
    assert tree(workdir) == before
    assert open_descriptors() == open_before


def test_nothing_is_left_open(workdir: Path, anchors: Anchors) -> None:
    before = open_descriptors()
    write(anchors, "a/b/c/file", dirs=True)
    write(anchors, "a/b/c/file", mode="append")
    for path, mode in (("a/b/c/file", "create"), ("missing/file", "create"), ("a", "overwrite")):
        with pytest.raises(CapsuleError):
            write(anchors, path, mode=mode)
    assert open_descriptors() == before


class Watching:
    """A clock at whose stroke another process acts: the temporary file gets its name when the target was looked at."""

    def __init__(self, act: object) -> None:
        assert callable(act)
        self.act = act

    def now_ms(self) -> int:
        return 0

    def monotonic(self) -> float:
        return 0.0

    def random_bytes(self, count: int) -> bytes:
        self.act()
        return SystemClock().random_bytes(count)


@pytest.mark.parametrize(("mode", "holds"), [("create", b"theirs"), ("overwrite", b"new"), ("append", b"theirsnew")])
def test_a_file_that_appears_meanwhile_is_seen(workdir: Path, anchors: Anchors, mode: str, holds: bytes) -> None:
    def appear() -> None:
        with suppress(FileExistsError), (workdir / "file").open("xb") as file:
            file.write(b"theirs")

    with pytest.raises(ToolError, match="exists already") if mode == "create" else nullcontext():
        files.write(
            anchors,
            grant("file"),
            b"new",
            mode=mode,
            create_dirs=False,
            clock=Watching(appear),
            bounds=up_to(100),
        )
    assert tree(workdir) == {"file": holds}


@pytest.mark.parametrize("there", [True, False])
def test_of_many_appenders_none_is_lost(workdir: Path, anchors: Anchors, there: bool) -> None:
    if there:
        (workdir / "file").write_bytes(b"")

    def append(number: int) -> None:
        for line in range(10):
            write(anchors, "file", f"{number} {line}\n".encode(), mode="append", cap=10_000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(8)))
    lines = (workdir / "file").read_text().splitlines()
    assert sorted(lines) == sorted(f"{number} {line}" for number in range(8) for line in range(10))


def test_a_file_that_others_hold_is_waited_for_and_not_for_ever(workdir: Path, anchors: Anchors) -> None:
    (workdir / "file").write_bytes(b"old")
    asked = 0

    def in_time() -> None:
        nonlocal asked
        asked += 1
        if asked > 5:
            raise ToolError(2004, "its time is up")

    with (workdir / "file").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ToolError, match="time is up"):
            files.write(
                anchors,
                grant("file"),
                b"new",
                mode="append",
                create_dirs=False,
                clock=SystemClock(),
                bounds=Bounds(max_bytes=100, in_time=in_time),
            )
    assert tree(workdir) == {"file": b"old"}


def test_what_comes_too_late_is_not_put_in_place(workdir: Path, anchors: Anchors) -> None:
    asked = 0

    def in_time() -> None:
        nonlocal asked
        asked += 1
        if asked > 2:  # before it begins, and before its one block
            raise ToolError(2004, "its time is up")

    with pytest.raises(ToolError, match="time is up"):
        files.write(
            anchors,
            grant("file"),
            b"new",
            mode="create",
            create_dirs=False,
            clock=SystemClock(),
            bounds=Bounds(max_bytes=100, in_time=in_time),
        )
    assert tree(workdir) == {}


def test_what_is_added_meanwhile_is_not_lost(workdir: Path, anchors: Anchors) -> None:
    (workdir / "file").write_bytes(b"old")
    clock = Watching(lambda: (workdir / "file").write_bytes(b"old and theirs"))
    with pytest.raises(ToolError, match="changed"):
        files.write(anchors, grant("file"), b"new", mode="append", create_dirs=False, clock=clock, bounds=up_to(100))
    assert tree(workdir) == {"file": b"old and theirs"}


def test_the_temporary_name_cannot_be_foretold_and_is_never_followed(workdir: Path, anchors: Anchors) -> None:
    class Foretold:
        def now_ms(self) -> int:
            return 0

        def monotonic(self) -> float:
            return 0.0

        def random_bytes(self, count: int) -> bytes:
            return bytes(count)

    (workdir / "victim").write_bytes(b"kept")
    (workdir / ".capsule-0000000000000000.tmp").symlink_to("victim")
    with pytest.raises(ToolError):  # even if somebody knew it
        files.write(
            anchors,
            grant("file"),
            b"new",
            mode="create",
            create_dirs=False,
            clock=Foretold(),
            bounds=up_to(100),
        )
    assert (workdir / "victim").read_bytes() == b"kept"
    assert not (workdir / "file").exists()
