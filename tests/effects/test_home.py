"""Capsule's home: the key that is made once, and whose it is."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from capsule.effects import SystemClock
from capsule.effects.home import machine_key
from capsule.errors import StorageError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_the_key_is_made_once(home: Path) -> None:
    key = machine_key(home, SystemClock())
    assert len(key) == 32
    assert machine_key(home, SystemClock()) == key
    assert [path.name for path in home.iterdir()] == ["key"]


def test_what_others_could_read_is_closed_again(home: Path) -> None:
    machine_key(home, SystemClock())
    home.chmod(0o755)
    (home / "key").chmod(0o644)
    machine_key(home, SystemClock())
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "key").stat().st_mode) == 0o600


@pytest.mark.parametrize("data", [b"", b"short", bytes(33)])
def test_a_key_of_another_length_is_none(home: Path, data: bytes) -> None:
    machine_key(home, SystemClock())
    (home / "key").write_bytes(data)
    with pytest.raises(StorageError, match="bytes instead of 32") as refused:
        machine_key(home, SystemClock())
    assert refused.value.code == 5003
    assert (home / "key").read_bytes() == data
