from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from granted import everything, grant, names, no_hurry, open_descriptors
from hypothesis import given
from hypothesis import strategies as st

from capsule.calls import Components, Entry, Listing
from capsule.effects import Anchors, Visible, files, listing
from capsule.errors import CapsuleError, PolicyDenied, ToolError


def make(directory: Path, paths: Iterable[str]) -> None:
    """`a/` is a directory, `a -> b` a link, anything else a file that holds its own name."""
    for path in paths:
        name, arrow, target = path.partition(" -> ")
        place = directory / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if arrow:
            place.symlink_to(target)
        elif name.endswith("/"):
            place.mkdir(exist_ok=True)
        else:
            place.write_text(name)


def listed(
    anchors: Anchors,
    path: str = "",
    *,
    pattern: str = "**",
    offset: int = 0,
    limit: int = 10_000,
    visible: Visible = everything,
) -> Listing:
    return files.list(
        anchors, grant(path), pattern=pattern, offset=offset, limit=limit, visible=visible, in_time=no_hurry
    )


def paths(listing: Listing) -> list[str]:
    return [entry.path for entry in listing.entries]


def test_kinds_and_sizes(workdir: Path, anchors: Anchors) -> None:
    make(workdir, ["dir/file", "to_file -> dir/file", "to_dir -> dir", "dangling -> nowhere"])
    os.mkfifo(workdir / "fifo")
    assert listed(anchors) == Listing(
        entries=(
            Entry(path="dangling", type="symlink", size=None),
            Entry(path="dir", type="directory", size=None),
            Entry(path="dir/file", type="file", size=8),
            Entry(path="fifo", type="other", size=None),
            Entry(path="to_dir", type="symlink", size=None),
            Entry(path="to_file", type="symlink", size=None),
        ),
        truncated=False,
        skipped_names=0,
    )


TREE = ["a/b/c.md", "a/b/d.txt", "a/c.md", "a-b", "a.md", "b/.git/config", "b/.hidden", "b/c d/é.md", "z/"]
ALL = [
    "a", "a-b", "a.md", "a/b", "a/b/c.md", "a/b/d.txt", "a/c.md",
    "b", "b/.git", "b/.git/config", "b/.hidden", "b/c d", "b/c d/é.md", "z",
]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("**", ALL),
        ("*", ["a", "a-b", "a.md", "b", "z"]),
        ("*/", ["a", "b", "z"]),
        ("*.md", ["a.md"]),
        ("**/*.md", ["a.md", "a/b/c.md", "a/c.md", "b/c d/é.md"]),
        ("a/*", ["a/b", "a/c.md"]),
        ("a/**", ["a/b", "a/b/c.md", "a/b/d.txt", "a/c.md"]),
        ("./a/b/*", ["a/b/c.md", "a/b/d.txt"]),
        ("a/{b/c,c}.md", ["a/b/c.md", "a/c.md"]),
        ("{a,b}/**/*.md", ["a/b/c.md", "a/c.md", "b/c d/é.md"]),
        ("?/[bc]*", ["a/b", "a/c.md", "b/c d"]),
        ("b/c\\ d/*", ["b/c d/é.md"]),
        ("*/*/c.md", ["a/b/c.md"]),
        ("**/b/*", ["a/b/c.md", "a/b/d.txt", "b/.git", "b/.hidden", "b/c d"]),
        ("nothing/**", []),
        (".", []),
    ],
)
def test_patterns(workdir: Path, anchors: Anchors, pattern: str, expected: list[str]) -> None:
    make(workdir, TREE)
    found = listed(anchors, pattern=pattern)
    assert paths(found) == expected
    assert not found.truncated


@pytest.mark.parametrize(
    ("pattern", "looked_at"),
    [
        ("nothing", 5),
        ("*", 5),
        ("**", 14),
        ("a/*", 7),
        ("./a//b/*", 9),
        ("a/x/*", 7),
        ("x/b/*", 5),
        ("*/*", 10),
        ("*/b/*", 12),
        ("b/*/*", 10),
        ("a/**", 9),
        ("?/{b,c}/*", 14),
        ("b/?*", 8),
    ],
)
def test_directories_that_no_match_lies_in_are_not_looked_into(
    workdir: Path, anchors: Anchors, pattern: str, looked_at: int
) -> None:
    make(workdir, TREE)
    looks = 0

    def looking() -> None:
        nonlocal looks
        looks += 1

    files.list(anchors, grant(""), pattern=pattern, offset=0, limit=100, visible=everything, in_time=looking)
    assert looks == looked_at


def test_the_longest_pattern_is_read_at_once(workdir: Path, anchors: Anchors) -> None:
    make(workdir, TREE)
    began = time.process_time()
    assert paths(listed(anchors, pattern="*/" * 2047 + "x")) == []
    assert time.process_time() - began < 5


@pytest.mark.parametrize("pattern", ["/etc/*", "..", "../**", "[", "{a", "\\"])
def test_a_pattern_that_cannot_be_read_is_not_valid(anchors: Anchors, pattern: str) -> None:
    with pytest.raises(ToolError, match="pattern") as caught:
        listed(anchors, pattern=pattern)
    assert caught.value.code == 2002


def test_a_directory_below_and_by_the_root(workdir: Path, anchors: Anchors) -> None:
    make(workdir, TREE)
    assert paths(listed(anchors, "a/b")) == ["c.md", "d.txt"]
    by_root = files.list(
        anchors,
        grant(f"{workdir}/a", anchor="root"),
        pattern="*",
        offset=0,
        limit=10,
        visible=everything,
        in_time=no_hurry,
    )
    assert paths(by_root) == ["b", "c.md"]


@pytest.mark.parametrize("limit", [1, 2, 5, 14, 100])
def test_pages_put_together_are_the_whole(workdir: Path, anchors: Anchors, limit: int) -> None:
    make(workdir, TREE)
    found: list[str] = []
    more = True
    while more:
        page = listed(anchors, offset=len(found), limit=limit)
        found += paths(page)
        more = page.truncated
        assert len(page.entries) <= limit
    assert found == ALL


def test_past_the_end_there_is_nothing(workdir: Path, anchors: Anchors) -> None:
    make(workdir, TREE)
    assert listed(anchors, offset=1000) == Listing(entries=(), truncated=False, skipped_names=0)


def test_only_what_is_visible_is_shown_and_each_path_is_asked_once(workdir: Path, anchors: Anchors) -> None:
    make(workdir, TREE)
    asked: list[Components] = []

    def only_markdown(path: Components) -> bool:
        asked.append(path)
        return path[-1].endswith(".md")

    assert paths(listed(anchors, "a", visible=only_markdown)) == ["b/c.md", "c.md"]
    assert sorted(asked) == [(*names(workdir), "a", *names(path)) for path in ("b", "b/c.md", "b/d.txt", "c.md")]


def test_links_are_not_gone_through(workdir: Path, anchors: Anchors) -> None:
    make(workdir.parent, ["outside/file"])
    make(workdir, ["out -> ../outside", "up -> ..", "self -> .", "magic -> /proc/self/root", "dir/file", "in -> dir"])
    assert paths(listed(anchors)) == ["dir", "dir/file", "in", "magic", "out", "self", "up"]


@pytest.mark.parametrize("path", ["link", "link/below", "magic"])
def test_a_link_that_was_not_decided_on_is_denied(workdir: Path, anchors: Anchors, path: str) -> None:
    make(workdir, ["dir/below/file", "link -> dir", "magic -> /proc/self/cwd"])
    with pytest.raises(PolicyDenied):
        listed(anchors, path)


@pytest.mark.parametrize("path", ["file", "fifo", "missing", "file/below"])
def test_only_directories_are_listed(workdir: Path, anchors: Anchors, path: str) -> None:
    make(workdir, ["file"])
    os.mkfifo(workdir / "fifo")
    with pytest.raises(ToolError) as caught:
        listed(anchors, path)
    assert caught.value.code == 2003
    assert caught.value.hint


@pytest.mark.skipif(sys.platform != "linux", reason="names on macOS are always text")
def test_names_that_are_no_text_are_counted(workdir: Path, anchors: Anchors) -> None:
    (workdir / "\udcff\udcfe/below").mkdir(parents=True)
    make(workdir, ["file", "dir/é"])
    assert listed(anchors) == Listing(
        entries=(
            Entry(path="dir", type="directory", size=None),
            Entry(path="dir/é", type="file", size=6),
            Entry(path="file", type="file", size=4),
        ),
        truncated=False,
        skipped_names=1,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="names on macOS are always text")
def test_of_a_directory_that_is_not_shown_nothing_is_counted(workdir: Path, anchors: Anchors) -> None:
    make(workdir, ["secrets/file", "docs/file"])
    for name in ("secrets", "docs"):
        (workdir / name / "\udcff").mkdir()
    assert listed(anchors, visible=lambda path: "secrets" not in path).skipped_names == 1


@pytest.mark.parametrize("replaced", ["removed", "link", "file"])
def test_a_directory_that_vanishes_meanwhile_looks_empty(workdir: Path, anchors: Anchors, replaced: str) -> None:
    make(workdir, ["a", "b/file", "c"])
    make(workdir.parent, ["outside/secret"])

    def vanishing(path: Components) -> bool:
        if path[-1] == "b":
            (workdir / "b/file").unlink()
            (workdir / "b").rmdir()
            if replaced == "link":
                (workdir / "b").symlink_to("../outside")
            if replaced == "file":
                (workdir / "b").touch()
        return True

    assert paths(listed(anchors, visible=vanishing)) == ["a", "b", "c"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_may_not_be_read_looks_empty(workdir: Path, anchors: Anchors) -> None:
    make(workdir, ["a/file", "b"])
    (workdir / "a").chmod(0o000)
    assert paths(listed(anchors)) == ["a", "b"]
    (workdir / "a").chmod(0o700)


def test_a_deep_tree_needs_few_descriptors(workdir: Path, anchors: Anchors) -> None:
    before = open_descriptors()
    deep = "/".join(["d"] * 500)
    make(workdir, [f"{deep}/"])
    most = 0

    def counting(_path: Components) -> bool:
        nonlocal most
        most = max(most, len(open_descriptors()))
        return True

    assert len(listed(anchors, visible=counting).entries) == 500
    assert most <= len(before) + 4
    assert open_descriptors() == before


def test_a_tree_deeper_than_any_path_is_cut(workdir: Path, anchors: Anchors) -> None:
    handle = os.open(workdir, os.O_RDONLY)
    for _ in range(30):  # 30 × 201 bytes
        os.mkdir("d" * 200, dir_fd=handle)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    found = listed(anchors)
    assert len(found.entries) in (21, 30)  # openat2 takes paths as far as the kernel does; a walk sees all
    assert found.truncated is (len(found.entries) == 21)


def test_a_huge_directory_is_cut(workdir: Path) -> None:
    (workdir / "many").mkdir()
    for number in range(listing.MAX_SCANNED):
        os.symlink("x", workdir / f"many/{number}")  # noqa: PTH211 - four times faster
    with Anchors.open(workdir) as anchors:
        found = listed(anchors, pattern="nothing*")
        assert found == Listing(entries=(), truncated=False, skipped_names=0)  # the pattern never looks in there
        found = listed(anchors, pattern="*/nothing*")
        assert found == Listing(entries=(), truncated=True, skipped_names=0)


def test_nothing_is_left_open(workdir: Path, anchors: Anchors) -> None:
    make(workdir, TREE)
    before = open_descriptors()
    listed(anchors, limit=3)
    for path, pattern in (("a.md", "**"), ("missing", "**"), ("", "/")):
        with pytest.raises(CapsuleError):
            listed(anchors, path, pattern=pattern)
    assert open_descriptors() == before


NAME = st.text(st.sampled_from("ab-.!é/0"), min_size=1, max_size=4).filter(
    lambda name: not {"", ".", ".."} & set(name.split("/"))
)


@given(tree=st.sets(NAME, max_size=12))
def test_the_order_is_that_of_the_paths_as_text(tmp_path_factory: pytest.TempPathFactory, tree: set[str]) -> None:
    workdir = tmp_path_factory.mktemp("ws")
    for path in sorted(tree):
        (workdir / path).mkdir(parents=True, exist_ok=True)
    with Anchors.open(workdir) as anchors:
        found = paths(listed(anchors))
    assert found == sorted(str(path.relative_to(workdir)) for path in workdir.rglob("*"))
