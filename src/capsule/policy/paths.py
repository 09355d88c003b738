"""Path patterns of a policy: anchored by how they begin, bound once to the real directories of a run.

>>> from capsule.policy.paper import PAPER_PLACES
>>> pattern = PathPattern.parse("./docs/**/*.md", unanchored_allowed=False)
>>> [bound] = pattern.bind(PAPER_PLACES, lambda components: components)
>>> bound.matches(("workdir", "docs", "a.md"))
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from capsule.calls import Components, Places
from capsule.policy.folding import fold_names, fold_segments
from capsule.policy.globs import Anchor, Expansion, Room, expand, expansion
from capsule.policy.segments import DoubleStar, Literal, Segments, ends_in_double_star, is_literal, literal_depth, match


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPattern:
    """One expansion of a pattern as segments from the root; `outside` holds it back from paths in that directory."""

    text: str
    segments: Segments
    anchor_depth: int = 0  # leading segments that the anchor gave and nobody spelled
    outside: Components | None = None

    @property
    def is_literal(self) -> bool:
        """Without wildcards: the only kind that `protected: allow` trusts."""
        return is_literal(self.segments)

    def matches(
        self,
        components: Components,
        *,
        beneath: bool = False,
        hidden: bool = True,
        hangs: bool = False,
        folded: bool = False,
    ) -> bool:
        """`beneath` (deny): also what lies below what is named, hidden or not. `hidden=False`: a dot must be spelled.

        `hangs`: a last `/**` also covers the directory it hangs from (fs.list). `folded`: or under folded names.
        """
        return _covers(self.segments, self.outside, components, beneath=beneath, hidden=hidden, hangs=hangs) or (
            folded
            and _covers(
                fold_segments(self.segments),
                None if self.outside is None else fold_names(self.outside),
                fold_names(components),
                beneath=beneath,
                hidden=hidden,
                hangs=hangs,
            )
        )


def _covers(
    segments: Segments, outside: Components | None, names: Components, *, beneath: bool, hidden: bool, hangs: bool
) -> bool:
    if outside is not None and is_within(names, outside):
        return False
    shortest = 0 if beneath else len(names)
    hidden = hidden or beneath
    if any(match(segments, names[:depth], hidden=hidden) for depth in range(len(names), shortest - 1, -1)):
        return True
    return hangs and ends_in_double_star(segments) and match(segments[:-1], names, hidden=hidden)


def is_within(names: Components, directory: Components) -> bool:
    """The directory itself, or something below it."""
    return names[: len(directory)] == directory


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPattern:
    """A pattern as written; it knows no machine yet."""

    text: str
    expansions: tuple[Expansion, ...]
    unanchored_allowed: bool

    @classmethod
    def parse(cls, text: str, *, unanchored_allowed: bool, room: Room | None = None) -> PathPattern:
        """`unanchored_allowed` is for bars: there a leading `**/` looks everywhere. ValueError: a bad one.

        `room` is what all patterns of a policy share; one that is read alone needs none.
        """
        return cls(
            text=text,
            expansions=tuple(expansion(units) for units in expand(text, room or Room())),
            unanchored_allowed=unanchored_allowed,
        )

    @property
    def is_literal(self) -> bool:
        return all(is_literal(each.segments) for each in self.expansions)

    def bind(
        self, places: Places, directory: Callable[[Components], Components], *, as_written_too: bool = False
    ) -> tuple[BoundPattern, ...]:
        """Anchors and literal leading directories in real form.

        `as_written_too` (for what bars a call) keeps the form before links were followed beside the real one: a path
        is barred as it was written too, and a link that is turned elsewhere later must not lead past the rule.
        """
        bound = (
            pattern
            for each in self.expansions
            for pattern in self._bind(each, places, directory, as_written_too=as_written_too)
        )
        return tuple(dict.fromkeys(bound))

    def _bind(
        self,
        each: Expansion,
        places: Places,
        directory: Callable[[Components], Components],
        *,
        as_written_too: bool,
    ) -> Iterable[BoundPattern]:
        anchor = {Anchor.ROOT: (), Anchor.HOME: places.home}.get(each.anchor, places.workdir)
        hung = _hung(each.segments) if each.anchor is not Anchor.NONE else each.segments
        segments = (*_literals(anchor), *hung)
        real = _real_leading(anchor, hung, places.workdir, directory)
        yield BoundPattern(text=self.text, segments=real, anchor_depth=len(anchor))
        if as_written_too:
            yield BoundPattern(text=self.text, segments=segments, anchor_depth=len(anchor))
        if self.unanchored_allowed and each.floats:
            yield BoundPattern(text=self.text, segments=each.segments, outside=places.workdir)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathConstraint:
    """What a rule says of paths; without a pattern it covers nothing."""

    patterns: tuple[PathPattern, ...]
    hidden: bool = False
    protected: bool = False


def _hung(segments: Segments) -> Segments:
    """`./**`, `~/**` and `/**` are what lies beneath; only `**` alone is the workdir too."""
    return (DoubleStar(least=1),) if segments == (DoubleStar(),) else segments


def _literals(names: Components) -> tuple[Literal, ...]:
    return tuple(Literal(text=name) for name in names)


def _real_leading(
    anchor: Components, segments: Segments, workdir: Components, directory: Callable[[Components], Components]
) -> Segments:
    """The literal directories below an anchor (which is real) in real form, up to where they reach the workdir.

    They are taken one by one, so that of a path into the workdir only the part before it is resolved: a link inside
    the workdir never moves a pattern. The last name of a pattern is not a directory it hangs from.
    """
    real = anchor
    depth = max(0, min(literal_depth(segments), len(segments) - 1))
    for index, part in enumerate(segments[:depth]):
        if is_within(real, workdir):
            return (*_literals(real), *segments[index:])
        assert isinstance(part, Literal)
        real = directory((*real, part.text))
    return (*_literals(real), *segments[depth:])
