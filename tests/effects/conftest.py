from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from granted import WAYS, way_name

from capsule.effects import Anchors, Beneath


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
