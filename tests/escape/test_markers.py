"""A masked value never comes back: not as an argument, and not put together from two halves."""

from __future__ import annotations

from pathlib import Path

import pytest
from gated import code, gate_of, grown, write

POLICY = 'rules: [{action: allow, tool: fs.write, constraints: {path: {pattern: "./out/*"}}}]'
MARKER = "⟦redacted:github_token:1⟧"


@pytest.mark.parametrize("cut", [1, 3, 10, len(MARKER) - 1])
def test_e2_an_append_never_completes_a_marker(tmp_path: Path, cut: int) -> None:
    workdir = grown(tmp_path.resolve() / "ws", out__log=f"before {MARKER[:cut]}")
    with gate_of(workdir, POLICY) as gate:
        assert code(gate.call(write("out/log", f"{MARKER[cut:]} after", mode="append"))) == 1009
        assert (workdir / "out/log").read_text() == f"before {MARKER[:cut]}"
        assert gate.call(write("out/log", " and more", mode="append")).ok
