"""Options that several commands share, declared once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from capsule.errors import PlanError
from capsule.settings import Settings

Db: TypeAlias = Annotated[
    Path | None, typer.Option("--db", metavar="FILE", readable=False, help="The journal. [default: ~/.capsule/runs.db]")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print exactly one JSON document on standard output.")]
PolicyOption: TypeAlias = Annotated[
    list[Path],
    typer.Option(
        "--policy", metavar="FILE", readable=False, help="The policy (YAML or JSON); again for each further layer."
    ),
]
Workdir: TypeAlias = Annotated[
    Path, typer.Option("--workdir", metavar="DIR", readable=False, help="Where relative paths hang from.")
]


def here(path: Path = Path()) -> Path:
    """A path of the command line, from the root."""
    try:
        return path.absolute()
    except FileNotFoundError as error:
        raise PlanError(3001, "the current directory does not exist any more", hint="cd to one that does") from error


def settings() -> Settings:
    return Settings.load(os.environ)
