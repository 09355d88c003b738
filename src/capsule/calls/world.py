"""The world as a decision may see it: one Protocol, read on disk for runs and on paper for everything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from capsule.calls.concrete import Access, Components, ConcreteCommand, ConcretePath, Resolved


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where things stand for one run; all real paths, taken once at the start."""

    workdir: Components
    home: Components
    capsule_home: Components
    unreadable: tuple[Components, ...] = ()  # files no tool ever reads or writes: key, config.toml, the store
    unwritable: tuple[Components, ...] = ()  # files and trees no tool writes: the policy, the plan, the pack in use


class World(Protocol):
    @property
    def resolved(self) -> Resolved: ...

    @property
    def places(self) -> Places: ...

    def path(self, text: str, *, argument: str, access: Access) -> ConcretePath:
        """Make one path concrete; never raises: what cannot be resolved has a `problem`."""

    def command(self, argv: tuple[str, ...], *, argument: str, search: tuple[str, ...]) -> ConcreteCommand:
        """Find the program of a command on `search`; never in the workdir, never by a shell."""

    def folds(self, real: Components) -> bool:
        """Whether the directory of this real path does not tell cases apart."""

    def directory(self, components: Components) -> Components:
        """The real form of a pattern's literal leading directories."""
