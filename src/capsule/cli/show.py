"""Report lines on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TextIO

from capsule.cli.output import coloured
from capsule.report import Line


def show_lines(lines: Iterable[Line], stream: TextIO | None = None) -> None:
    out = stream or sys.stdout
    for line in lines:
        icon = f"{coloured(line.icon, line.colour, stream=out)} " if line.icon else ""
        out.write(f"{icon}{line.text}\n")
