"""Listing what lies beneath exactly the directory that was granted, links never followed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from typing import TypeAlias

from capsule.calls import Components, Entry, FileGrant, Listing
from capsule.effects.anchors import Anchors
from capsule.effects.failures import LINK_APPEARED, failure, grant_path
from capsule.effects.reading import InTime
from capsule.errors import ToolError
from capsule.policy.globs import Glob, compile_glob

MAX_SCANNED = 100_000  # entries looked at for one listing: under a second, and some megabytes for their names

Visible: TypeAlias = Callable[[Components], bool]
"""Whether the entry with this absolute real path (a link is its own path) may be shown.

Asked once for each entry that the pattern matches, and for nothing else. False hides that entry alone: a directory
is gone through whether it is shown or not, because a rule may show what lies beneath it, and each thing beneath is
asked for by its own path.
"""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK
_PASSED_OVER = LINK_APPEARED | {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM}


def list_entries(
    anchors: Anchors, grant: FileGrant, *, pattern: str, offset: int, limit: int, visible: Visible, in_time: InTime
) -> Listing:
    """The entries from `offset` in code-point order of their paths; a directory that cannot be read looks empty."""
    try:
        reach = _Reach(pattern)
    except ValueError as error:
        raise ToolError(2002, f"pattern: {error}", hint="* ? ** [abc] {a,b} and \\ are understood") from None
    try:
        root = anchors.open_granted(grant, _DIRECTORY)
        try:
            scan = _Scan(anchors, root, anchors.absolute(grant), reach, visible, in_time)
            return scan.page(offset, limit)
        finally:
            os.close(root)
    except NotADirectoryError:
        raise ToolError(2003, f"{grant_path(grant)} is not a directory", hint="use fs.read for a file") from None
    except OSError as error:
        raise failure(error, "list", grant) from error


class _Reach:
    """What a pattern matches, and into which directories it can reach.

    One glob for each leading component: a walk asks for a directory only after the one it is in.
    """

    def __init__(self, pattern: str) -> None:
        parts = [part for part in pattern.split("/") if part not in ("", ".")]
        self._glob = compile_glob(pattern)
        self._heads: list[Glob] = []
        for part in parts:
            if "**" in part or any(letter in part for letter in "{[\\"):
                break  # from here on it may span components
            self._heads.append(compile_glob(part))
        self._depth = len(parts) if len(self._heads) == len(parts) else None

    def matches(self, path: Components, *, directory: bool) -> bool:
        return self._glob.match(path, directory=directory)

    def goes_beneath(self, directory: Components) -> bool:
        if self._depth is not None and len(directory) >= self._depth:
            return False
        depth = len(directory)
        return depth > len(self._heads) or self._heads[depth - 1].match(directory[-1:])


class _Scan:
    """One walk, in order of the paths' text; it holds one directory open at a time besides the root."""

    def __init__(
        self, anchors: Anchors, root: int, base: Components, reach: _Reach, visible: Visible, in_time: InTime
    ) -> None:
        self._anchors = anchors
        self._root = root
        self._base = base
        self._reach = reach
        self._visible = visible
        self._in_time = in_time
        self._scanned = 0
        self._skipped = 0
        self._cut = False

    def page(self, offset: int, limit: int) -> Listing:
        entries: list[Entry] = []
        truncated = False
        for position, entry in enumerate(self._entries()):
            if len(entries) == limit:
                truncated = True
                break
            if position >= offset:
                entries.append(entry)
        return Listing(entries=tuple(entries), truncated=truncated or self._cut, skipped_names=self._skipped)

    def _entries(self) -> Iterator[Entry]:
        pending = [iter(self._items(self._root, ()))]
        while pending:
            item = next(pending[-1], None)
            if item is None:
                pending.pop()
            elif isinstance(item, Entry):
                yield item
            else:
                pending.append(iter(self._beneath(item)))

    def _beneath(self, directory: Components) -> list[Entry | Components]:
        try:
            descriptor = self._anchors.beneath.open(self._root, directory, _DIRECTORY)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                self._cut = True  # there is more, and nobody can name it in one path
            elif error.errno not in _PASSED_OVER:
                raise
            return []
        try:
            return self._items(descriptor, directory)
        finally:
            os.close(descriptor)

    def _items(self, descriptor: int, directory: Components) -> list[Entry | Components]:
        """What one directory holds, entries and directories to go into, ordered as the whole paths are.

        What is beneath `a` is ordered by `a/`, so it comes after `a` and after `a-b`.
        """
        items: list[tuple[str, Entry | Components]] = []
        with os.scandir(descriptor) as found:
            for one in found:
                if self._scanned >= MAX_SCANNED:
                    self._cut = True
                    break
                self._scanned += 1
                self._in_time()
                name = _text(one.name)
                if name is None:
                    self._skipped += not directory or self._visible((*self._base, *directory))
                    continue
                path = (*directory, name)
                entry = self._entry(one, path)
                if entry is not None:
                    items.append((name, entry))
                if _is_directory(one) and self._reach.goes_beneath(path):
                    items.append((name + "/", path))
        items.sort(key=lambda item: item[0])
        return [item for _, item in items]

    def _entry(self, one: os.DirEntry[str], path: Components) -> Entry | None:
        if not self._reach.matches(path, directory=_is_directory(one)) or not self._visible((*self._base, *path)):
            return None
        try:
            return Entry(path="/".join(path), type=_type(one), size=_size(one))
        except OSError as error:
            if error.errno not in _PASSED_OVER:
                raise
            return None  # gone since its name was read, or in a directory that shows names and nothing else


def _text(name: str) -> str | None:
    if name.isascii():
        return name
    try:
        return os.fsencode(name).decode()
    except UnicodeDecodeError:
        return None


def _is_directory(one: os.DirEntry[str]) -> bool:
    return one.is_dir(follow_symlinks=False)


def _type(one: os.DirEntry[str]) -> str:
    if one.is_symlink():
        return "symlink"
    if _is_directory(one):
        return "directory"
    return "file" if one.is_file(follow_symlinks=False) else "other"


def _size(one: os.DirEntry[str]) -> int | None:
    return one.stat(follow_symlinks=False).st_size if one.is_file(follow_symlinks=False) else None
