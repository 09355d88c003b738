"""Arguments of a call as words on a command line: `path=./a.md`, `headers:={"accept": "*/*"}`, `-- git status`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from capsule.calls import BUILTIN, Guard
from capsule.canon import Json
from capsule.documents import load_text
from capsule.errors import ToolError


def call_arguments(tool: str, words: Sequence[str]) -> dict[str, Json]:
    """What follows `--` is the command of a tool that takes one."""
    named, argv = _split(words)
    args = dict(_argument(word) for word in named)
    if argv:
        definition = BUILTIN.get(tool)
        takers = [name for name, guard in definition.guards.items() if guard is Guard.COMMAND] if definition else []
        args[takers[0] if takers else "command"] = argv
    return args


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """A word without `=` begins the argv: the command line's own `--` is already taken away when it comes first."""
    for index, word in enumerate(words):
        if word == "--":
            return list(words[:index]), list(words[index + 1 :])
        if "=" not in word:
            return list(words[:index]), list(words[index:])
    return list(words), []


def _argument(word: str) -> tuple[str, Json]:
    name, _, value = word.partition("=")
    if not name.endswith(":"):
        return name, value
    try:
        return name[:-1], load_text(value, name=name[:-1], kind="argument", format="json").value
    except ValueError as error:
        raise ToolError(
            2002, f"{name[:-1]}: not JSON: {error}", hint=f"write {name[:-1]}={json.dumps(value)}"
        ) from error
