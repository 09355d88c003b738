"""Finding the program of a command, once: on a search path or by its name, never in the workdir by a bare name."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from capsule.calls import Components
from capsule.effects.anchors import Anchors
from capsule.effects.real import NoRealPath, Resolver


class Programs:
    def __init__(self, anchors: Anchors, resolver: Resolver) -> None:
        self._anchors = anchors
        self._resolver = resolver

    def named(self, directories: Components, name: str) -> tuple[Components, Components]:
        """A command given with `/`, from the real directory it names: what is invoked, and the real program."""
        invoked = (*directories, name)
        program = self._executable(invoked)
        if program is None:
            raise NoRealPath(f"/{'/'.join(invoked)} is not an executable file")
        return invoked, program

    def found(self, name: str, search: Sequence[Components]) -> tuple[Components, Components]:
        """What a run can write must not decide what a bare name means, so the workdir is passed over."""
        for directory in search:
            invoked = (*directory, name)
            program = None if self._in_workdir(directory) else self._executable(invoked)
            if program is None:
                continue
            if self._in_workdir(program):
                raise NoRealPath(f"/{'/'.join(invoked)} leads into the workdir")
            return invoked, program
        shown = ", ".join("/" + "/".join(directory) for directory in search)
        raise NoRealPath(f"no program {name} in {shown or 'an empty search path'}")

    def _in_workdir(self, path: Components) -> bool:
        workdir = self._anchors.path
        return path[: len(workdir)] == workdir

    def _executable(self, invoked: Components) -> Components | None:
        if invoked[-1] in ("", ".", ".."):
            return None
        program = self._resolver.real((), invoked)
        status = self._resolver.status(program)
        if status is None or not stat.S_ISREG(status.st_mode):
            return None
        directory, rest = self._anchors.below(program)
        return program if os.access("/".join(rest).encode(), os.X_OK, dir_fd=directory) else None
