"""Opening exactly the granted file beneath a directory handle."""

from __future__ import annotations

import os
from collections.abc import Iterator

from bench.place import Place
from bench.rows import Row
from bench.timing import Effort, in_turns, shown
from capsule.calls import Access, FileGrant
from capsule.effects import Anchors

_SECONDS = 3.0
_TIMES = 200
_DEPTHS = (1, 4)
_FLAGS = os.O_RDONLY | os.O_CLOEXEC


def path(effort: Effort, place: Place) -> Iterator[Row]:
    """What a read or a write of a granted file opens it with ÷ a plain open that checks nothing."""
    with Anchors.open(place.workdir) as anchors:
        for depth in _DEPTHS:
            yield _row(effort, place, anchors, ("d",) * (depth - 1) + ("file",))


def _row(effort: Effort, place: Place, anchors: Anchors, names: tuple[str, ...]) -> Row:
    file = place.workdir.joinpath(*names)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    grant = FileGrant(argument="path", access=Access.READ, anchor="workdir", components=names)
    name = "/".join(names)
    times = effort.count(_TIMES)

    def beneath() -> None:
        for _ in range(times):
            os.close(anchors.open_granted(grant, os.O_RDONLY))

    directory = os.open(place.workdir, os.O_RDONLY | os.O_DIRECTORY)

    def plain() -> None:
        for _ in range(times):
            os.close(os.open(name, _FLAGS, dir_fd=directory))

    try:
        taken = in_turns({"beneath": beneath, "plain": plain}, seconds=effort.seconds(_SECONDS))
    finally:
        os.close(directory)
    each = {name: shown(seconds / times) for name, seconds in taken.items()}
    how = f"{each['beneath']} ÷ {each['plain']}, open and close; {type(anchors.beneath).__name__}"
    what = f"open beneath ÷ open(dir_fd=…), {len(names)} deep"
    return Row(what=what, measured=taken["beneath"] / taken["plain"], goal=2, how=how)
