"""The benchmarks run; what they measure is read in their table, not tested."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEADINGS = ["row", "measured", "goal", "met", "how"]


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("name", ["canonical", "decision", "verify"])
def test_a_benchmark_prints_its_rows(name: str) -> None:
    ran = bench("--touch", name)
    assert ran.returncode == 0, ran.stderr
    _, _, headings, rule, *rows = ran.stdout.splitlines()
    assert headings.split() == HEADINGS
    assert set(rule) == {"─", " "}
    starts = [headings.index(heading) for heading in HEADINGS]
    for row in rows:
        cells = [row[begin:end].strip() for begin, end in zip(starts, [*starts[1:], None], strict=True)]
        assert all(cells), row
        assert re.match(r"[\d.,]+ ", cells[1]), row
        assert cells[2][0] in "≤≥", row
        assert cells[3] in ("yes", "NO"), row
    assert rows


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    ran = bench("speed")
    assert ran.returncode == 2
    assert "no benchmark 'speed'" in ran.stderr
    assert "startup" in ran.stderr
