from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from granted import open_descriptors

from capsule.effects import Beneath, ComponentWalk, Openat2, has_openat2
from capsule.effects.beneath import DIRECTORY, best
from capsule.effects.reading import FILE

READ = os.O_RDONLY | os.O_NONBLOCK


@pytest.fixture
def root(workdir: Path) -> Iterator[int]:
    (workdir / "a/b").mkdir(parents=True)
    (workdir / "a/b/file").write_bytes(b"inside")
    (workdir / "a/secret").write_bytes(b"denied")
    outside = workdir.parent / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"outside")
    links = {
        "to_file": "a/b/file",
        "to_denied": "a/secret",
        "to_dir": "a/b",
        "to_itself": ".",
        "out": "../outside",
        "out_file": "../outside/file",
        "absolute": str(outside),
        "chain": "out",
        "loop": "loop",
        "dangling": "nowhere",
        "magic": "/proc/self/cwd",
        "a/up": "..",
    }
    for name, target in links.items():
        (workdir / name).symlink_to(target)
    handle = os.open(workdir, DIRECTORY)
    yield handle
    os.close(handle)


def content(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def test_exactly_the_path_is_opened(beneath: Beneath, root: int) -> None:
    assert content(beneath.open(root, ("a", "b", "file"), READ)) == b"inside"


def test_no_components_is_the_directory_itself(beneath: Beneath, root: int) -> None:
    handle = beneath.open(root, (), DIRECTORY)
    assert os.path.sameopenfile(handle, root)
    os.close(handle)


@pytest.mark.parametrize("flags", [READ, DIRECTORY, getattr(os, "O_PATH", READ), os.O_WRONLY])
@pytest.mark.parametrize(
    "path",
    [
        "to_file", "to_denied", "to_dir", "to_dir/file", "to_itself/a/b/file", "out", "out/file", "out_file",
        "absolute/file", "chain/file", "loop", "dangling", "magic", "a/up", "a/up/a/b/file",
    ],
)  # fmt: skip
def test_a_link_anywhere_on_the_way_is_refused(beneath: Beneath, root: int, path: str, flags: int) -> None:
    with pytest.raises(OSError, match="symbolic links") as caught:
        beneath.open(root, tuple(path.split("/")), flags)
    assert caught.value.errno == errno.ELOOP


@pytest.mark.parametrize(
    "components", [("..",), ("..", "outside", "file"), ("a", ".."), (".",), ("",), ("a", "", "b"), ("a/b", "file"),
                   ("a", "b/file"), ("/",), ("a\0",), ("\0",)],
)  # fmt: skip
def test_what_is_not_a_plain_name_is_refused(beneath: Beneath, root: int, components: tuple[str, ...]) -> None:
    with pytest.raises(OSError, match="plain names") as caught:
        beneath.open(root, components, READ)
    assert caught.value.errno == errno.EINVAL


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("missing", errno.ENOENT),
        ("a/missing/file", errno.ENOENT),
        ("a/b/file/x", errno.ENOTDIR),
        ("x" * 256, errno.ENAMETOOLONG),
    ],
)
def test_other_errors_keep_their_meaning(beneath: Beneath, root: int, path: str, code: int) -> None:
    with pytest.raises(OSError, match=r".") as caught:
        beneath.open(root, tuple(path.split("/")), READ)
    assert caught.value.errno == code


def test_a_path_longer_than_any_is_refused_at_once(beneath: Beneath, root: int) -> None:
    with pytest.raises(OSError, match=r".") as caught:
        beneath.open(root, ("deep",) * 200_000, READ)
    assert caught.value.errno in (errno.ENAMETOOLONG, errno.ENOENT)


def test_nothing_is_left_open(beneath: Beneath, root: int) -> None:
    before = open_descriptors()
    os.close(beneath.open(root, ("a", "b", "file"), READ))
    for path in ("out/file", "a/b/missing", "a/up", "to_file"):
        with pytest.raises(OSError, match=r"."):
            beneath.open(root, tuple(path.split("/")), getattr(os, "O_PATH", READ))
    assert open_descriptors() == before


def test_a_program_that_is_started_inherits_nothing(beneath: Beneath, root: int) -> None:
    descriptor = beneath.open(root, ("a", "b", "file"), READ)
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


def test_a_fifo_does_not_hold_it_up(beneath: Beneath, workdir: Path, root: int) -> None:
    os.mkfifo(workdir / "fifo")
    os.close(beneath.open(root, ("fifo",), FILE))


@pytest.mark.skipif(not has_openat2(), reason="this kernel has no openat2")
@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("a/b/file", True),
        ("a", True),
        ("", True),
        ("a/b/missing/too", True),
        ("a/b/file/x", True),
        ("to_file", False),
        ("to_dir/file", False),
        ("to_dir/missing", False),
        ("dangling", False),
        ("x" * 300, False),
    ],
)
def test_is_plain_means_no_link_on_the_way(root: int, path: str, *, plain: bool) -> None:
    components = tuple(filter(None, path.split("/")))
    assert Openat2().is_plain(root, components) is plain
    assert ComponentWalk().is_plain(root, components) is False  # it always says: look closer


@pytest.mark.skipif(not has_openat2(), reason="this kernel has no openat2")
def test_a_mount_point_is_looked_at_more_closely() -> None:
    handle = os.open("/", DIRECTORY)
    assert Openat2().is_plain(handle, ("proc",)) is False
    os.close(handle)


def test_the_best_way_is_taken() -> None:
    assert type(best()) is (Openat2 if has_openat2() else ComponentWalk)
