from __future__ import annotations

from pathlib import Path

from capsule.calls import Clock
from capsule.effects import SystemClock


def test_it_tells_the_time_of_this_machine(tmp_path: Path) -> None:
    clock: Clock = SystemClock()
    before = clock.now_ms()
    (tmp_path / "file").touch()
    written = (tmp_path / "file").stat().st_mtime_ns // 1_000_000
    assert before - 50 <= written <= clock.now_ms() + 50  # a file system's clock ticks more coarsely


def test_seconds_never_go_back() -> None:
    clock = SystemClock()
    seen = [clock.monotonic() for _ in range(1000)]
    assert seen == sorted(seen)


def test_chance_does_not_repeat() -> None:
    clock = SystemClock()
    drawn = {clock.random_bytes(8) for _ in range(1000)}
    assert len(drawn) == 1000
    assert {len(one) for one in drawn} == {8}
