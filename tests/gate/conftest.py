from __future__ import annotations

from pathlib import Path

import pytest
from gated import db_of, grown


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    return grown(tmp_path.resolve() / "ws", docs__a="text of a", docs__b="text of b", other__c="text of c")


@pytest.fixture
def db(workdir: Path) -> Path:
    return db_of(workdir)
