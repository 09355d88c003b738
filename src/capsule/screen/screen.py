"""One pass over what enters or leaves a tool: secrets are found, and masked before anybody else sees the value."""

from __future__ import annotations

import codecs
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from capsule.calls import Finding, Redact
from capsule.calls.marker import marker
from capsule.calls.texts import strings
from capsule.canon import Json
from capsule.screen.exact import Exact, exact
from capsule.screen.printable import printable
from capsule.screen.rule import Category, ScreenRule, rules_digest
from capsule.screen.rules import RULES
from capsule.screen.scan import Hit, compiled, hits, keyword_pattern, suspects

MAX_FINDINGS = 1_000  # of one value; what is beyond is masked all the same
_SNIPPET_FROM = 16  # characters; of anything shorter a snippet would tell too much
_SNIPPET_ENDS = 2

_MASKED: Mapping[Redact, frozenset[Category]] = {
    "off": frozenset({"granted"}),
    "secrets": frozenset({"granted", "secret"}),
    "personal": frozenset({"granted", "secret", "personal"}),
}
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
        """Look at raw bytes, before they are written as base64; UTF-16 is looked at as the text it is."""
        text, encoding = _as_utf8(data)
        task = self._task(text, redact, markers)
        if task is None:
            return ScreenedBytes(data=data)
        masked = task.in_bytes(text)
        if not task.redacted:
            return ScreenedBytes(data=data, findings=tuple(task.found))
        written = (
            masked if encoding is None else masked.decode(errors="surrogatepass").encode(encoding, "surrogatepass")
        )
        return ScreenedBytes(data=written, findings=tuple(task.found), redacted=True)

    def _task(self, everything: bytes, redact: Redact, markers: Markers | None) -> _Task | None:
        """What is left to do after one quick look, which is nearly always nothing."""
        rules = suspects(everything.lower(), self.rules) if self._keywords.search(everything) else ()
        granted = tuple(secret for secret in self.exact if secret.within(everything))
        if not rules and not granted:
            return None
        return _Task(key=self.key, rules=rules, exact=granted, masked=_MASKED[redact], markers=markers or Markers())


@dataclass(slots=True, kw_only=True)
class _Task:
    """The rules that have something to look for in one value, and what they found."""

    key: bytes
    rules: tuple[ScreenRule, ...]
    exact: tuple[Exact, ...]
    masked: frozenset[Category]
    markers: Markers
    leads: dict[str, bytes] = field(default_factory=dict)
    found: list[Finding] = field(default_factory=list)
    redacted: bool = False

    def in_value(self, value: Json, lead: bytes = b"") -> Json:
        if isinstance(value, str):
            return self._in_text(value, lead)
        if isinstance(value, Mapping):
            return {self._in_text(key): self.in_value(child, self._lead(key)) for key, child in value.items()}
        if isinstance(value, Sequence):
            return [self.in_value(child) for child in value]
        return value

    def _lead(self, key: str) -> bytes:
        """What a text under a key is read with: `{"authorization": "…"}` like `authorization: …`."""
        if key not in self.leads:
            lead = f"{key}: ".encode(errors="surrogatepass")
            self.leads[key] = lead if suspects(lead.lower(), self.rules) else b""
        return self.leads[key]

    def _in_text(self, text: str, lead: bytes = b"") -> str:
        data = text.encode(errors="surrogatepass")
        masked = self.in_bytes(data, lead)
        return text if masked is data else masked.decode(errors="surrogatepass")

    def in_bytes(self, data: bytes, lead: bytes = b"") -> bytes:
        whole = lead + data
        rules = suspects(whole.lower(), self.rules)
        if not rules and not self.exact:
            return data
        found = [hit for hit in hits(whole, rules, self.exact) if hit.start >= len(lead)]
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
            secret = data[hit.start : hit.end]
            pieces += (data[place : hit.start], self.markers.of(hit.rule.type, secret).encode())
            place = hit.end
        self.redacted = True
        return b"".join((*pieces, data[place:]))


def _as_utf8(data: bytes) -> tuple[bytes, str | None]:
    encoding = _UTF16.get(data[:2])
    if encoding is not None:
        try:
            return data.decode(encoding, "surrogatepass").encode(errors="surrogatepass"), encoding
        except UnicodeDecodeError:
            pass  # not UTF-16 after all
    return data, None
