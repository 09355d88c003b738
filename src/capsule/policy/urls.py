"""URLs: parsed once by the WHATWG rules, and the constraints that a policy puts on them.

>>> parse_url("HTTP://Example.COM:80/a/../b?q=1#top", argument="url").href
'http://example.com/b?q=1'
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from capsule.calls import ConcreteUrl
from capsule.canon import Json
from capsule.policy.addresses import is_public
from capsule.policy.globs import Room
from capsule.policy.hosts import HostPattern, HostSet, bare_host, parents, whatwg
from capsule.policy.segments import Literal, Segments
from capsule.policy.trie import SegmentTrie
from capsule.policy.url_patterns import ANY_PATH, DEFAULT_PORTS, UrlPattern
from capsule.policy.url_queries import QueryConstraint

T = TypeVar("T", bound=Hashable)

MAX_URL = 16_384  # twice what common servers take in a request line

_ESCAPE = re.compile("%[0-9a-fA-F]{2}")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def parse_url(text: str, *, argument: str) -> ConcreteUrl:
    """Never raises: what is no URL that can be fetched has a `problem`."""
    problem = _unreadable(text)
    if problem is not None:
        return ConcreteUrl(argument=argument, text=text, problem=problem)
    try:
        url = whatwg(text)
    except ValueError:
        return ConcreteUrl(argument=argument, text=text, problem="this is not a URL that a browser would take")
    scheme = url.protocol.removesuffix(":")
    host = bare_host(url.hostname)
    problem = _unfetchable(scheme, host, credentials=bool(url.username or url.password))
    if problem is not None or host is None:
        return ConcreteUrl(argument=argument, text=text, scheme=scheme, problem=problem)
    url.hash = ""
    if url.hostname.endswith("."):
        url.hostname = host
    is_address = bool(url.host_type)
    return ConcreteUrl(
        argument=argument,
        text=text,
        href=url.href,
        scheme=scheme,
        host=host,
        port=int(url.port) if url.port else DEFAULT_PORTS[scheme],
        path=upper_escapes(url.pathname),
        query=url.search.removeprefix("?"),
        public=is_public(host) if is_address else not _is_local_name(host),
    )


def _unreadable(text: str) -> str | None:
    if len(text) > MAX_URL:
        return f"a URL of {len(text)} characters: at most {MAX_URL} are taken"
    for char in text:
        if char < " " or char == "\x7f":  # browsers drop some of these unseen, so that a reader is shown another URL
            return f"a URL cannot hold the control character U+{ord(char):04X}"
        if "\ud800" <= char <= "\udfff":
            return "the URL is not text: it holds a lone surrogate"
    return None


def _unfetchable(scheme: str, host: str | None, *, credentials: bool) -> str | None:
    if scheme not in DEFAULT_PORTS:
        return f"{scheme}: is not fetched; use http or https"
    if credentials:
        return "a URL with a user name or a password is refused; send credentials as a header that a rule names"
    if not host:
        return "the host is not a name that can be looked up"
    return None


def _is_local_name(host: str) -> bool:
    """Names that mean this machine wherever they are looked up (RFC 6761)."""
    return host == "localhost" or host.endswith(".localhost")


def upper_escapes(path: str) -> str:
    """`%2f` and `%2F` are one thing; neither is `/`."""
    return _ESCAPE.sub(lambda found: found[0].upper(), path) if "%" in path else path


def loose_path(path: str) -> str:
    """The path as a lenient server may take it: harmless escapes undone, slashes in a row as one.

    Only what bars a call compares this form too, beside the path as it is.
    """
    if "%" in path:
        path = _ESCAPE.sub(lambda found: _unescaped(found[0]), path)
    while "//" in path:
        path = path.replace("//", "/")
    return path


def _unescaped(escape: str) -> str:
    char = chr(int(escape[1:], 16))
    return char if char in _UNRESERVED else escape


def _path_forms(url: ConcreteUrl, *, as_deny: bool) -> tuple[tuple[str, ...], ...]:
    """What stands between the slashes of the path, in each form that is compared."""
    names = tuple(url.path.split("/")[1:])
    if not as_deny or (loose := loose_path(url.path)) == url.path:
        return (names,)
    return (names, tuple(loose.split("/")[1:]))


_DEFAULT_SCHEMES = ("http", "https")
_DEFAULT_PORTS = (80, 443)


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlConstraint:
    """What a rule says of URLs; every key that is there must hold. `deny` is how deny and limit rules read it.

    In a deny what is left out means any, and a host also covers the names below it.
    """

    deny: bool
    domains: HostSet | None = None
    patterns: tuple[UrlPattern, ...] | None = None
    schemes: tuple[str, ...] | None = None
    ports: tuple[int, ...] | None = None
    query: QueryConstraint | None = None
    private_networks: bool = False
    max_redirects: int | None = None

    @classmethod
    def read(cls, raw: Mapping[str, Json], *, deny: bool, room: Room | None = None) -> UrlConstraint:
        """From the document, whose shape has been checked; ValueError says what is wrong."""
        patterns = _texts(raw.get("pattern", ())) + _texts(raw.get("patterns", ()))
        query = cast("Mapping[str, Json]", raw.get("query", {}))
        found = cls(
            deny=deny,
            domains=HostSet.of(map(HostPattern.parse, _texts(raw["domains"]))) if "domains" in raw else None,
            patterns=tuple(UrlPattern.parse(text, deny=deny, room=room) for text in patterns)
            if "pattern" in raw or "patterns" in raw
            else None,
            schemes=_schemes(_texts(raw["schemes"])) if "schemes" in raw else None,
            ports=tuple(cast("Sequence[int]", raw["ports"])) if "ports" in raw else None,
            query=QueryConstraint.of({name: _texts(values) for name, values in query.items()})
            if "query" in raw
            else None,
            private_networks="private_networks" in raw,
            max_redirects=cast("int | None", raw.get("max_redirects")),
        )
        found._check()
        return found

    def _check(self) -> None:
        if not self.deny and self.domains is None and self.patterns is None:
            raise ValueError('which hosts? add `domains: [example.com]`, or `pattern: "**"` for every public host')
        named = (self.domains and self.domains.exact) or any(_names_host(pattern) for pattern in self.patterns or ())
        if self.private_networks and (self.deny or not named):
            raise ValueError("`private_networks: allow` is for a rule that names a host without wildcards")

    def mismatch(self, url: ConcreteUrl) -> str | None:
        """Why the URL is not under this constraint, or None if it is."""
        return self._mismatch(url, self.patterns)

    def mismatch_with(self, url: ConcreteUrl, pattern: UrlPattern | None) -> str | None:
        """The same where only one of the patterns is looked at: an index has found it already."""
        return self._mismatch(url, self.patterns if pattern is None else (pattern,))

    def _mismatch(self, url: ConcreteUrl, patterns: tuple[UrlPattern, ...] | None) -> str | None:
        if url.problem is not None:
            return url.problem
        schemes = self.schemes if self.schemes is not None or self.deny else _DEFAULT_SCHEMES
        if schemes is not None and url.scheme not in schemes:
            return f"the scheme {url.scheme} is not one of {', '.join(schemes) or 'none'}"
        if self.domains is not None and not self.domains.holds(url.host, as_deny=self.deny):
            return f"the host {url.host} is not one of the domains"
        return self._unmatched(url, patterns) or self._wrong_query(url) or self._private(url)

    def _unmatched(self, url: ConcreteUrl, patterns: tuple[UrlPattern, ...] | None) -> str | None:
        """A pattern with a port of its own says all there is to say about ports."""
        ports = self.ports if self.ports is not None or self.deny else _DEFAULT_PORTS
        port_holds = ports is None or url.port in ports
        wrong_port = f"the port {url.port} is not one of {', '.join(map(str, ports or ())) or 'none'}"
        if patterns is None:
            return None if port_holds else wrong_port
        forms = _path_forms(url, as_deny=self.deny)
        matched = [pattern for pattern in patterns if pattern.holds(url, forms, as_deny=self.deny)]
        if any(port_holds or pattern.port is not None for pattern in matched):
            return None
        return wrong_port if matched else "no pattern matches the URL"

    def _wrong_query(self, url: ConcreteUrl) -> str | None:
        return None if self.query is None else self.query.mismatch(url.query, as_deny=self.deny)

    def _private(self, url: ConcreteUrl) -> str | None:
        if self.deny or url.public or self.names_private(url):
            return None
        return f"{url.host} is not a public address"

    def names_private(self, url: ConcreteUrl) -> bool:
        """`private_networks: allow`, and this very host named without wildcards."""
        if not self.private_networks:
            return False
        if self.domains is not None and url.host in self.domains.exact:
            return True
        forms = _path_forms(url, as_deny=False)
        return any(_names_host(pattern) and pattern.holds(url, forms, as_deny=False) for pattern in self.patterns or ())


def _names_host(pattern: UrlPattern) -> bool:
    return pattern.host is not None and not pattern.host.below


def _texts(raw: Json) -> tuple[str, ...]:
    return (raw,) if isinstance(raw, str) else tuple(cast("Sequence[str]", raw))


def _schemes(texts: Sequence[str]) -> tuple[str, ...]:
    schemes = tuple(text.lower() for text in texts)
    for scheme in schemes:
        if scheme not in DEFAULT_PORTS:
            raise ValueError(f"{scheme!r} is not a scheme that a URL with a host can have: {', '.join(DEFAULT_PORTS)}")
    return schemes


class UrlIndex(Generic[T]):
    """Many URL constraints; a look-up costs what the host's labels and the path cost."""

    __slots__ = ("_entries", "_trie")

    def __init__(self, items: Iterable[tuple[UrlConstraint, T]]) -> None:
        self._entries: list[tuple[UrlConstraint, UrlPattern | None, T]] = []
        filed: list[tuple[Segments, int]] = []
        for constraint, value in items:
            for host, segments, pattern in _entries(constraint):
                filed.append(((Literal(text=host), *segments), len(self._entries)))
                self._entries.append((constraint, pattern, value))
        self._trie = SegmentTrie(filed)

    @classmethod
    def build(cls, items: Iterable[tuple[UrlConstraint, T]]) -> UrlIndex[T]:
        return cls(items)

    def matches(self, url: ConcreteUrl) -> set[T]:
        """The values of all constraints that the URL is under."""
        found: set[int] = set()
        for names in _path_forms(url, as_deny=True):
            for host in (f"={url.host}", *(f".{parent}" for parent in parents(url.host)), "*"):
                found |= self._trie.matches((host, *names))
        entries = (self._entries[number] for number in found)
        return {value for constraint, pattern, value in entries if constraint.mismatch_with(url, pattern) is None}


def _entries(constraint: UrlConstraint) -> Iterable[tuple[str, Segments, UrlPattern | None]]:
    """The keys under which a constraint is filed: `=host`, `.names below it`, `*` for any host."""
    if constraint.patterns is not None:
        for pattern in constraint.patterns:
            for key in _host_keys(pattern.host, deny=constraint.deny):
                yield from ((key, segments, pattern) for segments in pattern.paths)
    elif constraint.domains is not None:
        exact = (HostPattern(host=host) for host in constraint.domains.exact)
        below = (HostPattern(host=host, below=True) for host in constraint.domains.below)
        for host in (*exact, *below):
            yield from ((key, ANY_PATH, None) for key in _host_keys(host, deny=constraint.deny))
    else:
        yield "*", ANY_PATH, None


def _host_keys(host: HostPattern | None, *, deny: bool) -> tuple[str, ...]:
    if host is None:
        return ("*",)
    if host.below:
        return (f".{host.host}",)
    return (f"={host.host}", f".{host.host}") if deny else (f"={host.host}",)
