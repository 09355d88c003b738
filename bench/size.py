"""What a step leaves in the journal."""

from __future__ import annotations

from collections.abc import Iterator

from bench.place import Place
from bench.rows import Row
from bench.step import policy_text
from bench.timing import Effort
from capsule.calls import Source, ToolCall
from capsule.gate import Gate, assemble

_FEW, _MANY = 100, 600  # the difference is what five hundred steps take, without what a run takes once


def stored_bytes(effort: Effort, place: Place) -> Iterator[Row]:
    """Chain, grant and decision included; a call whose answer is 20 bytes."""
    (place.workdir / "a.md").write_text("x" * 20, encoding="utf-8")
    few = effort.count(_FEW)
    many = few + effort.count(_MANY - _FEW)
    size = (_size_after(place, many) - _size_after(place, few)) / (many - few)
    yield Row(what="journal for a small step", measured=size, goal=700, unit="bytes", how=f"{few} and {many} steps")


def _size_after(place: Place, steps: int) -> int:
    call = ToolCall(tool="fs.read", args={"path": "a.md"}, source=Source.PLAN)
    db = f"{steps}.db"
    with Gate(assemble(place.opening(policy_text("secrets"), db=db))) as gate:
        for _ in range(steps):
            gate.call(call, hold_read=True)
    return sum((place.root / name).stat().st_size for name in (db, f"{db}-wal") if (place.root / name).exists())
