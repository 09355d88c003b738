"""Ask a person at the terminal: one question at a time, No unless they say yes, and nothing typed before it counts."""

from __future__ import annotations

import json
import os
import select
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from unicodedata import east_asian_width

from capsule.calls import Answer, Approver, Question
from capsule.canon import Json
from capsule.cli.interrupts import woken_by_signals
from capsule.screen import printable

TERMINAL = Path("/dev/tty")
PATIENCE_SECONDS = 10 * 60  # as long as an approval is valid
_LONGEST_SHOWN = 1000  # characters of one argument; the rest is counted

_CUT = "…"
_MORE = "  │ "
_NARROWEST = 20  # columns; on less than that nothing can be asked

_YES = frozenset({"y", "yes"})
_VIEW = frozenset({"v", "view"})


def terminal_approver(*, before: Callable[[], None]) -> Approver:
    """An approver that asks on /dev/tty; `before` makes room on the screen. Without a terminal it says no."""

    def approve(question: Question) -> Answer:
        before()
        try:
            handle = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return Answer(
                approved=False,
                by="no terminal",
                reason="there is no terminal to ask on",
                hint="run it at a terminal, or with --approve all; or write an allow rule",
            )
        try:
            return _ask(handle, question)
        except (OSError, termios.error):
            return Answer(approved=False, by="terminal", reason="the terminal is gone")
        finally:
            os.close(handle)

    return approve


def _ask(handle: int, question: Question) -> Answer:
    width = _width(handle)
    shown = _wrapped(_text(question, _cut), width)
    is_cut = _CUT in shown
    _write(handle, f"{shown}v shows all of it\n" if is_cut else shown)
    while True:
        termios.tcflush(handle, termios.TCIFLUSH)  # what was typed before the question is no answer to it
        _write(handle, "Allow this call? [y/N] ")
        try:
            answered = _answered(handle)
        except KeyboardInterrupt:
            _write(handle, "\n")
            raise
        if not answered:
            _write(handle, "\nNo answer.\n")
            return Answer(approved=False, by="terminal", reason="nobody answered")
        typed = os.read(handle, 100)
        termios.tcflush(handle, termios.TCIFLUSH)  # the rest of a long line is no word to the shell
        answer = typed.decode(errors="replace").strip().lower()
        if not (is_cut and answer in _VIEW):
            _write(handle, "" if typed else "\n")
            return Answer(approved=answer in _YES, by="terminal")
        _write(handle, _wrapped(_text(question, _in_lines), width))


def _write(handle: int, text: str) -> None:
    rest = memoryview(text.encode())
    while rest:
        rest = rest[os.write(handle, rest) :]


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


def _text(question: Question, value_text: Callable[[Json], str]) -> str:
    shown = question.shown
    tool, step = printable(question.call.tool), printable(str(shown.get("step")))
    lines = [f"\n{tool} asks to run, at step {step} ({printable(question.decision.reason)})"]
    for title, values in (("", shown.get("args")), ("grant ", shown.get("grant"))):
        if isinstance(values, Mapping):
            lines += [f"  {title}{printable(name)}: {value_text(value)}" for name, value in values.items()]
    return "\n".join(lines) + "\n"


def _width(handle: int) -> int:
    try:
        return max(os.get_terminal_size(handle).columns, _NARROWEST)
    except OSError:
        return _NARROWEST


def _wrapped(text: str, width: int) -> str:
    """No value may begin a line of the screen, where it could look like a line of the question."""
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line, width))


def _pieces(line: str, width: int) -> Iterator[str]:
    begin = used = 0
    for place, char in enumerate(line):
        wide = 2 if not char.isascii() and east_asian_width(char) in "WF" else 1
        if used + wide > width:
            yield (_MORE if begin else "") + line[begin:place]
            begin, used = place, len(_MORE)
        used += wide
    yield (_MORE if begin else "") + line[begin:]


def _cut(value: Json) -> str:
    """On one line, and not all of what is long."""
    text = printable(_plain(value))
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}{_CUT} ({len(text)} characters)"


def _in_lines(value: Json) -> str:
    """All of it, a line of text on a line of its own."""
    first, *more = _plain(value).split("\n")
    return "\n".join([printable(first), *(f"{_MORE}{printable(line)}" for line in more)])


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
