"""What the doors need besides a run: the journal for reading, the time, the tools and the machine."""

from __future__ import annotations

from pathlib import Path

from capsule.calls import ToolDefinition
from capsule.effects import SystemClock, places_of
from capsule.effects.anchors import real_components
from capsule.settings import Settings
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


def is_kept(file: Path, settings: Settings, db: Path) -> bool:
    """Whether it is, under any of its names, a file that nothing but Capsule writes: the journal, the key, settings."""
    places = places_of(workdir=Path("/"), home=settings.user_home, capsule_home=settings.home, db=db)
    kept = [Path("/", *names) for names in places.unreadable]
    return real_components(file) in places.unreadable or any(_same(file, path) for path in kept)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return False
