"""What every test gets: a home of its own, and examples that are the same on every run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("default", derandomize=True, database=None, deadline=None, max_examples=100)
settings.register_profile("ci", settings.get_profile("default"), max_examples=500)
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
