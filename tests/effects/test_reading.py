from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest
from granted import grant, open_descriptors, up_to

from capsule.calls import Chunk
from capsule.effects import Anchors, files
from capsule.errors import CapsuleError, PolicyDenied, ToolError

TEN = b"0123456789"


@pytest.mark.parametrize(
    ("offset", "length", "cap", "data"),
    [
        (0, None, 100, TEN),
        (0, None, 10, TEN),
        (0, None, 4, b"0123"),
        (4, None, 4, b"4567"),
        (4, 2, 100, b"45"),
        (4, 200, 3, b"456"),
        (9, None, 100, b"9"),
        (10, None, 100, b""),
        (10**15, None, 100, b""),
        (0, 0, 100, b""),
        (0, None, 0, b""),
    ],
)
def test_ranges(workdir: Path, anchors: Anchors, offset: int, length: int | None, cap: int, data: bytes) -> None:
    (workdir / "file").write_bytes(TEN)
    assert files.read(anchors, grant("file"), offset=offset, length=length, bounds=up_to(cap)) == Chunk(
        data=data, size=10
    )


def test_by_the_root(workdir: Path, anchors: Anchors) -> None:
    (workdir / "file").write_bytes(TEN)
    chunk = files.read(anchors, grant(f"{workdir}/file", anchor="root"), offset=0, length=None, bounds=up_to(100))
    assert chunk.data == TEN


def test_a_second_name_is_told(workdir: Path, anchors: Anchors) -> None:
    (workdir / "file").write_bytes(TEN)
    os.link(workdir / "file", workdir.parent / "other")
    assert files.read(anchors, grant("file"), offset=0, length=None, bounds=up_to(100)) == Chunk(
        data=TEN, size=10, hard_link=True
    )


def test_a_sparse_file_of_a_terabyte_costs_what_is_read(workdir: Path, anchors: Anchors) -> None:
    with (workdir / "sparse").open("wb") as file:
        file.truncate(10**12)
    chunk = files.read(anchors, grant("sparse"), offset=10**11, length=None, bounds=up_to(1000))
    assert chunk == Chunk(data=bytes(1000), size=10**12)


@pytest.mark.skipif(sys.platform != "linux", reason="procfs is Linux's")
def test_a_file_that_does_not_tell_its_size_is_read_whole(anchors: Anchors) -> None:
    expected = Path("/proc/cpuinfo").read_bytes()
    chunk = files.read(anchors, grant("/proc/cpuinfo", anchor="root"), offset=0, length=None, bounds=up_to(1_000_000))
    assert len(chunk.data) == chunk.size >= len(expected) - 100  # clock rates move
    part = files.read(anchors, grant("/proc/cpuinfo", anchor="root"), offset=0, length=10, bounds=up_to(1_000_000))
    assert part == Chunk(data=expected[:10], size=11)  # at least one byte more is there


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


@pytest.mark.parametrize(
    ("kind", "make"), [("a FIFO", make_fifo), ("socket", make_socket), ("a directory", Path.mkdir)]
)
def test_only_regular_files_are_read(
    workdir: Path, anchors: Anchors, monkeypatch: pytest.MonkeyPatch, kind: str, make: object
) -> None:
    monkeypatch.chdir(workdir)  # the name of a socket must be short
    assert callable(make)
    make(workdir / "thing")
    with pytest.raises(ToolError, match=kind) as caught:
        files.read(anchors, grant("thing"), offset=0, length=None, bounds=up_to(100))
    assert caught.value.code == 2003


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty", "/dev/ptmx"])
def test_devices_are_not_read(anchors: Anchors, device: str) -> None:
    with pytest.raises(ToolError, match="device") as caught:
        files.read(anchors, grant(device, anchor="root"), offset=0, length=None, bounds=up_to(100))
    assert caught.value.code == 2003


@pytest.mark.parametrize("path", ["link", "to_dir/file", "dangling"])
def test_a_link_that_was_not_decided_on_is_denied(workdir: Path, anchors: Anchors, path: str) -> None:
    (workdir / "dir").mkdir()
    (workdir / "dir/file").touch()
    (workdir / "link").symlink_to("dir/file")
    (workdir / "to_dir").symlink_to("dir")
    (workdir / "dangling").symlink_to("nowhere")
    with pytest.raises(PolicyDenied, match="link") as caught:
        files.read(anchors, grant(path), offset=0, length=None, bounds=up_to(100))
    assert caught.value.code == 1001


@pytest.mark.parametrize("path", ["missing", "missing/file", "file/below", "x" * 300, "/".join(["deep"] * 5000)])
def test_what_is_not_there_fails_with_a_hint(workdir: Path, anchors: Anchors, path: str) -> None:
    (workdir / "file").touch()
    with pytest.raises(ToolError, match="cannot read") as caught:
        files.read(anchors, grant(path), offset=0, length=None, bounds=up_to(100))
    assert caught.value.code == 2003
    assert caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_the_user_may_not_read_fails(workdir: Path, anchors: Anchors) -> None:
    (workdir / "file").touch(mode=0o000)
    with pytest.raises(ToolError, match="permission denied"):
        files.read(anchors, grant("file"), offset=0, length=None, bounds=up_to(100))


def test_nothing_is_left_open(workdir: Path, anchors: Anchors) -> None:
    (workdir / "file").write_bytes(TEN)
    before = open_descriptors()
    files.read(anchors, grant("file"), offset=0, length=None, bounds=up_to(100))
    for path in ("", "missing"):
        with pytest.raises(CapsuleError):
            files.read(anchors, grant(path), offset=0, length=None, bounds=up_to(100))
    assert open_descriptors() == before
