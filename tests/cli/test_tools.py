"""`capsule tools list | show`"""

from __future__ import annotations

import pytest
from typed import Typed

from capsule.calls import BUILTIN


def test_every_tool_is_listed(capsule: Typed) -> None:
    lines = capsule("tools", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == list(BUILTIN)
    assert capsule("tools", "list", "--json").json == [definition.as_json() for definition in BUILTIN.values()]


@pytest.mark.parametrize("name", BUILTIN)
def test_a_tool_shows_its_arguments(capsule: Typed, name: str) -> None:
    definition = BUILTIN[name]
    out = capsule("tools", "show", name).out
    assert out.startswith(f"{name}: {definition.description}\n")
    *arguments, gives = out.splitlines()[2:]
    shown = {line.split()[0]: line.partition("  guarded as ")[2] for line in arguments}
    assert shown == {argument: definition.guards.get(argument, "") for argument in definition.arguments}
    assert gives == f"  gives {', '.join(definition.output)}"
    assert capsule("tools", "show", name, "--json").json == definition.as_json()


def test_a_tool_that_is_not_there(capsule: Typed) -> None:
    ran = capsule("tools", "show", "fs.raed")
    assert (ran.code, ran.err) == (2, "capsule: no tool is called 'fs.raed' [2001]\n  hint: did you mean fs.read?\n")
