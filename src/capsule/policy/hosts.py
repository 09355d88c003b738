"""Host names as URLs have them after parsing, and patterns of them: a host, or `*.example.com` for names below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ada_url import URL

_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
_HEX = frozenset("0123456789abcdef")
_NOT_IN_A_HOST = frozenset("/\\?#@%*{}\x7f")

MAX_HOST = 253  # the longest name that DNS can ask for


def whatwg(text: str) -> URL:
    """The one parser of URLs; ValueError where browsers would refuse."""
    from ada_url import URL  # noqa: PLC0415 - 15 ms, and most policies and calls name no URL

    return URL(text)


def normal_host(text: str) -> str:
    """A host the way a parsed URL spells it: lower case, punycode, addresses in their one form, no last dot."""
    plain = text.removesuffix(".")
    if is_plain_name(plain) and not _reads_as_number(plain):
        return plain
    if not text or any(char < "!" or char in _NOT_IN_A_HOST for char in text):
        raise ValueError(f"{text!r} is not a host: write a name, an IPv4 address or an IPv6 address")
    bracketed = f"[{text}]" if text.count(":") > 1 and not text.startswith("[") else text
    try:
        url = whatwg(f"http://{bracketed}/")
    except ValueError:
        raise ValueError(f"{text!r} is not a host") from None
    if ":" in bracketed and not bracketed.endswith("]"):
        raise ValueError(f"{text!r} is a host with a port: `ports` names ports")
    host = bare_host(url.hostname)
    if host is None:
        raise ValueError(f"{text!r} is not a host: a name has letters, digits, '-' and '_' between single dots")
    return host


def bare_host(hostname: str) -> str | None:
    """A parsed host without brackets and without the one last dot that says nothing; None if it can be no host."""
    if hostname.startswith("["):
        return hostname[1:-1]
    name = hostname.removesuffix(".")
    return name if is_plain_name(name) else None


def is_plain_name(name: str) -> bool:
    return len(name) <= MAX_HOST and all(label and _NAME_CHARACTERS.issuperset(label) for label in name.split("."))


def _reads_as_number(name: str) -> bool:
    """Such a name is an IPv4 address in one of its spellings, or none; punycode is looked at the same way."""
    last = name.rpartition(".")[2]
    return last.isdigit() or (last.startswith("0x") and _HEX.issuperset(last[2:])) or "xn--" in name


def parents(host: str) -> Iterator[str]:
    """The names that this one lies below, nearest first; an address lies below nothing."""
    while ":" not in host and "." in host:
        host = host.partition(".")[2]
        yield host


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPattern:
    """`below` stands for the names below the host and never for the host itself."""

    host: str
    below: bool = False

    @classmethod
    def parse(cls, text: str) -> HostPattern:
        if not text.startswith("*."):
            if text == "*":
                raise ValueError("'*' is not a host; `pattern: \"**\"` stands for every URL")
            return cls(host=normal_host(text))
        suffix = normal_host(text[2:])
        if ":" in suffix or _reads_as_number(suffix):
            raise ValueError(f"{text!r}: no names lie below an address")
        return cls(host=suffix, below=True)

    def holds(self, host: str, *, as_deny: bool) -> bool:
        if self.below:
            return host.endswith(f".{self.host}")
        return host == self.host or (as_deny and host.endswith(f".{self.host}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSet:
    """Many host patterns; a look-up costs what the host's labels cost."""

    exact: frozenset[str]
    below: frozenset[str]

    @classmethod
    def of(cls, patterns: Iterable[HostPattern]) -> HostSet:
        kept = tuple(patterns)
        return cls(
            exact=frozenset(pattern.host for pattern in kept if not pattern.below),
            below=frozenset(pattern.host for pattern in kept if pattern.below),
        )

    def holds(self, host: str, *, as_deny: bool) -> bool:
        if host in self.exact:
            return True
        return any(parent in self.below or (as_deny and parent in self.exact) for parent in parents(host))
