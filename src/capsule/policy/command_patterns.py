"""Patterns of commands, token by token; a command is a list of arguments and never passes through a shell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from capsule.calls import Components, ConcreteCommand, Places
from capsule.policy.paths import is_within
from capsule.policy.segments import DoubleStar, Literal, Segments, Wild, holds, star_text

END_OF_OPTIONS = "--"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The first thing that does not fit; `token` is its index in the command, where it is about one token."""

    reason: str
    code: int = 1003
    token: int | None = None


class _Anchor(Enum):
    BARE = "a name, found on the search path"
    ROOT = "/"
    HOME = "~/"
    WORKDIR = "./"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Program:
    """The first token: literal directories that can be resolved, and the rest, whose wildcards may span directories."""

    anchor: _Anchor
    directories: Components
    rest: str

    @classmethod
    def parse(cls, token: str) -> _Program:
        if "/" not in token:
            return cls(anchor=_Anchor.BARE, directories=(), rest=token)
        anchor = _Anchor.WORKDIR
        for known in (_Anchor.ROOT, _Anchor.HOME):
            if token.startswith(known.value):
                anchor, token = known, token.removeprefix(known.value)
        names = [name for name in token.split("/") if name not in ("", ".")]
        if not names or token.endswith("/"):
            raise ValueError(f"{token!r} ends in a directory: a command begins with a program")
        if ".." in names:
            raise ValueError(f"{token!r}: '..' in a pattern: name the directory itself")
        depth = next((index for index, name in enumerate(names) if _is_wild(name)), len(names))
        depth = min(depth, len(names) - 1)
        return cls(anchor=anchor, directories=tuple(names[:depth]), rest="/".join(names[depth:]))


def _is_wild(text: str) -> bool:
    return any(sign in text for sign in "*?\\")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPattern:
    """A pattern as written. In a deny it has `**` at its end, said or not, and `*` takes options too."""

    text: str
    deny: bool
    first: str
    program: _Program
    arguments: tuple[Literal | Wild, ...]
    open_ended: bool

    @classmethod
    def parse(cls, written: str | Sequence[str], *, deny: bool) -> CommandPattern:
        """A list of tokens, or text cut at single spaces; ValueError says what is wrong."""
        tokens = written.split(" ") if isinstance(written, str) else list(written)
        text = written if isinstance(written, str) else " ".join(written)
        if not tokens or not tokens[0] or (isinstance(written, str) and "" in tokens):
            raise ValueError(
                f"{text!r}: an empty token; text is cut at single spaces, a list can hold an empty argument"
            )
        open_ended = tokens[-1] == "**"
        if open_ended:
            tokens = tokens[:-1] or ["*"]
        if "**" in tokens:
            raise ValueError(f"{text!r}: '**' stands only at the end of a command; '*' is one token")
        return cls(
            text=text,
            deny=deny,
            first=tokens[0],
            program=_Program.parse(tokens[0]),
            arguments=tuple(star_text(token, question=True) for token in tokens[1:]),
            open_ended=open_ended or deny,
        )

    def bind(self, places: Places, directory: Callable[[Components], Components]) -> BoundCommand:
        """The program's directory in real form; in a deny as written too."""
        anchors = {_Anchor.ROOT: (), _Anchor.HOME: places.home, _Anchor.WORKDIR: places.workdir}
        where: tuple[Components, ...] = ()
        if self.program.anchor is not _Anchor.BARE:
            written = (*anchors[self.program.anchor], *self.program.directories)
            where = (directory(written), written) if self.deny else (directory(written),)
        return BoundCommand(
            pattern=self, name=star_text(self.program.rest, question=True), directories=tuple(dict.fromkeys(where))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCommand:
    """A pattern with its program's directory found; none for a bare name."""

    pattern: CommandPattern
    name: Literal | Wild
    directories: tuple[Components, ...]

    def mismatch(self, command: ConcreteCommand) -> Mismatch | None:
        if not self._is_program(command):
            return Mismatch(
                token=0, reason=f"the program {command.argv[0]!r} is not {self.pattern.text.split(' ')[0]!r}"
            )
        return self._arguments_mismatch(command.argv[1:])

    def _is_program(self, command: ConcreteCommand) -> bool:
        deny = self.pattern.deny
        if not self.directories:
            names = bare_names(command, deny=deny)
            return any(holds(self.name, name) and (deny or _spelled(self.name, name)) for name in names)
        places = program_places(command, deny=deny)
        return any(self._lies_in(directory, place) for directory in self.directories for place in places)

    def _lies_in(self, directory: Components, place: Components) -> bool:
        if not is_within(place, directory):
            return False
        rest = place[len(directory) :]
        spans = "/" in self.pattern.program.rest
        return (spans or len(rest) == 1) and holds(self.name, "/".join(rest))

    def _arguments_mismatch(self, argv: Sequence[str]) -> Mismatch | None:
        patterns = self.pattern.arguments
        spelled = self.pattern.deny
        for index, (pattern, token) in enumerate(zip(patterns, argv, strict=False), start=1):
            if not holds(pattern, token):
                return Mismatch(token=index, reason=f"{token!r} does not match")
            if not spelled and not _spelled(pattern, token):
                return Mismatch(token=index, reason=f"{token!r} is an option: spell it, or write -* for any")
            spelled = spelled or pattern == Literal(text=END_OF_OPTIONS)
        if len(argv) < len(patterns):
            return Mismatch(reason=f"it ends after {len(argv) + 1} of at least {len(patterns) + 1} tokens")
        if len(argv) > len(patterns) and not self.pattern.open_ended:
            index = len(patterns) + 1
            return Mismatch(token=index, reason=f"{argv[index - 1]!r} is more than the pattern has; ** takes the rest")
        return None

    def filed_under(self) -> Iterator[Segments]:
        """For an index; `lookups` gives what to look for there."""
        rest = (DoubleStar(),) if self.pattern.open_ended else ()
        arguments = (*self.pattern.arguments, *rest)
        if not self.directories:
            yield (_BARE, self.name, *arguments)
        name = DoubleStar() if "/" in self.pattern.program.rest else self.name
        for directory in self.directories:
            yield (_PLACE, *(Literal(text=part) for part in directory), name, _PLACE, *arguments)


# No name in a path is empty or a slash, so these never mean anything else.
_BARE, _PLACE = Literal(text=""), Literal(text="/")


def lookups(command: ConcreteCommand, *, deny: bool) -> Iterator[Components]:
    for name in bare_names(command, deny=deny):
        yield (_BARE.text, name, *command.argv[1:])
    for place in program_places(command, deny=deny):
        yield (_PLACE.text, *place, _PLACE.text, *command.argv[1:])


def _spelled(pattern: Literal | Wild, token: str) -> bool:
    """Whether what begins with a dash is matched by something that does not begin with a wildcard."""
    return isinstance(pattern, Literal) or not pattern.begins_wild or not token.startswith("-")


def bare_names(command: ConcreteCommand, *, deny: bool) -> set[str]:
    """What a pattern without a slash is compared with; a deny looks through directories and links."""
    written = command.argv[0]
    if not deny:
        return set() if "/" in written else {written}
    found = (command.invoked, command.program)
    return {written.rpartition("/")[2], *(place[-1] for place in found if place)}


def program_places(command: ConcreteCommand, *, deny: bool) -> set[Components]:
    """What a pattern with a slash is compared with; in an allow the command must have been written with one."""
    if not deny:
        return {command.invoked} if command.invoked is not None and "/" in command.argv[0] else set()
    return {place for place in (command.invoked, command.program) if place is not None}
