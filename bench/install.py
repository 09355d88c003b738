"""What `pip install` of the built wheel puts into an empty environment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.place import CHECKOUT, SECONDS, Place
from bench.rows import Row, Skipped
from bench.timing import Effort

_PIP = ("-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check")


def install(effort: Effort, place: Place) -> Iterator[Row]:
    python = _python_with_pip()
    wheels, venv = place.root / "wheels", place.root / "venv"
    _pip(python, "wheel", "--no-deps", "--wheel-dir", wheels, CHECKOUT)
    _succeed([python, "-m", "venv", "--without-pip", venv])
    _pip(python, "--python", venv / "bin" / "python", "install", *wheels.glob("*.whl"))
    packages = len(list(venv.glob("lib/python*/site-packages/*.dist-info")))
    files = [path for path in venv.rglob("*") if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in files)
    compiled = sum(path.stat().st_size for path in files if path.suffix == ".pyc")
    yield Row(what="install, core: packages", measured=packages, goal=32, unit="", how="with Capsule itself")
    how = f"the whole environment; {compiled / 1e6:.0f} MB of it is compiled at installation"
    yield Row(what="install, core: size", measured=size / 1e6, goal=40, unit="MB", how=how)


def _python_with_pip() -> Path:
    for python in (Path(sys.executable), Path(sys.base_prefix) / "bin" / "python3"):
        asked = subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False, timeout=SECONDS)
        if asked.returncode == 0:
            return python
    raise Skipped("no pip for this Python")


def _pip(python: Path, *words: str | Path) -> None:
    _succeed([python, *_PIP, *words])


def _succeed(command: Sequence[str | Path]) -> None:
    """With the caller's environment: pip's index and certificates are his."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Skipped(f"installing took more than {SECONDS} s") from None
    if done.returncode:
        raise Skipped("pip could not install it: " + (done.stderr.strip().splitlines() or ["no reason given"])[-1])
