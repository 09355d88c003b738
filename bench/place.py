"""Where a benchmark works: a directory of its own, a home of its own, and processes that see nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.rows import Skipped
from capsule.gate import Opening
from capsule.policy import Policy
from capsule.settings import Settings

CHECKOUT = Path(__file__).resolve().parents[1]
SECONDS = 60  # a process that takes longer hangs


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    root: Path

    @property
    def workdir(self) -> Path:
        return self._made("work")

    def _made(self, name: str) -> Path:
        path = self.root / name
        path.mkdir(exist_ok=True)
        return path

    def write(self, name: str, text: str) -> Path:
        """A file beside the workdir: a plan, a policy."""
        path = self.root / name
        path.write_text(text, encoding="utf-8")
        return path

    @property
    def environment(self) -> dict[str, str]:
        """Without the caller's settings; with a place for compiled modules, as an installed package has one."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CAPSULE_"))}
        return {
            **kept,
            "HOME": str(self._made("home")),
            "CAPSULE_HOME": str(self._made("home") / ".capsule"),
            "PYTHONPYCACHEPREFIX": str(self._made("compiled")),
        }

    def opening(self, policy: str, db: str = "runs.db") -> Opening:
        return Opening(
            settings=Settings.load(self.environment),
            policies=(Policy.parse(policy),),
            workdir=self.workdir,
            db=self.root / db,
        )

    def run(self, command: Sequence[str | Path]) -> str:
        """What it prints; its complaint as an exception when it fails."""
        done = subprocess.run(
            [str(word) for word in command],
            env=self.environment,
            cwd=self.workdir,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed ({done.returncode}): {done.stderr.strip()[-500:]}")
        return done.stdout


def capsule_command() -> str:
    """The command as it is installed beside this interpreter."""
    command = Path(sysconfig.get_path("scripts")) / "capsule"
    if not command.exists():
        raise Skipped("the command `capsule` is not installed beside this Python")
    return str(command)


BARE = (sys.executable, "-I", "-c", "pass")
