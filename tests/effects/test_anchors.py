from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from granted import grant, names, open_descriptors

from capsule.effects import Anchors, Beneath
from capsule.errors import PlanError


def test_the_workdir_is_held_when_it_is_renamed_away(workdir: Path, anchors: Anchors) -> None:
    (workdir / "file").write_bytes(b"ours")
    workdir.rename(workdir.parent / "moved")
    workdir.mkdir()
    (workdir / "file").write_bytes(b"planted")
    descriptor = anchors.open_granted(grant("file"), os.O_RDONLY)
    assert os.read(descriptor, 100) == b"ours"
    os.close(descriptor)


def test_a_link_to_the_workdir_is_resolved_once(workdir: Path, beneath: Beneath) -> None:
    link = workdir.parent / "link"
    link.symlink_to(workdir)
    with Anchors.open(link, beneath=beneath) as anchors:
        assert anchors.path == names(workdir)


def test_both_anchors_reach_the_same_file(workdir: Path, anchors: Anchors) -> None:
    (workdir / "file").touch()
    one = anchors.open_granted(grant("file"), os.O_RDONLY)
    other = anchors.open_granted(grant(f"{workdir}/file", anchor="root"), os.O_RDONLY)
    assert os.path.sameopenfile(one, other)
    assert anchors.absolute(grant("file")) == anchors.absolute(grant(f"{workdir}/file", anchor="root"))
    os.close(one)
    os.close(other)


@pytest.mark.parametrize("path", ["", "file", "a/b"])
def test_a_path_below_the_workdir_hangs_from_its_handle(anchors: Anchors, path: str) -> None:
    below = names(path)
    assert anchors.below((*anchors.path, *below)) == (anchors.workdir, below)


def test_every_other_path_hangs_from_the_root(anchors: Anchors) -> None:
    sibling = (*anchors.path[:-1], anchors.path[-1] + "-evil", "file")
    for path in ((), ("etc", "hosts"), anchors.path[:-1], sibling):
        assert anchors.below(path) == (anchors.root, path)


def test_nothing_is_leaked(workdir: Path, beneath: Beneath) -> None:
    before = open_descriptors()
    with Anchors.open(workdir, beneath=beneath) as anchors:
        assert len(open_descriptors()) == len(before) + 2
    anchors.close()  # once more does no harm
    with pytest.raises(PlanError):
        Anchors.open(workdir / "missing", beneath=beneath)
    assert open_descriptors() == before


@pytest.mark.parametrize("made", ["missing", "file", "dangling"])
def test_a_workdir_that_is_no_directory_is_refused(workdir: Path, beneath: Beneath, made: str) -> None:
    (workdir / "file").touch()
    (workdir / "dangling").symlink_to("nowhere")
    with pytest.raises(PlanError, match="workdir") as caught:
        Anchors.open(workdir / made, beneath=beneath)
    assert caught.value.code == 3001
    assert caught.value.hint


@pytest.mark.skipif(sys.platform != "linux", reason="names on macOS are always text, and it has no procfs")
@pytest.mark.parametrize("place", ["/proc/self", "/proc", "\udcff"])
def test_a_workdir_that_cannot_be_held_to_is_refused(workdir: Path, beneath: Beneath, place: str) -> None:
    path = workdir / place
    path.mkdir(exist_ok=True)
    with pytest.raises(PlanError):
        Anchors.open(path, beneath=beneath)
