"""An index over many patterns: what a look-up costs follows the path, not the number of patterns.

Patterns that begin alike share their way through the trie; a literal name is one look-up in a dict, a wildcard is
found by its literal text, and `**` is a place that a walk may stay at.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from capsule.calls import Components
from capsule.policy.folding import fold_names, fold_segments
from capsule.policy.paths import BoundPattern, is_within
from capsule.policy.segments import DoubleStar, Literal, Segments, Wild, is_hidden
from capsule.policy.wildcards import WildTable

T = TypeVar("T", bound=Hashable)
K = TypeVar("K", str, Wild)


class _Node(Generic[T]):
    """A place in the trie: `here` are the patterns that end at it, `below` those that end in `**` right after it.

    Most places have one way on and nothing else, so what a place has not is None: that is half of its memory.
    """

    __slots__ = ("below", "edges", "here", "literals", "star", "stays", "wilds")

    def __init__(self, *, stays: bool = False) -> None:
        self.stays = stays  # it stands after a `**`, which may take the next name too
        self.here: list[T] | None = None
        self.below: list[T] | None = None
        self.literals: dict[str, _Node[T]] | None = None
        self.edges: dict[Wild, _Node[T]] | None = None
        self.wilds: WildTable[_Node[T]] | None = None  # the edges once more, for look-ups
        self.star: _Node[T] | None = None

    def add(self, segments: Segments, value: T) -> None:
        node = self
        last = segments[-1] if segments else None
        for part in segments[:-1] if isinstance(last, DoubleStar) else segments:
            node = node.after(part)
        if isinstance(last, DoubleStar):
            node.below = _with(node.below, value)
        if not isinstance(last, DoubleStar) or not last.least:
            node.here = _with(node.here, value)

    def after(self, part: Literal | Wild | DoubleStar) -> _Node[T]:
        match part:
            case Literal():
                if self.literals is None:
                    self.literals = {}
                return _at(self.literals, part.text)
            case Wild():
                if self.edges is None:
                    self.edges = {}
                return _at(self.edges, part)
            case DoubleStar():
                if self.star is None:
                    self.star = _Node(stays=True)
                return self.star

    def seal(self) -> None:
        """Make the edges findable, all the way down."""
        todo = [self]
        while todo:
            node = todo.pop()
            if node.edges is not None:
                node.wilds = WildTable(node.edges)
                todo += node.edges.values()
            if node.literals is not None:
                todo += node.literals.values()
            if node.star is not None:
                todo.append(node.star)

    def step(self, name: str, following: dict[_Node[T], None], *, hidden: bool) -> None:
        """Enter into `following` every place that this name leads to."""
        if self.stays and (hidden or not is_hidden(name)):
            following[self] = None
        literal = None if self.literals is None else self.literals.get(name)
        if literal is not None:
            literal.enter(following)
        if self.wilds is not None:
            for node in self.wilds.find(name, hidden=hidden):
                node.enter(following)

    def enter(self, following: dict[_Node[T], None]) -> None:
        """Here, and behind a `**` after it, which may take no name at all."""
        following[self] = None
        if self.star is not None:
            following[self.star] = None


def _with(values: list[T] | None, value: T) -> list[T]:
    if values is None:
        return [value]
    values.append(value)
    return values


def _at(ways: dict[K, _Node[T]], name: K) -> _Node[T]:
    node = ways.get(name)
    if node is None:
        node = ways[name] = _Node()
    return node


class SegmentTrie(Generic[T]):
    """Segments to values, without anchors: what paths, URLs and commands have in common."""

    __slots__ = ("_root",)

    def __init__(self, items: Iterable[tuple[Segments, T]]) -> None:
        self._root: _Node[T] = _Node()
        for segments, value in items:
            self._root.add(segments, value)
        self._root.seal()

    def matches(self, names: Components, *, beneath: bool = False, hidden: bool = True, hangs: bool = False) -> set[T]:
        hidden = hidden or beneath  # what bars a call is not kept from hidden names
        found: set[T] = set()
        shown_from = 0 if hidden else _shown_from(names)
        nodes: dict[_Node[T], None] = {}
        self._root.enter(nodes)
        for position, name in enumerate(names):
            following: dict[_Node[T], None] = {}
            for node in nodes:
                if node.below and position >= shown_from:
                    found.update(node.below)
                if beneath and node.here:
                    found.update(node.here)
                node.step(name, following, hidden=hidden)
            if not following:
                return found
            nodes = following
        for node in nodes:
            found.update(node.here or ())
            if hangs:
                found.update(node.below or ())
        return found


def _shown_from(names: Components) -> int:
    """From here on no name is hidden, so that a last `**` may take the rest."""
    return next((index + 1 for index in range(len(names) - 1, -1, -1) if is_hidden(names[index])), 0)


class PatternIndex(Generic[T]):
    """Bound path patterns to values; `matches` says which values have a pattern that covers the path."""

    __slots__ = ("_folded", "_groups", "_items")

    def __init__(self, items: tuple[tuple[BoundPattern, T], ...]) -> None:
        self._items = items
        self._groups = _group((pattern.outside, pattern.segments, value) for pattern, value in items)
        self._folded: dict[Components | None, SegmentTrie[T]] | None = None

    @classmethod
    def build(cls, items: Iterable[tuple[BoundPattern, T]]) -> PatternIndex[T]:
        return cls(tuple(items))

    def matches(
        self,
        components: Components,
        *,
        beneath: bool = False,
        hidden: bool = True,
        hangs: bool = False,
        folded: bool = False,
    ) -> set[T]:
        """The options mean what they mean in `BoundPattern.matches`."""
        found = _search(self._groups, components, beneath=beneath, hidden=hidden, hangs=hangs)
        if folded:
            groups = self._fold()
            found |= _search(groups, fold_names(components), beneath=beneath, hidden=hidden, hangs=hangs)
        return found

    def _fold(self) -> dict[Components | None, SegmentTrie[T]]:
        """Built at first use: most volumes tell cases apart."""
        if self._folded is None:
            self._folded = _group(
                (
                    None if pattern.outside is None else fold_names(pattern.outside),
                    fold_segments(pattern.segments),
                    value,
                )
                for pattern, value in self._items
            )
        return self._folded


def _group(
    items: Iterable[tuple[Components | None, Segments, T]],
) -> dict[Components | None, SegmentTrie[T]]:
    """One trie for each directory that patterns look outside of, which is the workdir or none."""
    groups: dict[Components | None, list[tuple[Segments, T]]] = {}
    for outside, segments, value in items:
        groups.setdefault(outside, []).append((segments, value))
    return {outside: SegmentTrie(group) for outside, group in groups.items()}


def _search(
    groups: dict[Components | None, SegmentTrie[T]],
    names: Components,
    *,
    beneath: bool,
    hidden: bool,
    hangs: bool,
) -> set[T]:
    found: set[T] = set()
    for outside, trie in groups.items():
        if outside is None or not is_within(names, outside):
            found |= trie.matches(names, beneath=beneath, hidden=hidden, hangs=hangs)
    return found
