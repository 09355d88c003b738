"""The two directories that every path of a run hangs from, opened once and held."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from capsule.calls import Components, FileGrant, Places
from capsule.effects.beneath import DIRECTORY, Beneath, best
from capsule.effects.kept import KeptFiles
from capsule.effects.volume import is_procfs
from capsule.errors import PlanError

_CLOSED = -1


class Anchors:
    """Handles for the workdir and for "/": who renames the workdir away cannot move a run elsewhere."""

    __slots__ = ("beneath", "kept", "path", "root", "workdir")

    def __init__(self, *, path: Components, root: int, workdir: int, beneath: Beneath, kept: KeptFiles) -> None:
        self.kept = kept
        self.path = path  # the workdir's real path
        self.root = root
        self.workdir = workdir
        self.beneath = beneath

    @classmethod
    def open(cls, workdir: Path, *, beneath: Beneath | None = None, places: Places | None = None) -> Self:
        """`beneath` is the way to open files; left out, the best that this machine has.

        `places` names what is kept from tools under whatever name.
        """
        way = best() if beneath is None else beneath
        path = real_components(workdir)
        with ExitStack() as undo:
            root = os.open("/", DIRECTORY)
            undo.callback(os.close, root)
            handle = _directory(way, root, path)
            undo.pop_all()
        return cls(path=path, root=root, workdir=handle, beneath=way, kept=KeptFiles(places))

    def close(self) -> None:
        root, workdir, self.root, self.workdir = self.root, self.workdir, _CLOSED, _CLOSED
        for handle in {root, workdir} - {_CLOSED}:
            os.close(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open_granted(self, grant: FileGrant, flags: int) -> int:
        return self.beneath.open(self.handle(grant), grant.components, flags)

    def handle(self, grant: FileGrant) -> int:
        return self.workdir if grant.anchor == "workdir" else self.root

    def below(self, path: Components) -> tuple[int, Components]:
        """The handle that an absolute real path hangs from, and the rest of it."""
        depth = len(self.path)
        if path[:depth] == self.path:
            return self.workdir, path[depth:]
        return self.root, path

    def absolute(self, grant: FileGrant) -> Components:
        return (*self.path, *grant.components) if grant.anchor == "workdir" else grant.components


def real_components(path: Path) -> Components:
    """The real path of one of the run's own places, taken once at the start."""
    real = os.path.realpath(os.fsencode(path))
    try:
        text = real.decode()
    except UnicodeDecodeError:
        raise PlanError(
            3001, f"{os.fsdecode(real)!r}: the name is not UTF-8 text", hint="rename it: records hold text only"
        ) from None
    return tuple(name for name in text.split("/") if name)


def _directory(way: Beneath, root: int, path: Components) -> int:
    shown = "/" + "/".join(path)
    try:
        handle = way.open(root, path, DIRECTORY)
    except OSError as error:
        raise PlanError(
            3001, f"workdir {shown}: {error.strerror}", hint="name a directory that exists with --workdir"
        ) from error
    if is_procfs(handle):
        os.close(handle)
        raise PlanError(3001, f"workdir {shown}: lies in the proc file system", hint="work in a directory on a disk")
    return handle
