"""URL patterns: `scheme://host[:port]/path-glob`, or `**` for every URL."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from capsule.calls import ConcreteUrl
from capsule.policy.globs import Room, Units, expand, split
from capsule.policy.hosts import HostPattern
from capsule.policy.segments import CharSet, DoubleStar, Literal, Segment, Segments, Unit, match, segment, tidy

DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
"""The schemes whose URLs have a host by the rules of the web, with the port that goes without saying."""

ANY_PATH: Segments = (DoubleStar(),)

_MAX_PORT = 65_535
_ENCODED_IN_PATHS = frozenset(' "#<>?^`{}')
_HEX = frozenset("0123456789abcdefABCDEF")


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlPattern:
    """What is None is left out and means any; a path is what stands between its slashes."""

    text: str
    scheme: str | None = None
    host: HostPattern | None = None
    port: int | None = None
    paths: tuple[Segments, ...] = (ANY_PATH,)  # one for each choice from brace lists

    @classmethod
    def parse(cls, text: str, *, deny: bool, room: Room | None = None) -> UrlPattern:
        """ValueError says what is wrong; only in a deny may the path be left out.

        `room` is what all patterns of a policy share; one that is read alone needs none.
        """
        if text == "**":
            return cls(text=text)
        scheme, separator, rest = text.partition("://")
        scheme = scheme.lower()
        if not separator or scheme not in DEFAULT_PORTS:
            raise ValueError(f"{text!r}: a URL pattern is scheme://host/path, such as https://example.com/**, or **")
        authority, slash, path = rest.partition("/")
        if not slash and not deny:
            raise ValueError(f"{text!r} names no path: add /** for all of the host, or / for its first page")
        host, port = _authority(text, authority)
        return cls(
            text=text,
            scheme=scheme,
            host=HostPattern.parse(host),
            port=port,
            paths=_paths(text, path, room or Room()) if slash else (ANY_PATH,),
        )

    def holds(self, url: ConcreteUrl, paths: tuple[tuple[str, ...], ...], *, as_deny: bool) -> bool:
        """`paths` are the forms of the URL's path that are compared."""
        if self.scheme is not None and url.scheme != self.scheme:
            return False
        if self.port is not None and url.port != self.port:
            return False
        if self.host is not None and not self.host.holds(url.host, as_deny=as_deny):
            return False
        return any(match(segments, names) for segments in self.paths for names in paths)


def _authority(text: str, authority: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise ValueError(f"{text!r}: a URL with a user name or a password is refused, so no pattern names one")
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        return authority, None
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= _MAX_PORT):
        raise ValueError(f"{text!r}: {port!r} is not a port")
    return host, int(port)


def _paths(text: str, path: str, room: Room) -> tuple[Segments, ...]:
    head, question, query = path.partition("?")
    if question and "=" in query and not head.endswith("\\"):
        raise ValueError(f"{text!r}: a pattern does not see the query; constrain it with `query: {{name: value}}`")
    if "#" in path:
        raise ValueError(f"{text!r}: what follows '#' is never sent")
    return tuple(_segments(text, units) for units in expand(f"/{path}", room))


def _segments(text: str, units: Units) -> Segments:
    parts: list[Segment] = []
    for name in split(units)[1:]:
        part = segment(_encoded(text, name))
        if part in (Literal(text="."), Literal(text="..")):
            raise ValueError(f"{text!r}: no URL has '.' or '..' in its path after parsing")
        parts.append(part)
    return tidy(parts)


def _encoded(text: str, name: Units) -> Units:
    """Literal characters the way a parsed URL has them, so that `é` is `%C3%A9` and `%2f` is `%2F`."""
    units: list[Unit] = []
    escaped_until = 0  # the two digits after a `%` lie before this index
    for index, unit in enumerate(name):
        if isinstance(unit, CharSet) and any(not high.isascii() for _, high in unit.ranges):
            raise ValueError(f"{text!r}: a class in a URL pattern can hold ASCII characters only")
        if unit == "%" and len(name) > index + 2 and {name[index + 1], name[index + 2]} <= _HEX:
            escaped_until = index + 3
        if not isinstance(unit, str):
            units.append(unit)
        elif index < escaped_until:
            units.append(unit.upper())
        elif unit in _ENCODED_IN_PATHS or not " " <= unit <= "~":
            units.extend(_escaped(unit))
        else:
            units.append(unit)
    return tuple(units)


@lru_cache(maxsize=256)  # an expansion repeats most of what the one before it has
def _escaped(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())
