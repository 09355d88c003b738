"""`capsule tools list | show`"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from capsule.cli.options import AsJson
from capsule.cli.output import coloured, print_json, print_line
from capsule.gate import tool_definition, tool_definitions


def add_to(app: typer.Typer) -> None:
    tools = typer.Typer(name="tools", help="The tools a call can name.", no_args_is_help=True, rich_markup_mode=None)
    tools.command(name="list")(list_tools)
    tools.command(short_help="One tool: its arguments and what of them is guarded.")(show)
    app.add_typer(tools)


def list_tools(*, as_json: AsJson = False) -> None:
    """List the tools, with what each does."""
    definitions = tool_definitions()
    if as_json:
        print_json([definition.as_json() for definition in definitions])
        return
    for definition in definitions:
        name = coloured(f"{definition.name:<10}", "bold")
        print_line(f"{name} {definition.side_effect_class.value:<6} {definition.description}")


def _names(begun: str) -> list[str]:
    return [definition.name for definition in tool_definitions() if definition.name.startswith(begun)]


def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool.", autocompletion=_names)],
    *,
    as_json: AsJson = False,
) -> None:
    """Show one tool: its arguments, what of them a policy guards, its defaults.

    Example: capsule tools show fs.read
    """
    definition = tool_definition(name)
    if as_json:
        print_json(definition.as_json())
        return
    print_line(f"{coloured(definition.name, 'bold')}: {definition.description}")
    print_line(f"  class {definition.side_effect_class.value}, time {definition.timeout_ms} ms")
    for argument, schema in definition.arguments.items():
        guard = definition.guards.get(argument)
        guarded = f"  guarded as {guard.value}" if guard else ""
        print_line(f"  {argument:<12} {json.dumps(schema, ensure_ascii=False)}{guarded}")
    print_line(f"  gives {', '.join(definition.output)}")
