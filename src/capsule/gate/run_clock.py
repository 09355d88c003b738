"""A run's clock: it stands still while a person is asked, so that thinking time uses up no limit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from capsule.calls import Clock


class RunClock:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._stood_still = 0.0
        self._asking = 0

    def wall_ms(self) -> int:
        """Milliseconds since 1970, for the record."""
        return self._clock.now_ms()

    def elapsed_ms(self) -> int:
        """How long the run has run, without the time in which a person was asked."""
        return int((self._clock.monotonic() - self._began - self._stood_still) * 1000)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """An approver may make calls that are asked about in turn: time is taken off once."""
        began = self._clock.monotonic()
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self._stood_still += self._clock.monotonic() - began
