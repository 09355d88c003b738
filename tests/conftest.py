"""What every test gets, a home of its own and the same examples on every run; and a workdir for those that ask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from granted import WAYS, way_name
from hypothesis import settings

from capsule.effects import Anchors, Beneath

settings.register_profile("default", derandomize=True, database=None, deadline=None, max_examples=100)
settings.register_profile("nightly", deadline=None, max_examples=20_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(autouse=True)
def isolated_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A test, and any process it starts, sees no settings but its own and writes nothing to the user's home."""
    for name in list(os.environ):
        if name.startswith(("CAPSULE_", "XDG_")):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CAPSULE_HOME", str(home / ".capsule"))
    return home


@pytest.fixture(params=WAYS, ids=way_name)
def beneath(request: pytest.FixtureRequest) -> Beneath:
    way: Beneath = request.param
    return way


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    directory = tmp_path.resolve() / "ws"
    directory.mkdir()
    return directory


@pytest.fixture
def anchors(workdir: Path, beneath: Beneath) -> Iterator[Anchors]:
    with Anchors.open(workdir, beneath=beneath) as opened:
        yield opened
