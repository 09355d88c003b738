"""The seams: what a tool, an approver, a clock must be. Each has a real thing and a small fake that runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from capsule.calls.call import ToolCall
from capsule.calls.decision import Decision
from capsule.calls.definition import SideEffect, ToolDefinition
from capsule.canon import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A range of a file."""

    data: bytes
    size: int  # of the whole file
    hard_link: bool = False  # the file has other names too


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    path: str  # relative to the listed directory
    type: str  # file, directory, symlink, other
    size: int | None  # of regular files


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    entries: tuple[Entry, ...]
    truncated: bool
    skipped_names: int  # names that are not text


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    created: bool


class Context(Protocol):
    """All that a tool gets: its own granted arguments, by name, and nothing else."""

    @property
    def run_id(self) -> str: ...
    @property
    def step_id(self) -> str: ...
    @property
    def workdir(self) -> Path: ...
    @property
    def deadline(self) -> float:
        """On the monotonic clock, in seconds."""

    def read(self, argument: str, *, offset: int, length: int | None) -> Chunk: ...
    def list(self, argument: str, *, pattern: str, offset: int, limit: int) -> Listing: ...
    def write(self, argument: str, data: bytes, *, mode: str, create_dirs: bool) -> Written: ...
    def flag(self, name: str) -> None:
        """Mark the result with something its reader should know."""


class Tool(Protocol):
    @property
    def definition(self) -> ToolDefinition: ...

    def run(self, args: Mapping[str, Json], context: Context) -> Json: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a person is shown before an ask is granted; `digest` binds the answer to exactly this."""

    call: ToolCall
    call_id: str
    side_effect: SideEffect
    decision: Decision
    shown: Mapping[str, Json]  # step, arguments and grant, masked
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an approver says, and in whose name."""

    approved: bool
    by: str  # terminal, --approve all, no approver, …
    reason: str | None = None
    hint: str | None = None  # what would have helped, where nobody decided against it


Approver = Callable[[Question], Answer]


class Clock(Protocol):
    """Time and chance enter a run here only, so that a tape can answer for them."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    def random_bytes(self, count: int) -> bytes: ...
