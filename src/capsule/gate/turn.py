"""One call at a time is decided, any number may be in flight, and who ends the run waits for those."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from weakref import WeakSet


class Turn:
    """`with turn.flight():` is a whole call; `with turn:` in it is the part that only one call at a time may do."""

    def __init__(self) -> None:
        self.begin()
        _turns.add(self)

    def begin(self) -> None:
        """With nobody's call in flight."""
        self._lock = threading.RLock()
        self._landed = threading.Condition(self._lock)
        self._flying: Counter[int] = Counter()  # by thread

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    @contextmanager
    def flight(self) -> Iterator[None]:
        """A call, until its outcome is recorded."""
        thread = threading.get_ident()
        with self._lock:
            self._flying[thread] += 1
        try:
            yield
        finally:
            with self._lock:
                self._flying[thread] -= 1
                if not self._flying[thread]:
                    del self._flying[thread]
                self._landed.notify_all()

    def wait_for_others(self) -> None:
        """Until no other thread has a call in flight; one of this thread was interrupted and goes nowhere."""
        own = threading.get_ident()
        self._landed.wait_for(lambda: not any(count for thread, count in self._flying.items() if thread != own))


_turns: WeakSet[Turn] = WeakSet()


def _after_fork() -> None:
    """In a child none of the parent's other threads goes on, and what they held nobody will ever let go of."""
    for turn in list(_turns):
        turn.begin()


os.register_at_fork(after_in_child=_after_fork)
