"""Live progress: each finished step a line, the running one below it; on standard error, so that output stays clean."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

from capsule.calls import Status, ToolResult
from capsule.cli.output import coloured, is_plain
from capsule.cli.said import said
from capsule.gate import Step, tool_definitions
from capsule.report import ICONS

_CLEAR_LINE = "\r\x1b[2K"


class Progress:
    """Implements `plans.Watcher`. Without a terminal it prints only finished steps; `quiet` prints nothing there."""

    def __init__(self, steps: int, *, check: Callable[[], None], quiet: bool) -> None:
        self.run_id: str | None = None
        self.check = check
        self._steps = steps
        self._out = sys.stderr
        self._live = not is_plain(self._out)
        self._silent = quiet and not self._live
        self._shown = False
        self._tools = {definition.name for definition in tool_definitions()}

    def opened(self, run_id: str) -> None:
        self.run_id = run_id

    def began(self, step: Step) -> None:
        self._status(f"… {said(step.id)} (step {step.index + 1} of {self._steps})")

    def ended(self, step: Step, tool: str, result: ToolResult) -> None:
        if self._silent:
            return
        self.stop()
        icon, colour = ICONS[result.status.value]
        error = f"  {result.error.code} {said(result.error.message)}" if result.error else ""
        named = tool if tool in self._tools else "unknown tool"  # what is no tool may be anything, a secret too
        self._write(f"{coloured(icon, colour, stream=self._out)} {said(step.id)}  {named}{error}\n")
        if result.status is Status.ERROR and result.error and result.error.hint:
            self._write(f"    hint: {said(result.error.hint)}\n")

    def waiting(self, step: Step, left_ms: int) -> None:
        self._status(f"⏳ {said(step.id)} waits {left_ms / 1000:.0f} s for its rate")

    def stop(self) -> None:
        """Take the live line away, so that something else can be written."""
        if self._shown:
            self._write(_CLEAR_LINE)
            self._shown = False

    def _status(self, text: str) -> None:
        if not self._live:
            return
        self._write(f"{_CLEAR_LINE}{text}")
        self._shown = True

    def _write(self, text: str) -> None:
        """A viewer that goes away must not end a run."""
        with suppress(OSError, ValueError):
            self._out.write(text)
            self._out.flush()
