"""What tests of files share: every way of opening, grants without a policy, and a Context over the hands."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from capsule.calls import Access, Chunk, FileGrant, Listing, Written
from capsule.effects import Anchors, Beneath, Bounds, ComponentWalk, Openat2, SystemClock, Visible, files, has_openat2

WAYS: tuple[Beneath, ...] = (Openat2(), ComponentWalk()) if has_openat2() else (ComponentWalk(),)
"""Every way of opening files that this machine has."""


def way_name(way: Beneath) -> str:
    return type(way).__name__


def grant(
    path: str, *, access: Access = Access.READ, anchor: Literal["workdir", "root"] = "workdir", argument: str = "path"
) -> FileGrant:
    return FileGrant(argument=argument, access=access, anchor=anchor, components=names(path))


def names(path: str | Path) -> tuple[str, ...]:
    return tuple(name for name in str(path).split("/") if name not in ("", "."))


def everything(_path: tuple[str, ...]) -> bool:
    return True


def no_hurry() -> None:
    """The time of the call is not up."""


def up_to(max_bytes: int) -> Bounds:
    return Bounds(max_bytes=max_bytes, in_time=no_hurry)


@dataclass(frozen=True, kw_only=True)
class Granted:
    """Implements `calls.Context` on grants that a test made."""

    anchors: Anchors
    grants: Mapping[str, FileGrant]
    cap: int = 10_000
    visible: Visible = everything
    flags: list[str] = field(default_factory=list)
    run_id: str = "run"
    step_id: str = "step"
    workdir: Path = Path("/nowhere")
    deadline: float = 0.0

    def read(self, argument: str, *, offset: int, length: int | None) -> Chunk:
        return files.read(self.anchors, self.grants[argument], offset=offset, length=length, bounds=up_to(self.cap))

    def list(self, argument: str, *, pattern: str, offset: int, limit: int) -> Listing:
        return files.list(
            self.anchors,
            self.grants[argument],
            pattern=pattern,
            offset=offset,
            limit=limit,
            visible=self.visible,
            in_time=no_hurry,
        )

    def write(self, argument: str, data: bytes, *, mode: str, create_dirs: bool) -> Written:
        return files.write(
            self.anchors,
            self.grants[argument],
            data,
            mode=mode,
            create_dirs=create_dirs,
            clock=SystemClock(),
            bounds=up_to(self.cap),
        )

    def flag(self, name: str) -> None:
        self.flags.append(name)


def open_descriptors() -> set[str]:
    return set(os.listdir("/dev/fd"))  # noqa: PTH208 - the names are wanted
