"""`capsule doctor`"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import typer

from capsule._version import __version__
from capsule.canon import Json
from capsule.cli.options import AsJson, Db, settings
from capsule.cli.outermost import EXIT_FAILED
from capsule.cli.output import coloured, print_json, print_line
from capsule.errors import CapsuleError
from capsule.gate import Machine, open_journal, probe
from capsule.screen import printable
from capsule.settings import Settings

_OLDEST_PYTHON = (3, 11)
_FOREIGN = ("capsule", "capsule-run")  # distributions of others that also install a package `capsule`
_LANDLOCK_TCP_ABI = 4  # the first that can keep a process off the network

_ICONS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    state: Literal["ok", "warn", "fail"]
    found: str
    hint: str | None = None

    def as_json(self) -> dict[str, Json]:
        return {"name": self.name, "state": self.state, "found": self.found, "hint": self.hint}


def add_to(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(*, db: Db = None, as_json: AsJson = False) -> None:
    """Check this machine: Python, the package, the journal, what can be enforced; exit 1 when something fails."""
    loaded = settings()
    found = probe(home=loaded.user_home)
    checks = [*_of_python(), _of_home(loaded), *_of_store(loaded, db), *_of_machine(found)]
    if as_json:
        print_json({"checks": [check.as_json() for check in checks], "machine": found.as_json()})
    else:
        for check in checks:
            icon, colour = _ICONS[check.state]
            print_line(f"{coloured(icon, colour)} {check.name:<16} {printable(check.found)}")
            if check.hint:
                print_line(f"    {printable(check.hint)}")
    if any(check.state == "fail" for check in checks):
        raise typer.Exit(EXIT_FAILED)


def _of_python() -> Iterator[Check]:
    found = ".".join(map(str, sys.version_info[:3]))
    enough = sys.version_info >= _OLDEST_PYTHON
    yield Check(name="python", state="ok" if enough else "fail", found=found)
    yield Check(name="capsule", state="ok", found=f"{__version__} in {Path(__file__).parents[1]}")
    for name in _FOREIGN:
        try:
            foreign = version(name)
        except PackageNotFoundError:
            continue
        hint = f"it has a package `capsule` too: `pip uninstall {name}`, then install capsule-agent again"
        yield Check(name="foreign package", state="fail", found=f"{name} {foreign} is installed", hint=hint)


def _of_home(loaded: Settings) -> Check:
    """Where the key is made at the first run."""
    home = loaded.home
    above = next(path for path in (home, *home.parents) if _is_there(path))
    if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
        return Check(name="home", state="ok", found=f"{home}" if above == home else f"{home}, made by the first run")
    hint = "set CAPSULE_HOME to a directory of your own"
    return Check(name="home", state="fail", found=f"{home}: {above} is no directory that you may write in", hint=hint)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # in a directory that is another's
        return False


def _of_store(loaded: Settings, db: Path | None) -> Iterator[Check]:
    file = db if db is not None else loaded.db
    try:
        if not file.exists():
            yield Check(name="journal", state="ok", found=f"{file} does not exist yet; the first run makes it")
            return
        store = open_journal(file)
        newest = store.runs(limit=1)
    except CapsuleError as error:
        yield Check(name="journal", state="fail", found=str(error), hint=error.hint)
        return
    except OSError as error:
        hint = "name another journal with --db, or make its directory readable for you"
        yield Check(name="journal", state="fail", found=f"{file}: {error.strerror}", hint=hint)
        return
    found = f"{file}, newest run {newest[0].run_id}" if newest else f"{file}, no runs yet"
    yield Check(name="journal", state="ok", found=found)


def _of_machine(found: Machine) -> Iterator[Check]:
    yield Check(name="system", state="ok", found=f"{found.system} {found.kernel} {found.architecture}")
    yield Check(
        name="openat2",
        state="ok" if found.openat2 else "warn",
        found="files are opened without following links, by the kernel" if found.openat2 else "not available",
        hint=None if found.openat2 else "each directory is opened in turn instead: as safe, and slower",
    )
    if found.home_folds_case:
        yield Check(
            name="file names", state="ok", found="the home does not tell cases apart; denies are compared folded"
        )
    landlock = found.landlock_abi
    yield Check(
        name="landlock",
        state="ok" if landlock >= _LANDLOCK_TCP_ABI else "warn",
        found=f"ABI {landlock}" if landlock else "not available",
        hint=None
        if landlock >= _LANDLOCK_TCP_ABI
        else "for `shell.run`, which comes later: Linux 6.7 or newer contains commands without bubblewrap",
    )
    namespaces = found.user_namespaces and found.bubblewrap is not None
    yield Check(
        name="namespaces",
        state="ok" if namespaces else "warn",
        found=_namespaces(found),
        hint=None
        if namespaces
        else "for `shell.run`, which comes later: `apt install bubblewrap`, and allow user namespaces",
    )


def _namespaces(found: Machine) -> str:
    if found.bubblewrap is None:
        return "bubblewrap is not installed"
    if not found.user_namespaces:
        return f"{found.bubblewrap} is installed, but user namespaces are turned off"
    return f"{found.bubblewrap}, user namespaces allowed"
