from __future__ import annotations

from collections.abc import Mapping

import pytest
from granted import Granted

from capsule.calls import BUILTIN, Context, ToolDefinition
from capsule.canon import Json
from capsule.effects import Anchors
from capsule.errors import ToolError
from capsule.tools import Registry


class Echo:
    def __init__(self, name: str) -> None:
        self.definition = ToolDefinition(
            name=name, description="Says it again.", args_schema={"type": "object", "properties": {}}
        )

    def run(self, args: Mapping[str, Json], context: Context) -> Json:
        return dict(args)


def test_the_built_in_tools_are_there() -> None:
    registry = Registry.built_in()
    assert registry.definitions == BUILTIN
    assert registry.names == tuple(sorted(BUILTIN))
    assert [tool.definition.name for tool in registry] == sorted(BUILTIN)
    assert registry.get("fs.read").definition is BUILTIN["fs.read"]


def test_a_tool_can_be_added() -> None:
    registry = Registry.built_in()
    echo = Echo("demo.echo")
    registry.add(echo)
    assert registry.get("demo.echo") is echo
    assert registry.definitions == {**BUILTIN, "demo.echo": echo.definition}


@pytest.mark.parametrize(
    ("name", "owner"), [*((name, "a built-in tool") for name in BUILTIN), ("demo.echo", "another tool")]
)
def test_a_name_cannot_be_taken_twice(name: str, owner: str) -> None:
    registry = Registry.built_in()
    registry.add(Echo("demo.echo"))
    before = registry.get(name)
    with pytest.raises(ToolError, match=owner) as caught:
        registry.add(Echo(name))
    assert caught.value.code == 2002
    assert registry.get(name) is before


@pytest.mark.parametrize(
    ("name", "hint"), [("fs.raed", "fs.read"), ("http_get", "http.get"), ("no.such.thing", "tools list"), ("", "list")]
)
def test_an_unknown_tool_gets_a_hint(name: str, hint: str) -> None:
    with pytest.raises(ToolError) as caught:
        Registry.built_in().get(name)
    assert caught.value.code == 2001
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["http.get", "shell.run"])
def test_what_this_version_cannot_run_says_so(anchors: Anchors, name: str) -> None:
    with pytest.raises(ToolError, match="not available in this version") as caught:
        Registry.built_in().get(name).run({}, Granted(anchors=anchors, grants={}))
    assert (caught.value.code, caught.value.kind, caught.value.retriable) == (2005, "tool_unavailable", True)
    assert caught.value.hint
