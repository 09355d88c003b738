"""Ask a person at the terminal: one question at a time, No unless they say yes, and nothing typed before it counts."""

from __future__ import annotations

import json
import os
import select
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from capsule.calls import Answer, Approver, Question
from capsule.canon import Json
from capsule.cli.interrupts import woken_by_signals
from capsule.screen import printable

TERMINAL = Path("/dev/tty")
PATIENCE_SECONDS = 10 * 60  # as long as an approval is valid
_LONGEST_SHOWN = 1000  # characters of one argument; the rest is counted

_YES = frozenset({"y", "yes"})


def terminal_approver(*, before: Callable[[], None]) -> Approver:
    """An approver that asks on /dev/tty; `before` makes room on the screen. Without a terminal it says no."""

    def approve(question: Question) -> Answer:
        before()
        try:
            handle = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return Answer(approved=False, by="no terminal", reason="there is no terminal to ask on")
        try:
            return _ask(handle, question)
        except (OSError, termios.error):
            return Answer(approved=False, by="terminal", reason="the terminal is gone")
        finally:
            os.close(handle)

    return approve


def _ask(handle: int, question: Question) -> Answer:
    os.write(handle, _text(question).encode())
    termios.tcflush(handle, termios.TCIFLUSH)  # what was typed before the question is no answer to it
    os.write(handle, b"Allow this call? [y/N] ")
    if not _answered(handle):
        os.write(handle, b"\nNo answer.\n")
        return Answer(approved=False, by="terminal", reason="nobody answered")
    answer = os.read(handle, 100).decode(errors="replace").strip().lower()
    termios.tcflush(handle, termios.TCIFLUSH)  # the rest of a long line is no word to the shell
    return Answer(approved=answer in _YES, by="terminal")


def _answered(handle: int) -> bool:
    """In time. A signal that ends the run raises here, whenever it comes."""
    until = time.monotonic() + PATIENCE_SECONDS
    with woken_by_signals() as signals:
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([handle, *signals], [], [], left)
            if handle in ready:
                return True
            for woken in ready:
                os.read(woken, 100)
    return False


def _text(question: Question) -> str:
    shown = question.shown
    tool, step = printable(question.call.tool), printable(str(shown.get("step")))
    lines = [f"\n{tool} asks to run, at step {step} ({printable(question.decision.reason)})"]
    args = shown.get("args")
    if isinstance(args, Mapping):
        lines += [f"  {printable(name)}: {_cut(value)}" for name, value in args.items()]
    grant = shown.get("grant")
    if isinstance(grant, Mapping):
        lines += [f"  grant {printable(name)}: {_cut(value)}" for name, value in grant.items()]
    return "\n".join(lines) + "\n"


def _cut(value: Json) -> str:
    text = printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({len(text)} characters)"
