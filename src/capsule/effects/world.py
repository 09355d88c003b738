"""The world as it is on this machine's disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from capsule.calls import Access, Components, ConcreteCommand, ConcretePath, Places
from capsule.calls.concrete import Resolved
from capsule.effects.anchors import Anchors, real_components
from capsule.effects.case import CaseFolding
from capsule.effects.programs import Programs
from capsule.effects.real import NoRealPath, Resolver
from capsule.policy.paper import argument_problem, lexical, path_problem

STORE_COMPANIONS = ("-wal", "-shm", "-journal", "-reserve", "-locks")

_DESCRIPTORS = ("dev", "fd")  # where a name can stand for an open descriptor without being a link (macOS)


class OnDisk:
    """Implements `calls.World` for runs: links are followed as the kernel would, from the anchors' handles."""

    resolved: Resolved = "disk"

    def __init__(self, places: Places, anchors: Anchors) -> None:
        self.places = places
        self._anchors = anchors
        self._resolver = Resolver(anchors)
        self._programs = Programs(anchors, self._resolver)
        self._case = CaseFolding(anchors)

    def path(self, text: str, *, argument: str, access: Access) -> ConcretePath:
        written: Components = ()
        real: Components = ()
        folded = False
        problem = path_problem(text)
        if problem is None:
            written = real = lexical(text, self.places)
            try:
                real = self._real(text, written)
                folded = self._case.on_the_way(real)
            except NoRealPath as error:
                problem = str(error)
        return ConcretePath(
            argument=argument, access=access, text=text, written=written, real=real, folded=folded, problem=problem
        )

    def command(self, argv: tuple[str, ...], *, argument: str, search: tuple[str, ...]) -> ConcreteCommand:
        try:
            invoked, program = self._program(argv, search)
        except NoRealPath as error:
            return ConcreteCommand(argument=argument, argv=argv, problem=str(error))
        return ConcreteCommand(argument=argument, argv=argv, program=program, invoked=invoked)

    def folds(self, real: Components) -> bool:
        return self._case.on_the_way(real)

    def directory(self, components: Components) -> Components:
        try:
            return self._resolver.real((), components)
        except NoRealPath:
            return components  # nothing with a real path lies there, so nothing can match beneath it

    def _real(self, text: str, written: Components) -> Components:
        plain = ".." not in text and self._anchors.beneath.is_plain(*self._anchors.below(written))
        real = written if plain else self._followed(text)
        if real[:2] == _DESCRIPTORS:
            raise NoRealPath("stands for an open descriptor, not for a file")
        return real

    def _followed(self, text: str) -> Components:
        names = text.split("/")
        if text.startswith("/"):
            return self._resolver.real((), names)
        if names[0] == "~":
            return self._resolver.real((), (*self.places.home, *names[1:]))
        return self._resolver.real(self.places.workdir, names)

    def _program(self, argv: tuple[str, ...], search: tuple[str, ...]) -> tuple[Components, Components]:
        if not argv or not argv[0]:
            raise NoRealPath("the command names no program")
        problem = path_problem(argv[0]) or next(filter(None, map(argument_problem, argv)), None)
        if problem:
            raise NoRealPath(problem)
        *directories, name = argv[0].split("/")
        if not directories:
            return self._programs.found(name, [self._followed(text) for text in search])
        base = () if argv[0].startswith("/") else self.places.workdir
        return self._programs.named(self._resolver.real(base, directories), name)


def places_of(*, workdir: Path, home: Path, capsule_home: Path, db: Path, in_use: Iterable[Path] = ()) -> Places:
    """Where things stand for one run; `in_use` are the policy, the plan and the pack."""
    store = [name for path in _both(db) for name in (path, *_companions(path))]
    return Places(
        workdir=real_components(workdir),
        home=real_components(home),
        capsule_home=real_components(capsule_home),
        unreadable=_unique([*_both(capsule_home / "key"), *_both(capsule_home / "config.toml"), *store]),
        unwritable=_unique([name for path in in_use for name in _both(path)]),
    )


def _both(path: Path) -> list[Components]:
    """A file by its own name in its real directory, and by the name of what it links to."""
    return [(*real_components(path.parent), path.name), real_components(path)]


def _companions(path: Components) -> list[Components]:
    return [(*path[:-1], path[-1] + ending) for ending in STORE_COMPANIONS]


def _unique(paths: Iterable[Components]) -> tuple[Components, ...]:
    return tuple(dict.fromkeys(paths))
