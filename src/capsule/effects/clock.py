"""The real clock: the one place in the product where time and chance come from."""

from __future__ import annotations

import os
import time


class SystemClock:
    """Implements `calls.Clock` on this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)
