"""`capsule demo`"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from capsule.cli.options import AsJson
from capsule.cli.outermost import EXIT_DENIED
from capsule.cli.output import coloured, print_line
from capsule.cli.report import report
from capsule.cli.run import run
from capsule.cli.verify import verify
from capsule.errors import StorageError
from capsule.screen import printable

_FILES = {
    "plan.yaml": "plan.yaml",
    "policy.yaml": "policy.yaml",
    "notes/monday.md": "notes/monday.md",
    "notes/tuesday.md": "notes/tuesday.md",
    "secrets.txt": ".env",
}

_BEFORE = """\
The plan lists two notes, reads one, writes a summary, and reaches for .env.
The policy allows the first three and does not speak of the last; so it is denied."""
_NEXT = """\
  capsule policy explain --policy policy.yaml fs.read path=.env
  capsule show-run last --db runs.db
  edit policy.yaml, and run the plan again"""


def add_to(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    *,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir", metavar="DIR", readable=False, help="Keep everything here; a directory that is new or empty."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """See an allowed step, a denied one, the report and the check of the journal.

    Without --dir everything happens in a temporary directory, which is removed at the end.

    Example: capsule demo --dir demo
    """
    if directory is None:
        with TemporaryDirectory(prefix="capsule-demo-") as name, _home_of_its_own():
            _tour(Path(name), as_json=as_json)
        if as_json:
            return
        print_line("The files were temporary. To keep them and go on: capsule demo --dir demo")
        return
    _make_ready(directory)
    _tour(directory, as_json=as_json)
    if not as_json:
        print_line(f"To go on:\n  cd {printable(str(directory))}\n{_NEXT}")


@contextmanager
def _home_of_its_own() -> Iterator[None]:
    """Nothing of the demo stays, not even the key that a first run makes."""
    before = os.environ.get("CAPSULE_HOME")
    with TemporaryDirectory(prefix="capsule-home-") as home:
        os.environ["CAPSULE_HOME"] = home
        try:
            yield
        finally:
            del os.environ["CAPSULE_HOME"]
            if before is not None:
                os.environ["CAPSULE_HOME"] = before


def _make_ready(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        empty = not any(directory.iterdir())
    except OSError as error:
        raise typer.BadParameter(f"{directory}: {error.strerror}", param_hint="--dir") from error
    if not empty:
        raise typer.BadParameter(f"{directory} is not empty; name a new directory", param_hint="--dir")


def _tour(directory: Path, *, as_json: bool) -> None:
    """The commands as a user gives them, in the directory: they are the same functions.

    As one document it is the report of the run.
    """
    _lay_out(directory)
    db = Path("runs.db")
    if as_json:
        with chdir(directory), suppress(typer.Exit):
            run(Path("plan.yaml"), policy=[Path("policy.yaml")], db=db, as_json=True)
        return
    print_line(_BEFORE)
    with chdir(directory):
        _announce("capsule run plan.yaml --policy policy.yaml --db runs.db")
        try:
            run(Path("plan.yaml"), policy=[Path("policy.yaml")], db=db)
        except typer.Exit as ended:
            if ended.exit_code != EXIT_DENIED:
                raise
            print_line(f"(exit code {EXIT_DENIED}: something was denied; this is a demo and goes on)")
        _announce("capsule report last --db runs.db")
        report("last", db=db)
        _announce("capsule verify --db runs.db")
        verify(db=db)
    print_line()


def _lay_out(directory: Path) -> None:
    try:
        for name, written in _FILES.items():
            target = directory / written
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(files("capsule.cli").joinpath("demo_files", name).read_bytes())
    except OSError as error:
        message = f"{directory}: the files of the demo cannot be written: {error.strerror}"
        raise StorageError(5002, message, hint="make room there, or name another directory with --dir") from error


def _announce(command: str) -> None:
    print_line()
    print_line(f"{coloured(f'▸ {command}', 'bold')}")
    sys.stdout.flush()  # progress goes to standard error, and belongs below
