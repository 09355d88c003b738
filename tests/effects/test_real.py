from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from granted import WAYS, names
from hypothesis import given
from hypothesis import strategies as st

from capsule.calls import Access, ConcretePath
from capsule.effects import Anchors, Beneath, OnDisk, places_of
from capsule.effects.real import MAX_LINKS, NoRealPath, Resolver


@pytest.fixture
def resolver(anchors: Anchors) -> Resolver:
    return Resolver(anchors)


def test_a_chain_of_links_is_followed_as_far_as_the_kernel_does(
    workdir: Path, anchors: Anchors, resolver: Resolver
) -> None:
    (workdir / "link0").touch()
    for number in range(1, MAX_LINKS + 2):
        (workdir / f"link{number}").symlink_to(f"link{number - 1}")
    assert resolver.real(anchors.path, [f"link{MAX_LINKS}"]) == (*anchors.path, "link0")
    with pytest.raises(NoRealPath, match="links"):
        resolver.real(anchors.path, [f"link{MAX_LINKS + 1}"])


def test_links_that_spell_endless_paths_are_given_up_at_once(
    workdir: Path, anchors: Anchors, resolver: Resolver
) -> None:
    (workdir / "d").mkdir()
    for number in range(MAX_LINKS):
        (workdir / f"link{number}").symlink_to(f"{'d/../' * 700}link{number + 1}")
    begun = time.perf_counter()
    with pytest.raises(NoRealPath, match="too long"):
        resolver.real(anchors.path, ["link0"])
    assert time.perf_counter() - begun < 2


def test_a_real_path_that_no_call_could_name_is_no_real_path(
    workdir: Path, anchors: Anchors, resolver: Resolver
) -> None:
    (workdir / "link").symlink_to("/".join(["x" * 200] * 20))
    with pytest.raises(NoRealPath, match="4096"):
        resolver.real(anchors.path, ["link", "y" * 200])


@pytest.mark.skipif(sys.platform != "linux", reason="names on macOS are always text")
def test_a_target_that_is_no_text_is_no_real_path(workdir: Path, anchors: Anchors, resolver: Resolver) -> None:
    (workdir / "link").symlink_to("\udcff")
    with pytest.raises(NoRealPath, match="UTF-8"):
        resolver.real(anchors.path, ["link"])


def test_status_is_of_the_link_itself(workdir: Path, anchors: Anchors, resolver: Resolver) -> None:
    (workdir / "link").symlink_to("nowhere")
    status = resolver.status((*anchors.path, "link"))
    assert status is not None
    assert status.st_ino == (workdir / "link").lstat().st_ino
    assert resolver.status((*anchors.path, "nowhere")) is None


# Any path over any tree leads where the kernel says.

NAMES = st.sampled_from(["a", "b", "c", "..", ".", ""])
PATH = st.lists(NAMES, min_size=1, max_size=6).map("/".join).filter(bool)
TREE = st.dictionaries(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join),
    st.one_of(st.just("directory"), st.just("file"), PATH.map("link {}".format), PATH.map("absolute {}".format)),
    max_size=10,
)


def grow(workdir: Path, tree: dict[str, str]) -> None:
    for name, kind in sorted(tree.items()):
        place = workdir / name
        if place.is_symlink() or place.exists() or not place.parent.is_dir() or place.parent.is_symlink():
            continue
        what, _, target = kind.partition(" ")
        if what == "directory":
            place.mkdir()
        elif what == "file":
            place.touch()
        else:
            place.symlink_to(f"{workdir}/{target}" if what == "absolute" else target)


def kernels_answer(path: str) -> str | None:
    """Where an open of this path arrives; None where it fails."""
    try:
        handle = os.open(path, os.O_PATH)
    except OSError:
        return None
    try:
        return str(Path(f"/proc/self/fd/{handle}").readlink())
    finally:
        os.close(handle)


def resolved(workdir: Path, text: str, way: Beneath) -> ConcretePath:
    places = places_of(
        workdir=workdir, home=workdir / "a", capsule_home=workdir.parent / ".capsule", db=workdir.parent / "runs.db"
    )
    with Anchors.open(workdir, beneath=way) as anchors:
        return OnDisk(places, anchors).path(text, argument="path", access=Access.READ)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel is asked by O_PATH")
@given(tree=TREE, path=PATH, absolute=st.booleans())
def test_it_leads_where_the_kernel_goes(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, str], path: str, *, absolute: bool
) -> None:
    workdir = tmp_path_factory.mktemp("ws").resolve()
    grow(workdir, tree)
    text = f"{workdir}/{path}" if absolute else path.lstrip("/") or "."
    answers = {(found.real, found.problem) for found in (resolved(workdir, text, way) for way in WAYS)}
    assert len(answers) == 1
    real, problem = answers.pop()
    joined = text if absolute else f"{workdir}/{text}"
    expected = kernels_answer(joined.rstrip("/"))
    if expected is not None:
        assert (problem, real) == (None, names(expected))
    elif problem is None:
        assert real == names(os.path.realpath(joined))
