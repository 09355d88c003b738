"""Pages as they can be tried out: their fenced blocks, run in order in a directory of the page's own.

    ```console          `$ command` lines are run, what follows each is what it prints
    ```python           is run; `# →` lines are what it prints
    ```yaml             begins with `# file: NAME` (written to the directory), `# plan`, `# policy` or `# rules`
    ```sh               sets something up on the reader's machine; never run
    ```text             is looked at, not tried

In what is printed `...` stands for anything: within a line, or for lines on a line of its own. Ids, times, hashes and
the directory's name are compared as such.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from capsule import Plan, Policy

HOME = "/home/ada"  # what pages call the home of whoever tries them

_FENCE = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)

_VARYING = (
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
    (r"\b[0-9a-f]{64}\b", "HASH"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", "TIME"),
    (r"\b\d+ ms\b", "N ms"),
    (r'_ms": \d+', '_ms": N'),
    (r"\b[0-9a-f]{8}\b", "ID"),
    (r"capsule-demo-\w+", "capsule-demo-ID"),
    (r"(?<=capsule )\d+\.\d+\.\d+", "VERSION"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        indent, language, body = found.groups()
        lines = [line.removeprefix(indent) for line in body.splitlines(keepends=True)]
        yield Block(language=language, text="".join(lines), line=text.count("\n", 0, found.start()) + 1)


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Each command with what it is to print."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


def is_alike(written: str, printed: str) -> bool:
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "..." else ".*".join(map(re.escape, line.rstrip().split("..."))) + "\n"
        for line in _steady(written).splitlines()
    )
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in _steady(printed).splitlines())) is not None


def _steady(text: str) -> str:
    for pattern, name in _VARYING:
        text = re.sub(pattern, name, text)
    return text.strip("\n")


class Project:
    """A reader's directory, and what lasts between the blocks of a page."""

    def __init__(self, home: Path, *, beside: Path | None = None) -> None:
        """`beside`: a directory whose files the page takes for granted; they are copied."""
        self.directory = home / "project"
        if beside is None:
            self.directory.mkdir()
        else:
            shutil.copytree(beside, self.directory)
        self._home = home
        self._exit_code = 0
        self._names: dict[str, object] = {"__name__": "__main__"}

    def try_out(self, block: Block) -> list[str]:
        """What is not as it is written."""
        match block.language:
            case "console":
                tried = [(command, written, self._run(command)) for command, written in commands(block)]
            case "python":
                written = "".join(f"{line[4:]}\n" for line in block.text.splitlines() if line.startswith("# →"))
                tried = [("python", written, self._python(block))]
            case "yaml":
                return self._document(block.text)
            case "sh" | "text":
                return []
            case _:
                return [f"line {block.line}: nothing says how to try a block of {block.language}"]
        return [
            f"line {block.line}: {command}\n--- written\n{written}--- printed\n{printed}"
            for command, written, printed in tried
            if not is_alike(written, printed)
        ]

    def _run(self, command: str) -> str:
        environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("CAPSULE_", "PYTHON"))},
            "HOME": str(self._home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        ran = subprocess.run(
            ["/bin/bash", "-c", f"(exit {self._exit_code}); {command}"],
            cwd=self.directory,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            start_new_session=True,  # without a terminal, wherever the tests run
        )
        self._exit_code = ran.returncode
        return self._placed(ran.stdout)

    def _python(self, block: Block) -> str:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(block.text, f"block at line {block.line}", "exec", dont_inherit=True), self._names)
        return self._placed(printed.getvalue())

    def _placed(self, text: str) -> str:
        return text.replace(str(self._home.resolve()), HOME).replace(str(self._home), HOME)

    def _document(self, text: str) -> list[str]:
        title, _, body = text.partition("\n")
        kind, _, name = title.removeprefix("# ").partition(": ")
        match kind:
            case "file":
                file = self.directory / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")  # with its title: so it is when somebody copies the block
            case "plan":
                Plan.parse(body)
            case "policy":
                Policy.parse(body)
            case "rules":
                Policy.parse(f"rules:\n{body}")
            case _:
                return [f"{title!r} does not say what this is"]
        return []
