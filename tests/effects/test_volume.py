from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from capsule.effects.volume import folds_case, is_procfs


def asked(directory: Path) -> bool:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return folds_case(handle)
    finally:
        os.close(handle)


def folds_here(directory: Path) -> bool:
    (directory / "Probe").touch()
    folds = (directory / "pROBE").exists()
    (directory / "Probe").unlink()
    return folds


@pytest.mark.parametrize("entries", [[], ["Notes"], ["1", "2", "Notes"], ["é", "Ä"], ["1", "2"]])
def test_it_agrees_with_the_file_system(tmp_path: Path, entries: list[str]) -> None:
    expected = folds_here(tmp_path)
    for name in entries:
        (tmp_path / name).touch()
    assert asked(tmp_path) is expected


def test_two_names_of_one_file_are_taken_for_folding(tmp_path: Path) -> None:
    (tmp_path / "Notes").touch()
    if not (tmp_path / "nOTES").exists():
        os.link(tmp_path / "Notes", tmp_path / "nOTES")
    assert asked(tmp_path) is True


def test_a_dangling_link_is_a_name_like_others(tmp_path: Path) -> None:
    expected = folds_here(tmp_path)
    (tmp_path / "Link").symlink_to("nowhere")
    assert asked(tmp_path) is expected


@pytest.mark.skipif(sys.platform != "linux", reason="procfs is Linux's")
@pytest.mark.parametrize(("path", "procfs"), [("/proc", True), ("/proc/sys", True), ("/", False), ("/dev", False)])
def test_procfs_is_known(path: str, *, procfs: bool) -> None:
    handle = os.open(path, os.O_RDONLY)
    assert is_procfs(handle) is procfs
    os.close(handle)
