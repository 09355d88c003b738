"""Path patterns as people write them: `*`, `?`, `**`, `[…]`, `{a,b}` and `\\`, read once into segments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from capsule.calls import Components
from capsule.policy.segments import (
    ANY,
    CharSet,
    DoubleStar,
    Mark,
    Segment,
    Segments,
    Unit,
    match,
    segment,
    tidy,
)

MAX_EXPANSIONS = 256  # a brace list multiplies; the policy language promises this bound
MAX_LENGTH = 4096  # PATH_MAX of Linux: a longer pattern can match no path
MAX_DOUBLE_STARS = 16  # each is a place where a walk may stay, for every name of every path
MAX_WRITTEN_OUT = 65_536  # characters of all expansions of one pattern: 256 of 256 characters
MAX_NESTING = 16  # lists in lists: 256 expansions never need more, and reading recurses

Units: TypeAlias = tuple[Unit, ...]

# The C locale's, as git has them.
_POSIX: dict[str, tuple[tuple[str, str], ...]] = {
    "alnum": (("0", "9"), ("A", "Z"), ("a", "z")),
    "alpha": (("A", "Z"), ("a", "z")),
    "blank": (("\t", "\t"), (" ", " ")),
    "cntrl": (("\0", "\x1f"), ("\x7f", "\x7f")),
    "digit": (("0", "9"),),
    "graph": (("!", "~"),),
    "lower": (("a", "z"),),
    "print": ((" ", "~"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": (("\t", "\r"), (" ", " ")),
    "upper": (("A", "Z"),),
    "word": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")),
    "xdigit": (("0", "9"), ("A", "F"), ("a", "f")),
}


_MAX_WEIGHT = 3_000_000
_NAME_WEIGHT = 12  # what a name takes, in characters: in time and in memory


class Room:
    """What the patterns of one policy may come to, once their lists are written out.

    Ten thousand rules with five patterns each fit. What fits is indexed in a second or two and some 100 MB, of which
    most is for the names between slashes.
    """

    def __init__(self) -> None:
        self._left = _MAX_WEIGHT

    def take(self, choices: Sequence[Units]) -> None:
        names = sum(units.count(Mark.SLASH) + 2 for units in choices)
        self._left -= _NAME_WEIGHT * names + sum(map(_length, choices))
        if self._left < 0:
            raise ValueError(
                "the patterns up to here, with their lists written out, are more than one policy can hold; "
                "write fewer or shorter patterns, and fewer lists"
            )


def _length(units: Units) -> int:
    return sum(len(unit.ranges) if isinstance(unit, CharSet) else 1 for unit in units)


class Anchor(Enum):
    """What a pattern hangs from, told by how it begins."""

    ROOT = "/"
    HOME = "~/"
    DOT = "./"
    NONE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """A pattern after its brace lists: `{a,/b}` is one that is anchored and one that is not."""

    anchor: Anchor
    segments: Segments
    directory: bool  # it ended in a slash
    floats: bool  # it began with `**/`, which a deny looks for everywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Glob:
    """A plain relative pattern without floors; `compile_glob("**/*.md").match(("docs", "a.md"))`."""

    text: str
    expansions: tuple[Expansion, ...]

    def match(self, components: Components, *, directory: bool = False) -> bool:
        """`directory` says that a directory is looked at: only such a thing matches a pattern that ends in `/`."""
        return any(
            (directory or not expansion.directory) and match(expansion.segments, components)
            for expansion in self.expansions
        )


def compile_glob(pattern: str) -> Glob:
    """ValueError says what is wrong with the pattern."""
    expansions = tuple(expansion(units, tilde=False) for units in expand(pattern, Room()))
    if any(each.anchor is Anchor.ROOT for each in expansions):
        raise ValueError(f"{pattern!r} begins with '/': a relative pattern is needed here")
    return Glob(text=pattern, expansions=expansions)


def expansion(units: Units, *, tilde: bool = True) -> Expansion:
    """Names without empty ones and `.`; `..` is refused, because no resolved path has one."""
    names = split(units)
    parts: list[Segment] = []
    for name in names:
        if name == (".", "."):
            raise ValueError("'..' in a pattern: name the directory itself")
        if name not in ((), (".",)):
            parts.append(segment(name))
    if sum(isinstance(part, DoubleStar) for part in parts) > MAX_DOUBLE_STARS:
        raise ValueError(f"more than {MAX_DOUBLE_STARS} '**' in one pattern")
    anchor = _anchor(names, tilde=tilde)
    return Expansion(
        anchor=anchor,
        segments=tidy(parts[1:] if anchor is Anchor.HOME else parts),
        directory=len(names) > 1 and not names[-1],
        floats=anchor is Anchor.NONE and len(parts) > 1 and isinstance(parts[0], DoubleStar),
    )


def _anchor(names: Sequence[Units], *, tilde: bool) -> Anchor:
    first = names[0]
    if not first:
        return Anchor.ROOT
    if tilde and first == (Mark.TILDE,):
        return Anchor.HOME
    return Anchor.DOT if first == (".",) else Anchor.NONE


def split(units: Units) -> list[Units]:
    """The units between slashes, empty ones included."""
    names: list[list[Unit]] = [[]]
    for unit in units:
        if unit is Mark.SLASH:
            names.append([])
        else:
            names[-1].append(unit)
    return [tuple(name) for name in names]


def expand(pattern: str, room: Room) -> tuple[Units, ...]:
    """The pattern as units, once for each choice from its brace lists."""
    if not pattern:
        raise ValueError("an empty pattern matches nothing: '.' is the directory itself, '**' all beneath it")
    if len(pattern) > MAX_LENGTH:
        raise ValueError(f"a pattern of {len(pattern)} characters: at most {MAX_LENGTH} are allowed")
    if "\0" in pattern:
        raise ValueError("a pattern with a NUL character")
    choices = _Reader(pattern).read()
    if () in choices:
        raise ValueError(f"{pattern!r}: one of its lists leaves an empty pattern")
    if sum(map(_length, choices)) > MAX_WRITTEN_OUT:
        raise ValueError(
            f"{_shown(pattern)}: more than {MAX_WRITTEN_OUT:,} characters with its lists written out; "
            "write several patterns, with fewer lists"
        )
    room.take(choices)
    return tuple(dict.fromkeys(choices))


_PLAIN = re.compile(r"[^\[{,}*?~/\\]+")
_MARKS: dict[str, Unit] = {"*": Mark.STAR, "/": Mark.SLASH, "~": Mark.TILDE, "?": ANY}


class _Reader:
    """Reads left to right; `depth` is how many brace lists are open."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def read(self) -> list[Units]:
        choices = self._sequence(depth=0)
        assert self.at == len(self.text)
        return choices

    def _sequence(self, depth: int) -> list[Units]:
        choices: list[Units] = [()]
        run: list[Unit] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if depth and char in ",}":
                break
            if plain := _PLAIN.match(self.text, self.at):
                run.extend(plain.group())
                self.at = plain.end()
            elif char != "{":
                run.append(self._unit())
            elif len(more := self._braces(depth + 1)) == 1:
                run.extend(more[0])
            else:
                choices = self._product(choices, run, more)
                run = []
        return [(*choice, *run) for choice in choices]

    def _product(self, choices: list[Units], run: list[Unit], more: list[Units]) -> list[Units]:
        self._bound(len(choices) * len(more))
        return [(*choice, *run, *each) for choice in choices for each in more]

    def _braces(self, depth: int) -> list[Units]:
        if depth > MAX_NESTING:
            raise ValueError(f"{_shown(self.text)}: lists nested more than {MAX_NESTING} deep")
        start = self.at
        lists: list[list[Units]] = []
        while not lists or self.text[self.at : self.at + 1] == ",":
            self.at += 1
            lists.append(self._sequence(depth))
            self._bound(sum(map(len, lists)))
        if self.at >= len(self.text):
            raise ValueError(
                f"{_shown(self.text)}: the '{{' at {start + 1} is not closed; write '\\{{' for the character"
            )
        self.at += 1
        if len(lists) == 1:  # not a list: `{}` and `{a}` are text, as in a shell
            return [("{", *units, "}") for units in lists[0]]
        return [units for each in lists for units in each]

    def _bound(self, expansions: int) -> None:
        if expansions > MAX_EXPANSIONS:
            raise ValueError(f"{_shown(self.text)}: more than {MAX_EXPANSIONS} expansions")

    def _unit(self) -> Unit:
        char = self.text[self.at]
        if char == "[":
            return self._char_set()
        if char == "\\":
            return Mark.SLASH if (escaped := self._char()) == "/" else escaped
        self.at += 1
        return _MARKS.get(char, char)

    def _char(self) -> str:
        """The character here, or the one that a backslash here escapes."""
        if self.text[self.at] == "\\":
            self.at += 1
            if self.at == len(self.text):
                raise ValueError(f"{_shown(self.text)}: nothing follows the last '\\'")
        self.at += 1
        return self.text[self.at - 1]

    def _char_set(self) -> CharSet:
        start = self.at
        self.at += 1
        negated = self.text[self.at : self.at + 1] in ("!", "^")
        self.at += negated
        ranges: list[tuple[str, str]] = []
        first = self.at
        while self.text[self.at : self.at + 1] != "]" or self.at == first:
            if self.at >= len(self.text):
                raise ValueError(
                    f"{_shown(self.text)}: the '[' at {start + 1} is not closed; write '\\[' for the character"
                )
            ranges.extend(self._named_class() or [self._range()])
        self.at += 1
        kept = tuple(each for each in ranges if each != ("/", "/"))
        if not kept and not negated:
            raise ValueError(f"{_shown(self.text)}: the class at {start + 1} matches nothing, because none matches '/'")
        return CharSet(ranges=kept, negated=negated)

    def _named_class(self) -> Sequence[tuple[str, str]]:
        if not self.text.startswith("[:", self.at):
            return ()
        end = self.text.find(":]", self.at + 2)
        name = self.text[self.at + 2 : end]
        if end < 0 or not name.isalpha():
            return ()
        if name not in _POSIX:
            raise ValueError(f"{_shown(self.text)}: no class [:{name}:]; there are {', '.join(_POSIX)}")
        self.at = end + 2
        return _POSIX[name]

    def _range(self) -> tuple[str, str]:
        low = self._char()
        if self.text[self.at : self.at + 1] != "-" or self.text[self.at + 1 : self.at + 2] in ("]", ""):
            return low, low
        self.at += 1
        high = self._char()
        if high < low:
            raise ValueError(f"{_shown(self.text)}: the range {low}-{high} runs backwards and matches nothing")
        return low, high


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 80 else pattern[:77] + "…")
