"""The entry: `python -m capsule` and the two commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from capsule import __version__
from capsule.__main__ import main


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_the_version(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([word])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"capsule {__version__}\n")


def test_the_version_costs_no_libraries() -> None:
    code = "import sys, capsule.__main__ as m\ntry: m.main(['--version'])\nexcept SystemExit: print(*sys.modules)"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("COV")}  # which loads a lot
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert {"typer", "yaml", "re2", "sqlite3", "pydantic"} & set(done.stdout.split()) == set()


@pytest.mark.parametrize("command", ["capsule", "capsule-agent"])
def test_both_commands_are_installed(command: str) -> None:
    installed = Path(sys.executable).parent / command
    done = subprocess.run([installed, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"capsule {__version__}\n")
