"""What the doors need besides a run: the journal for reading, the time, the tools and the machine."""

from __future__ import annotations

from pathlib import Path

from capsule.calls import ToolDefinition
from capsule.effects import Machine, SystemClock, probe
from capsule.store import Store
from capsule.tools import Registry


def open_journal(db: Path) -> Store:
    """For reading only: looking back changes nothing, not even an older schema."""
    return Store.open(db, clock=SystemClock(), create=False, readonly=True)


def now_ms() -> int:
    return SystemClock().now_ms()


def tool_definitions() -> list[ToolDefinition]:
    return [tool.definition for tool in Registry.built_in()]


def tool_definition(name: str) -> ToolDefinition:
    """ToolError 2001 for a tool that is not there."""
    return Registry.built_in().get(name).definition


def machine(home: Path) -> Machine:
    """What this machine can enforce."""
    return probe(home=home)
