"""Reports, which may be longer than memory: they are written step by step, and shown only when they are whole."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import TextIO, cast

import typer

from capsule.canon import Json
from capsule.cli.output import coloured, json_text
from capsule.errors import StorageError
from capsule.report import Line

_HELD_BYTES = 1024 * 1024  # what is longer waits in a temporary file


def show_lines(lines: Iterable[Line], output: Path | None = None) -> None:
    """On standard output, in colours where that is a terminal, or in a file."""
    with _whole(output) as out:
        seen = sys.stdout if output is None else out
        for line in lines:
            icon = f"{coloured(line.icon, line.colour, stream=seen)} " if line.icon else ""
            out.write(f"{icon}{line.text}\n")


def show_document(
    before: Mapping[str, Json],
    steps: Iterable[Mapping[str, Json]],
    after: Callable[[], Mapping[str, Json]] = dict,
    *,
    output: Path | None = None,
) -> None:
    """One JSON object: some members, its `steps`, and what is known when those were read."""
    with _whole(output) as out:
        out.write(json_text(before, indent=2).removesuffix("\n}") + ',\n  "steps": [')
        comma = ""
        for step in steps:
            out.write(f"{comma}\n    {_indented(step, 4)}")
            comma = ","
        out.write("\n  ]" if comma else "]")
        for name, value in after().items():
            out.write(f",\n  {json_text(name)}: {_indented(value, 2)}")
        out.write("\n}\n")


def _indented(value: Json, by: int) -> str:
    return json_text(value, indent=2).replace("\n", "\n" + " " * by)


@contextmanager
def _whole(output: Path | None) -> Iterator[TextIO]:
    """What is written here is shown, and a file opened for it, only when the block ends well."""
    with SpooledTemporaryFile(_HELD_BYTES, "w+", encoding="utf-8") as waiting:
        try:
            yield cast("TextIO", waiting)
            waiting.seek(0)
        except OSError as error:
            message = f"no room to put the report together: {error.strerror}"
            raise StorageError(5002, message, hint="make room, or name another place with TMPDIR") from error
        if output is None:
            shutil.copyfileobj(waiting, sys.stdout)
            return
        try:
            with output.open("w", encoding="utf-8") as stream:
                shutil.copyfileobj(waiting, stream)
        except OSError as error:
            raise typer.BadParameter(f"{output} cannot be written: {error.strerror}", param_hint="-o") from error
