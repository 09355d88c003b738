from __future__ import annotations

import os
from pathlib import Path

import pytest

from capsule.effects import Anchors
from capsule.effects.case import CaseFolding


@pytest.fixture
def folding(workdir: Path) -> Path:
    """A directory that looks as if it folded, on any volume: two spellings of a name lead to one file."""
    directory = workdir / "folding"
    (directory / "below").mkdir(parents=True)
    (directory / "below/file").touch()
    (directory / "below").rename(workdir / "kept")
    (directory / "Name").touch()
    if not (directory / "nAME").exists():
        os.link(directory / "Name", directory / "nAME")
    (workdir / "kept").rename(directory / "1")  # a name without letters is never tried
    return directory


@pytest.mark.parametrize("path", ["Name", "missing", "missing/deeper/still", "1/file", "1/missing"])
def test_what_lies_beneath_a_folding_directory_is_folded(anchors: Anchors, folding: Path, path: str) -> None:
    assert CaseFolding(anchors).on_the_way((*anchors.path, folding.name, *path.split("/"))) is True


@pytest.mark.parametrize("path", ["file", "missing/file", "plain/file", "folding"])
def test_other_paths_are_as_the_volume_is(anchors: Anchors, workdir: Path, folding: Path, path: str) -> None:
    (workdir / "plain").mkdir()
    expected = (workdir / folding.name.upper()).exists()
    assert CaseFolding(anchors).on_the_way((*anchors.path, *path.split("/"))) is expected


def test_a_directory_that_is_made_later_is_looked_at_then(anchors: Anchors, workdir: Path) -> None:
    case = CaseFolding(anchors)
    path = (*anchors.path, "later", "file")
    expected = case.on_the_way(path)
    (workdir / "later").mkdir()
    (workdir / "later/Name").touch()
    assert case.on_the_way(path) is expected


def test_the_root_has_nothing_above_it(anchors: Anchors) -> None:
    assert CaseFolding(anchors).on_the_way(()) in (True, False)
