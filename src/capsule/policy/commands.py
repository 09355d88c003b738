"""What a rule says of commands, and an index over many such rules."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from capsule.calls import Components, ConcreteCommand, Places
from capsule.canon import Json
from capsule.policy.command_patterns import BoundCommand, CommandPattern, Mismatch, lookups
from capsule.policy.segments import Literal, Wild, holds, star_text
from capsule.policy.trie import SegmentTrie

T = TypeVar("T", bound=Hashable)

_DENIED_TOKEN = 1004


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandConstraint:
    """What a rule says of commands, as written; None means that nothing is said.

    `deny_tokens` is a seat belt and no control: it keeps an honest caller from an argument that was not meant, and
    hundreds of other spellings remain. In a deny it narrows: the command must hold one of the tokens.
    """

    deny: bool
    patterns: tuple[CommandPattern, ...] | None = None
    deny_tokens: tuple[str, ...] | None = None

    @classmethod
    def read(cls, raw: Mapping[str, Json], *, deny: bool) -> CommandConstraint:
        """From the document, whose shape has been checked; ValueError says what is wrong."""
        written = [cast("str | Sequence[str]", raw["pattern"])] if "pattern" in raw else []
        written += cast("Sequence[str | Sequence[str]]", raw.get("patterns", ()))
        written += [_executable(name) for name in cast("Sequence[str]", raw.get("executables", ()))]
        named = not raw.keys().isdisjoint({"pattern", "patterns", "executables"})
        if not named and not deny:
            raise ValueError("which commands? add `executables: [git]`, or `patterns: [git status]`")
        return cls(
            deny=deny,
            patterns=tuple(CommandPattern.parse(each, deny=deny) for each in written) if named else None,
            deny_tokens=tuple(cast("Sequence[str]", raw["deny_tokens"])) if "deny_tokens" in raw else None,
        )

    def bind(self, places: Places, directory: Callable[[Components], Components]) -> BoundCommands:
        patterns = self.patterns if self.patterns is not None else (CommandPattern.parse("**", deny=self.deny),)
        return BoundCommands(
            constraint=self,
            patterns=tuple(pattern.bind(places, directory) for pattern in patterns),
            denied=tuple(star_text(text, question=True) for text in self.deny_tokens or ()),
        )


def _executable(name: str) -> tuple[str, str]:
    if not name or any(sign in name for sign in "*? "):
        raise ValueError(f"{name!r} is not the name of a program: executables are spelled, patterns have wildcards")
    return (name.replace("\\", "\\\\"), "**")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCommands:
    """A constraint with the directories of its programs found."""

    constraint: CommandConstraint
    patterns: tuple[BoundCommand, ...]
    denied: tuple[Literal | Wild, ...]

    def mismatch(self, command: ConcreteCommand) -> Mismatch | None:
        """Why the command is not under this constraint, by the pattern that went furthest; None if it is."""
        if command.problem is not None:
            return Mismatch(reason=command.problem)
        closest: Mismatch | None = Mismatch(reason="no pattern is named")
        for number, pattern in enumerate(self.patterns):
            found = pattern.mismatch(command)
            if found is None:
                return self.token_mismatch(command)
            if number == 0 or (closest and (found.token or 0) > (closest.token or 0)):
                closest = found
        return closest

    def token_mismatch(self, command: ConcreteCommand) -> Mismatch | None:
        """What `deny_tokens` says of a command that a pattern matches."""
        denied = self._denied_token(command)
        if self.constraint.deny:
            if self.constraint.deny_tokens is None or denied is not None:
                return None
            return Mismatch(reason="it holds none of the denied tokens")
        if denied is None:
            return None
        return Mismatch(token=denied, code=_DENIED_TOKEN, reason=f"{command.argv[denied]!r} is a denied token")

    def _denied_token(self, command: ConcreteCommand) -> int | None:
        """A whole token counts, the option before its `=`, and a program's name without its directories."""
        for index, token in enumerate(command.argv):
            forms = {token}
            if index == 0:
                forms.add(token.rpartition("/")[2])
            if token.startswith("-"):
                forms.add(token.partition("=")[0])
            if any(holds(pattern, form) for pattern in self.denied for form in forms):
                return index
        return None


class CommandIndex(Generic[T]):
    """Many command constraints; a look-up costs what the command's tokens cost."""

    __slots__ = ("_deny", "_entries", "_trie")

    def __init__(self, items: Iterable[tuple[BoundCommands, T]]) -> None:
        self._entries = [(bound, pattern, value) for bound, value in items for pattern in bound.patterns]
        self._deny = any(bound.constraint.deny for bound, _, _ in self._entries)
        self._trie = SegmentTrie(
            (key, number) for number, (_, pattern, _) in enumerate(self._entries) for key in pattern.filed_under()
        )

    @classmethod
    def build(cls, items: Iterable[tuple[BoundCommands, T]]) -> CommandIndex[T]:
        return cls(items)

    def matches(self, command: ConcreteCommand) -> set[T]:
        """The values of all constraints that the command is under."""
        if command.problem is not None:
            return set()
        found: set[int] = set()
        for names in lookups(command, deny=self._deny):
            found |= self._trie.matches(names)
        entries = (self._entries[number] for number in found)
        return {
            value
            for bound, pattern, value in entries
            if pattern.mismatch(command) is None and bound.token_mismatch(command) is None
        }
