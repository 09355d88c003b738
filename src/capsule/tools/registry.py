"""The tools of a run, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from capsule.calls import Context, Tool, ToolDefinition
from capsule.calls.builtin import BUILTIN, HTTP_GET, SHELL_RUN
from capsule.canon import Json
from capsule.documents import suggest
from capsule.errors import ToolError
from capsule.tools.fs import FsList, FsRead, FsWrite


class Registry:
    """A name belongs to the tool that had it first, so the names of built-in tools cannot be taken."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    @classmethod
    def built_in(cls) -> Registry:
        registry = cls()
        for tool in (
            FsList(),
            FsRead(),
            FsWrite(),
            NotAvailable(definition=HTTP_GET),
            NotAvailable(definition=SHELL_RUN),
        ):
            registry.add(tool)
        return registry

    def add(self, tool: Tool) -> None:
        name = tool.definition.name
        if name in self._tools:
            owner = "a built-in tool" if name in BUILTIN else "another tool"
            raise ToolError(2002, f"the name {name} belongs to {owner}", hint="give the new tool a name of its own")
        self._tools[name] = tool

    def get(self, name: str) -> Tool:
        found = self._tools.get(name)
        if found is None:
            near = suggest(name, self._tools)
            hint = f"did you mean {near}?" if near else "see `capsule tools list`"
            raise ToolError(2001, f"no tool is called {name!r}", hint=hint)
        return found

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._tools))

    @property
    def definitions(self) -> Mapping[str, ToolDefinition]:
        """What a policy is checked against and a call resolved with."""
        return {name: self._tools[name].definition for name in self.names}

    def __iter__(self) -> Iterator[Tool]:
        return (self._tools[name] for name in self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAvailable:
    """A tool that policies can already name and that this version cannot run."""

    definition: ToolDefinition

    def run(self, args: Mapping[str, Json], context: Context) -> Json:  # noqa: ARG002 - the contract of a tool
        raise ToolError(
            2005,
            f"{self.definition.name} is not available in this version",
            hint="policies over it load and decide; a later version runs it",
        )
