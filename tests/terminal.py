"""A real terminal for tests: a pseudo-terminal with a process behind it."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import pexpect

PROMPT = r"Allow this call\? \[y/N\] "
PATIENCE_SECONDS = 20


class Terminal:
    """`capsule` at a terminal: what is typed goes in, what is shown comes out."""

    def __init__(self, *words: str, **environ: str) -> None:
        self._child: Any = pexpect.spawn(
            sys.executable,
            ["-m", "capsule", *words],
            encoding="utf-8",
            timeout=PATIENCE_SECONDS,
            dimensions=(40, 200),
            env={**os.environ, "TERM": "xterm", **environ},
        )
        self.shown = ""

    def until(self, pattern: str) -> str:
        """What is shown until then."""
        self._child.expect(pattern)
        piece = f"{self._child.before}{self._child.after}"
        self.shown += piece
        return piece

    def is_quiet(self, seconds: float) -> bool:
        try:
            self._child.expect(".", timeout=seconds)
        except pexpect.TIMEOUT:
            return True
        return False

    def type(self, text: str) -> None:
        self._child.send(text)

    def end_of_input(self) -> None:
        self._child.sendeof()

    def interrupt(self) -> None:
        self._child.sendintr()

    def end(self) -> int:
        """The exit code, when it has shown everything."""
        self._child.expect(pexpect.EOF)
        self.shown += self._child.before
        self._child.close()
        assert self._child.exitstatus is not None
        return int(self._child.exitstatus)


def plain(text: str) -> str:
    """Without colours, and each line as it stood in the end."""
    uncoloured = re.sub(r"\x1b\[[0-9;]*m", "", text.replace("\r\n", "\n"))
    return "\n".join(re.split(r"\r\x1b\[2K", line)[-1] for line in uncoloured.split("\n"))
