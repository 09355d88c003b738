from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from capsule.canon import canonical
from capsule.effects import has_openat2, probe


def test_it_says_what_this_machine_is(tmp_path: Path) -> None:
    found = probe(home=tmp_path)
    names = os.uname()
    assert (found.system, found.kernel, found.architecture) == (names.sysname, names.release, names.machine)
    assert found.openat2 is has_openat2()
    (tmp_path / "Probe").touch()
    assert found.home_folds_case is (tmp_path / "pROBE").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's")
def test_landlock_has_a_version_or_none(tmp_path: Path) -> None:
    lsm = Path("/sys/kernel/security/lsm")
    abi = probe(home=tmp_path).landlock_abi
    assert abi >= 0
    if lsm.exists():
        assert (abi > 0) is ("landlock" in lsm.read_text())


def test_a_home_that_is_not_there_is_not_known(tmp_path: Path) -> None:
    assert probe(home=tmp_path / "missing").home_folds_case is None


def test_it_can_be_recorded(tmp_path: Path) -> None:
    value = probe(home=tmp_path).as_json()
    assert canonical(value)
    assert set(value) == {
        "system", "kernel", "architecture", "openat2", "landlock_abi", "user_namespaces", "bubblewrap",
        "home_folds_case",
    }  # fmt: skip
