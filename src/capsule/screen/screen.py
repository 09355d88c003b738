"""One pass over what enters or leaves a tool: secrets are found, and masked before anybody else sees the value."""

from __future__ import annotations

import codecs
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from capsule.calls import Finding, Redact
from capsule.calls.concrete import SECRET_HANDLE
from capsule.calls.marker import MARKER, marker
from capsule.calls.texts import strings
from capsule.canon import Json
from capsule.screen.exact import Exact, exact
from capsule.screen.printable import printable
from capsule.screen.rule import Category, ScreenRule, rules_digest
from capsule.screen.rules import RULES
from capsule.screen.scan import Hit, compiled, hits, keyword_pattern, suspects
from capsule.screen.spread import among_nuls, has_nuls, utf_16, with_nuls, without_nuls

MAX_FINDINGS = 1_000  # of one value; what is beyond is masked all the same
_SNIPPET_FROM = 16  # characters; of anything shorter a snippet would tell too much
_SNIPPET_ENDS = 2

_MASKED: Mapping[Redact, frozenset[Category]] = {
    "off": frozenset({"granted"}),
    "secrets": frozenset({"granted", "secret"}),
    "personal": frozenset({"granted", "secret", "personal"}),
}
_SPARED = re.compile(rf"{SECRET_HANDLE.pattern}|{MARKER}")  # what a name makes no secret
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    value: Json
    findings: tuple[Finding, ...] = ()
    redacted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenedBytes:
    data: bytes
    findings: tuple[Finding, ...] = ()
    redacted: bool = False


class Markers:
    """The numbers of one tool call: the same secret gets the same number, in its arguments and in its output."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def of(self, kind: str, secret: bytes) -> str:
        return marker(kind, self._numbers.setdefault(secret, len(self._numbers) + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """`key` makes the fingerprints; `with_secret` adds values that are masked wherever they appear."""

    key: bytes
    rules: tuple[ScreenRule, ...] = RULES
    exact: tuple[Exact, ...] = ()
    _keywords: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_keywords", compiled(keyword_pattern(self.rules)))

    @property
    def rules_digest(self) -> str:
        return rules_digest(self.rules)

    def with_secret(self, name: str, value: str) -> Screen:
        return replace(self, exact=(*self.exact, exact(name, value)))

    def screen(self, value: Json, *, redact: Redact = "secrets", markers: Markers | None = None) -> Screened:
        """Look at every text in a value; granted secrets are masked even where `redact` is off."""
        task = self._task("\n".join(strings(value)).encode(errors="surrogatepass"), redact, markers)
        if task is None:
            return Screened(value=value)
        masked = task.in_value(value)
        return Screened(value=masked if task.redacted else value, findings=tuple(task.found), redacted=task.redacted)

    def screen_bytes(self, data: bytes, *, redact: Redact = "secrets", markers: Markers | None = None) -> ScreenedBytes:
        """Look at raw bytes, before they are written as base64; what may be UTF-16 is looked at as such, too."""
        markers = markers or Markers()
        as_they_are = self._bytes(data, None, redact, markers)
        encoding = _UTF16.get(data[:2])
        if encoding is None:
            return as_they_are
        as_text = self._bytes(as_they_are.data, encoding, redact, markers)
        return replace(
            as_text,
            findings=(*as_they_are.findings, *as_text.findings),
            redacted=as_they_are.redacted or as_text.redacted,
        )

    def _bytes(self, data: bytes, encoding: str | None, redact: Redact, markers: Markers) -> ScreenedBytes:
        text = data if encoding is None else _as_utf8(data, encoding)
        task = None if text is None else self._task(text, redact, markers, raw=encoding is None)
        if task is None or text is None:
            return ScreenedBytes(data=data)
        masked = task.in_bytes(text)
        if not task.redacted:
            return ScreenedBytes(data=data, findings=tuple(task.found))
        if encoding is not None:
            masked = masked.decode(errors="surrogatepass").encode(encoding, "surrogatepass")
        return ScreenedBytes(data=masked, findings=tuple(task.found), redacted=True)

    def _task(self, everything: bytes, redact: Redact, markers: Markers | None, *, raw: bool = False) -> _Task | None:
        """What is left to do after one quick look, which is nearly always nothing."""
        if has_nuls(everything):
            everything += b"\n" + without_nuls(everything)
        rules = suspects(everything.lower(), self.rules) if self._keywords.search(everything) else ()
        granted = tuple(secret for secret in self.exact if secret.within(everything))
        if not rules and not granted:
            return None
        return _Task(
            key=self.key, rules=rules, exact=granted, masked=_MASKED[redact], markers=markers or Markers(), raw=raw
        )


@dataclass(slots=True, kw_only=True)
class _Task:
    """The rules that have something to look for in one value, and what they found."""

    key: bytes
    rules: tuple[ScreenRule, ...]
    exact: tuple[Exact, ...]
    masked: frozenset[Category]
    markers: Markers
    raw: bool  # bytes of an unknown encoding, not the UTF-8 of some text
    leads: dict[str, bytes] = field(default_factory=dict)
    found: list[Finding] = field(default_factory=list)
    redacted: bool = False

    def in_value(self, value: Json, key: str = "") -> Json:
        if isinstance(value, str):
            return self._in_text(value, self._lead(key), self._named(key))
        if isinstance(value, Mapping):
            return {self._in_text(name): self.in_value(child, name) for name, child in value.items()}
        if isinstance(value, Sequence):
            return [self.in_value(child, key if self._named(key) else "") for child in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and self._named(key):
            masked = self._in_text(str(value), named=self._named(key))
            return value if masked == str(value) else masked
        return value

    def _named(self, key: str) -> tuple[ScreenRule, ...]:
        """The rules that take any text under a key."""
        name = key.strip().lower()
        return tuple(rule for rule in self.rules if name in rule.names)

    def _lead(self, key: str) -> bytes:
        """What a text under a key is read with: `{"authorization": "…"}` like `authorization: …`."""
        if key not in self.leads:
            lead = f"{key}: ".encode(errors="surrogatepass")
            self.leads[key] = lead if suspects(lead.lower(), self.rules) else b""
        return self.leads[key]

    def _in_text(self, text: str, lead: bytes = b"", named: tuple[ScreenRule, ...] = ()) -> str:
        data = text.encode(errors="surrogatepass")
        masked = self.in_bytes(data, lead, () if _SPARED.fullmatch(text) else named)
        return text if masked is data else masked.decode(errors="surrogatepass")

    def in_bytes(self, data: bytes, lead: bytes = b"", named: tuple[ScreenRule, ...] = ()) -> bytes:
        masked = self._in_plain(data, lead, named)
        return self._in_spread(masked, lead) if has_nuls(masked) else masked

    def _in_spread(self, data: bytes, lead: bytes) -> bytes:
        """What is found only when the NULs among it are taken away."""
        spread = with_nuls(data)
        bare = lead + without_nuls(data)
        found = [hit for hit in hits(bare, suspects(bare.lower(), self.rules), self.exact) if hit.start >= len(lead)]
        apart = list(among_nuls(spread, found, len(lead)))
        self._note(bare, len(lead), [hit for hit, _ in apart])
        masked = [placed for hit, placed in apart if hit.rule.category in self.masked]
        return self._without(spread, 0, masked) if masked else data

    def _in_plain(self, data: bytes, lead: bytes, named: tuple[ScreenRule, ...]) -> bytes:
        whole = lead + data
        rules = suspects(whole.lower(), self.rules)
        if not rules and not named and not self.exact:
            return data
        all_of_it = [Hit(len(lead), len(whole), rule) for rule in named if data]
        found = [hit for hit in hits(whole, rules, self.exact, all_of_it) if hit.start >= len(lead)]
        self._note(whole, len(lead), found)
        masked = [hit for hit in found if hit.rule.category in self.masked]
        return self._without(whole, len(lead), masked) if masked else data

    def _note(self, data: bytes, begin: int, found: Sequence[Hit]) -> None:
        line, column, place = 1, 1, begin
        for hit in found[: MAX_FINDINGS - len(self.found)]:
            passed = data[place : hit.start]
            if newlines := passed.count(b"\n"):
                line, column, passed = line + newlines, 1, passed[passed.rindex(b"\n") + 1 :]
            column, place = column + len(passed.decode(errors="replace")), hit.start
            self.found.append(self._finding(hit.rule, data[hit.start : hit.end], line, column))

    def _finding(self, rule: ScreenRule, secret: bytes, line: int, column: int) -> Finding:
        text = secret.decode(errors="replace")
        ends = f"{text[:_SNIPPET_ENDS]}…{text[-_SNIPPET_ENDS:]}" if len(text) >= _SNIPPET_FROM else ""
        return Finding(
            rule=rule.id,
            type=rule.type,
            line=line,
            column=column,
            length=len(text),
            confidence=rule.confidence,
            snippet=printable(ends),
            fingerprint=hmac.digest(self.key, secret, "sha256").hex(),
        )

    def _without(self, data: bytes, begin: int, found: Sequence[Hit]) -> bytes:
        pieces: list[bytes] = []
        place = begin
        for hit in found:
            secret = data[hit.start : hit.end].replace(b"\0", b"")
            start, end, encoding = utf_16(data, hit) if self.raw else (hit.start, hit.end, "utf-8")
            pieces += (data[place:start], self.markers.of(hit.rule.type, secret).encode(encoding))
            place = end
        self.redacted = True
        return b"".join((*pieces, data[place:]))


def _as_utf8(data: bytes, encoding: str) -> bytes | None:
    """None where it is not in that encoding after all."""
    try:
        return data.decode(encoding, "surrogatepass").encode(errors="surrogatepass")
    except UnicodeDecodeError:
        return None
