"""A project to type commands in, and two ways to type them."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typed import Ran, Typed, WritePlan

from capsule.cli import start

POLICY = """\
name: house
rules:
  - {id: read, action: allow, tool: [fs.read, fs.list], constraints: {path: {pattern: "./docs/**"}}}
  - {id: write, action: allow, tool: fs.write, constraints: {path: {pattern: "./out/**"}}}
  - {id: sign, action: ask, tool: [fs.read, fs.write], constraints: {path: {pattern: "./desk/**"}}}
  - {id: git, action: allow, tool: shell.run, constraints: {command: {pattern: "git log **"}}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: a policy, and something to read."""
    directory = tmp_path / "project"
    for below in ("docs", "desk"):
        (directory / below).mkdir(parents=True)
    (directory / "docs" / "a.md").write_text("Hello.\n")
    (directory / "policy.yaml").write_text(POLICY)
    monkeypatch.chdir(directory)
    return directory


@pytest.fixture
def plan(project: Path) -> WritePlan:
    """Write a plan, by its steps in YAML; gives its name."""

    def write(steps: str) -> str:
        lines = "".join(f"  {line}\n" for line in steps.splitlines())
        (project / "plan.yaml").write_text(f"name: plan\nsteps:\n{lines}")
        return "plan.yaml"

    return write


@pytest.fixture
def capsule(project: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Typed]:
    """Type a command line into this very process."""
    before = signal.getsignal(signal.SIGTERM)

    def typed(*words: str) -> Ran:
        capsys.readouterr()
        code = start(list(words))
        out, err = capsys.readouterr()
        return Ran(code=code, out=out, err=err)

    yield typed
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def shell(project: Path) -> Typed:
    """Type a line into a shell without a terminal; `capsule` is in its path."""

    def typed(line: str, *, stdin: str = "", **environ: str) -> Ran:
        done = subprocess.run(
            ["/bin/bash", "-c", f'capsule() {{ {shlex.quote(sys.executable)} -m capsule "$@"; }}; {line}'],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **environ},
            start_new_session=True,
        )
        return Ran(code=done.returncode, out=done.stdout, err=done.stderr)

    return typed


@pytest.fixture
def process(shell: Typed) -> Typed:
    """Type a command line into a process of its own, which has no terminal."""

    def typed(*words: str, stdin: str = "", **environ: str) -> Ran:
        return shell(f"capsule {shlex.join(words)}", stdin=stdin, **environ)

    return typed
