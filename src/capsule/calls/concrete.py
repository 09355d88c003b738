"""A call made concrete, once: what is decided on is what is later acted on.

`resolve` fills these values in; nobody parses a path, a URL or a command a second time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from capsule.calls.call import Source
from capsule.calls.definition import Guard, SideEffect, ToolDefinition
from capsule.canon import Json

Components: TypeAlias = tuple[str, ...]
"""An absolute path as the names below the root: `/etc/hosts` is `("etc", "hosts")`, `/` is `()`."""

Resolved: TypeAlias = Literal["disk", "paper"]

CREDENTIAL_HEADERS = frozenset({"authorization", "cookie"})
SECRET_HANDLE = re.compile(r"secret:([A-Za-z_]\w*)")  # stands for a value that the call never holds


class Access(StrEnum):
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcretePath:
    """`problem` says why there is no real path (NUL, a link loop, too long); such a path is denied."""

    argument: str
    access: Access
    text: str
    written: Components  # absolute, `.` and `..` removed by text alone, links not followed
    real: Components  # as the kernel would go, links followed
    folded: bool = False  # the volume does not tell cases apart
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcreteUrl:
    argument: str
    text: str
    href: str = ""  # normalised, without fragment
    scheme: str = ""
    host: str = ""  # normalised; IPv6 without brackets
    port: int = 0  # the effective one
    path: str = "/"
    query: str = ""  # as sent, without "?"
    public: bool = True  # False for a literal address outside the public ranges
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcreteCommand:
    argument: str
    argv: tuple[str, ...]
    program: Components | None = None  # the real program; None where nothing was looked up
    invoked: Components | None = None  # where the name was found: directories resolved, last name as written
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcreteCall:
    definition: ToolDefinition
    args: Mapping[str, Json]  # valid, defaults filled in
    source: Source
    resolved: Resolved
    paths: tuple[ConcretePath, ...] = ()
    urls: tuple[ConcreteUrl, ...] = ()
    commands: tuple[ConcreteCommand, ...] = ()
    payload_bytes: int | None = None  # how much a write would write
    marker: bool = False  # an argument holds a redaction marker
    flags: tuple[str, ...] = ()

    @property
    def tool(self) -> str:
        return self.definition.name

    @property
    def side_effect(self) -> SideEffect:
        """The class of the tool; a read that carries credentials acts in somebody's name."""
        usual = self.definition.side_effect_class
        return SideEffect.AUTH if usual is SideEffect.READ and self.carries_credentials() else usual

    def carries_credentials(self) -> bool:
        headers = [self.args.get(name) for name, guard in self.definition.guards.items() if guard is Guard.HEADERS]
        named = {name.lower() for each in headers if isinstance(each, Mapping) for name in each}
        return not CREDENTIAL_HEADERS.isdisjoint(named)
