"""`capsule schema`"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from capsule.canon import Json
from capsule.cli.output import print_json
from capsule.gate import tool_definitions
from capsule.plans import PLAN_SCHEMA
from capsule.policy import POLICY_SCHEMA, floor_document
from capsule.report import REPORT_SCHEMA


class Kind(StrEnum):
    PLAN = "plan"
    POLICY = "policy"
    REPORT = "report"
    TOOLS = "tools"
    FLOOR = "floor"


def add_to(app: typer.Typer) -> None:
    app.command()(schema)


def _tools() -> Json:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Arguments of Capsule's tools",
        "type": "object",
        "properties": {tool.name: tool.args_schema for tool in tool_definitions()},
    }


def schema(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="plan, policy, report, tools or floor.")],
    *,
    _as_json: Annotated[bool, typer.Option("--json", help="What is printed is JSON in any case.")] = False,
) -> None:
    """Print a document's JSON Schema, for editors and checkers.

    `tools` has the arguments of every tool, `floor` prints what holds for every rule.

    Example: capsule schema policy
    """
    documents: dict[Kind, Json] = {
        Kind.PLAN: PLAN_SCHEMA,
        Kind.POLICY: POLICY_SCHEMA,
        Kind.REPORT: REPORT_SCHEMA,
        Kind.TOOLS: _tools(),
        Kind.FLOOR: floor_document(),
    }
    print_json(documents[kind])
