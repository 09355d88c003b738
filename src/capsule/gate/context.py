"""What a running tool holds: its own granted arguments and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from capsule.calls import Access, Chunk, Clock, Components, FileGrant, Grant, Listing, Written
from capsule.effects import Anchors, Bounds, files
from capsule.errors import PolicyDenied, ToolError

_FLAG = re.compile("[a-z][a-z_]{0,39}")  # flags are not screened: they must not be able to hold anything


@dataclass(slots=True, kw_only=True)
class GrantedContext:
    """Implements `calls.Context` over the hands in `effects`; it never sees the policy or the store."""

    run_id: str
    step_id: str
    workdir: Path
    deadline: float
    grant: Grant
    anchors: Anchors
    clock: Clock
    visible: Callable[[], Callable[[Components], bool]]
    flags: list[str] = field(default_factory=list)

    def _file(self, argument: str, access: Access) -> FileGrant:
        for granted in self.grant.files:
            if granted.argument == argument and granted.access is access:
                return granted
        raise PolicyDenied(1001, f"the grant of this call holds no {access.value} of {argument!r}")

    @property
    def _bounds(self) -> Bounds:
        max_bytes = self.grant.limits.max_bytes
        assert max_bytes is not None, "a tool for files has a default cap"
        return Bounds(max_bytes=max_bytes, in_time=self._in_time)

    def _in_time(self) -> None:
        if self.clock.monotonic() > self.deadline:
            limit_ms = self.grant.limits.timeout_ms
            raise ToolError(
                2004, f"it took longer than {limit_ms} ms", hint="ask for less, or raise the rule's timeout"
            )

    def read(self, argument: str, *, offset: int, length: int | None) -> Chunk:
        granted = self._file(argument, Access.READ)
        return files.read(self.anchors, granted, offset=offset, length=length, bounds=self._bounds)

    def list(self, argument: str, *, pattern: str, offset: int, limit: int) -> Listing:
        granted = self._file(argument, Access.READ)
        return files.list(
            self.anchors,
            granted,
            pattern=pattern,
            offset=offset,
            limit=limit,
            visible=self.visible(),
            in_time=self._in_time,
        )

    def write(self, argument: str, data: bytes, *, mode: str, create_dirs: bool) -> Written:
        granted = self._file(argument, Access.WRITE)
        return files.write(
            self.anchors,
            granted,
            data,
            mode=mode,
            create_dirs=create_dirs,
            clock=self.clock,
            bounds=self._bounds,
        )

    def flag(self, name: str) -> None:
        if not _FLAG.fullmatch(name):
            raise ToolError(2003, "a flag is a word of lower-case letters", hint="as in hard_link")
        self.flags.append(name)
