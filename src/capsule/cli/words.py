"""Arguments of a call as words on a command line: `path=./a.md`, `headers:={"accept": "*/*"}`, `-- git status`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typer.core import TyperCommand

from capsule.calls import BUILTIN, Guard
from capsule.canon import Json
from capsule.documents import load_text, shown
from capsule.errors import PlanError, ToolError


class TakesArgv(TyperCommand):
    """The parser takes one `--` away; the one that parts a call's command from its other arguments must stay."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        where = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, args[:where] + args[where : where + 1] + args[where:])


def call_arguments(tool: str, words: Sequence[str]) -> dict[str, Json]:
    """What follows `--` is the command of a tool that takes one."""
    where = words.index("--") if "--" in words else len(words)
    args: dict[str, Json] = {}
    for word in words[:where]:
        name, value = _argument(word)
        if name in args:
            raise ToolError(2002, f"{name} is given twice", hint=f"a list is written {name}:='[…]'")
        if word.startswith(f"{name}=") and (form := _form_of(tool, name)):
            raise ToolError(2002, f"{tool}: {name} is not text", hint=f"write {name}:={form}")
        args[name] = value
    if argv := list(words[where + 1 :]):
        args[_command_of(tool)] = argv
    return args


def _command_of(tool: str) -> str:
    definition = BUILTIN.get(tool)
    takers = [name for name, guard in definition.guards.items() if guard is Guard.COMMAND] if definition else []
    return takers[0] if takers else "command"


_FORMS = {"array": '\'["git", "log"]\'', "object": '\'{"name": "value"}\'', "boolean": "true"}


def _form_of(tool: str, name: str) -> str | None:
    """How an argument is written that is no text; None for text, and for what is not known."""
    schema = BUILTIN[tool].arguments.get(name) if tool in BUILTIN else None
    kind = schema.get("type") if isinstance(schema, Mapping) else "string"
    return None if kind == "string" else _FORMS.get(str(kind), "5")


def _argument(word: str) -> tuple[str, Json]:
    name, equals, value = word.partition("=")
    if not equals:
        hint = f"write NAME={word}, or put a command behind --: -- {word} …"
        raise ToolError(2002, f"found {shown(word)}, allowed: NAME=TEXT or NAME:=JSON", hint=hint)
    if not name.endswith(":"):
        return name, value
    try:
        return name[:-1], load_text(value, name=name[:-1], kind="argument", format="json").value
    except PlanError as error:
        raise ToolError(2002, f"{error.message}", hint=f"for text write {name[:-1]}={value}") from error
