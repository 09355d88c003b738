"""Which directories find a name in other case too; asked once for each."""

from __future__ import annotations

import os

from capsule.calls import Components
from capsule.effects.anchors import Anchors
from capsule.effects.volume import folds_case

_MAX_REMEMBERED = 4096  # forgetting costs a look, never an answer
_LISTABLE = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK


class CaseFolding:
    """By directory and not by volume: ext4, f2fs and tmpfs fold in some directories and not in others."""

    def __init__(self, anchors: Anchors) -> None:
        self._anchors = anchors
        self._known: dict[Components, bool] = {}

    def on_the_way(self, path: Components) -> bool:
        """Whether a directory above the last name folds; what does not exist will be as its parent is."""
        known = self._known.get(path[:-1])
        return self._look(path[:-1]) if known is None else known

    def _look(self, directory: Components) -> bool:
        folds = False
        for depth in range(len(directory) + 1):
            above = directory[:depth]
            known = self._known.get(above)
            if known is None:
                own = self._own(above)
                if own is None:
                    continue  # not cached: it may be made yet
                known = folds or own
                self._remember(above, folds=known)
            folds = known
        return folds

    def _own(self, directory: Components) -> bool | None:
        """None where there is no directory that can be looked at."""
        handle, rest = self._anchors.below(directory)
        try:
            descriptor = self._anchors.beneath.open(handle, rest, _LISTABLE)
        except OSError:
            return None
        try:
            return folds_case(descriptor)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def _remember(self, directory: Components, *, folds: bool) -> None:
        if len(self._known) >= _MAX_REMEMBERED:
            self._known.clear()
        self._known[directory] = folds
