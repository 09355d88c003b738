"""Ctrl-C, a polite kill and a lost terminal all end a command the same way; a run is recorded as interrupted."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Remembers that one came: what a signal raises inside a callback of the interpreter, as in an import, is lost."""

    def __init__(self) -> None:
        self._came = False
        self._raises = False

    @contextmanager
    def caught(self) -> Iterator[None]:
        """At first they are only remembered; `let_through` comes when what the command needs is imported."""
        self._came = self._raises = False
        if threading.current_thread() is not threading.main_thread():
            yield  # signals go to the main thread
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        kept = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}  # as with nohup
        for number in kept:
            signal.signal(number, self._interrupt)
        try:
            yield
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)

    def _interrupt(self, _number: int, _frame: object) -> None:
        self._came = True
        if self._raises:
            raise KeyboardInterrupt

    def let_through(self) -> None:
        self._raises = True
        self.check()

    def check(self) -> None:
        if self._came:
            raise KeyboardInterrupt


INTERRUPTS = Interrupts()
"""Signals come to the process, and so there is one memory of them."""


@contextmanager
def woken_by_signals() -> Iterator[list[int]]:
    """What to hand to `select` beside the rest: a signal that comes just before it would else be slept through."""
    if threading.current_thread() is not threading.main_thread():
        yield []  # signals go to the main thread
        return
    reading, writing = os.pipe()
    try:
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        before = signal.set_wakeup_fd(writing)
        try:
            yield [reading]
        finally:
            signal.set_wakeup_fd(before)
    finally:
        os.close(reading)
        os.close(writing)
