"""Capsule's own files under names that nobody decided on.

A hard link or a mount gives one file, or all of a directory, another name; only the file itself tells.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from capsule.calls import Components, Places
from capsule.policy.paths import is_within

_MOST_LEVELS = 1000  # a name has 4096 bytes, and each level takes three


class KeptFiles:
    """What a run keeps from its tools; without places, where nothing was decided, nothing is kept."""

    def __init__(self, places: Places | None) -> None:
        self._unreadable = {} if places is None else {name: _path(name) for name in places.unreadable}
        self._unwritable = {} if places is None else {name: _path(name) for name in places.unwritable}
        self._home = () if places is None else places.capsule_home
        self._directories = _directories(_path(self._home)) if self._home else []

    def is_unreadable(self, found: os.stat_result) -> bool:
        return any(_is_at(path, found) for path in self._unreadable.values())

    def is_unwritable(self, found: os.stat_result, name: Components) -> bool:
        """`name` is what was decided on: a rule may have allowed that very file."""
        others = (path for kept, path in self._unwritable.items() if kept != name)
        return self.is_unreadable(found) or any(_is_at(path, found) for path in others)

    def is_place(self, directory: int, name: Components) -> bool:
        """Whether a file of this name in this directory would be one of them, or lie in Capsule's home, unseen."""
        found = os.fstat(directory)
        of_this_name = (kept for kept in (*self._unreadable, *self._unwritable) if kept[-1:] == name[-1:])
        if any(kept != name and _is_at(_path(kept[:-1]), found) for kept in of_this_name):
            return True
        if not self._home or is_within(name, self._home):
            return False
        return any(_is_at(path, found) for found in _upwards(directory, len(name)) for path in self._directories)


def _path(name: Components) -> str:
    return "/" + "/".join(name)


def _upwards(directory: int, levels: int) -> Iterator[os.stat_result]:
    """A directory and those above it, as far as they can be looked at and their way has a name."""
    for depth in range(min(levels, _MOST_LEVELS)):
        try:
            yield os.stat("/".join([".", *[".."] * depth]), dir_fd=directory)
        except OSError:
            return


def _directories(home: str) -> list[str]:
    """The home and what lies in it: a mount may begin there, and from within it no way leads up to the home."""
    try:
        with os.scandir(home) as found:
            return [home, *(entry.path for entry in found if entry.is_dir(follow_symlinks=False))]
    except OSError:  # it is not there yet, or not to be looked at
        return [home]


def _is_at(path: str, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.lstat(path), found)
    except OSError:  # nothing is there
        return False
