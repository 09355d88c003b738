"""Step 6: what leaves the gate is what is recorded, and neither holds a secret that a rule of the screen knows."""

from __future__ import annotations

import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from operator import is_

from capsule.approval import Bound, bind_digest
from capsule.calls import Finding, Redact
from capsule.calls.texts import strings
from capsule.canon import Json, canonical
from capsule.screen import Markers, Screen

_BYTES_FIELDS = ("content", "body")  # where a call or an output may carry bytes as base64
_NOT_BASE64 = re.compile("[^A-Za-z0-9+/=]+")
_LIKE_BASE64 = re.compile(r"[A-Za-z0-9+/_\s-]{20,}[=\s]*")  # of what is shorter no rule knows anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """A value as it may be recorded; `raw_mac` stands for what was masked, and only the key's owner can compare it."""

    value: Json
    findings: tuple[Finding, ...] = ()
    raw_mac: str | None = None

    def as_record(self) -> dict[str, Json]:
        assert isinstance(self.value, Mapping)
        return {**self.value, **({} if self.raw_mac is None else {"raw_mac": self.raw_mac})}


class Mask:
    def __init__(self, screen: Screen, key: bytes) -> None:
        self._screen = screen
        self._key = key

    @property
    def rules_digest(self) -> str:
        return self._screen.rules_digest

    def bind(self, bound: Bound) -> str:
        """What an approval is bound to: the raw values, under a key, since the record shows it."""
        return bind_digest(bound, key=self._key)

    def record(
        self,
        record: Mapping[str, Json],
        *,
        raw: Mapping[str, Json] | None = None,
        redact: Redact = "secrets",
        markers: Markers | None = None,
    ) -> Masked:
        """What goes into the journal; where something was masked, `raw_mac` is that of `raw`, else of the record."""
        return self._masked(record, record if raw is None else raw, redact, markers or Markers())

    def first(self, record: Mapping[str, Json]) -> Masked:
        """A run's first record, in which templates stand: any of its texts may become the base64 of some call."""
        return self._masked(record, record, "secrets", Markers(), first=True)

    def output(self, output: Json, *, redact: Redact, markers: Markers, sent: bool = False) -> Masked:
        """What a tool gave. `sent`: a secret went in with the call, and its digest may come out."""
        masked = self._masked(output, output, redact, markers)
        value = masked.value
        if (masked.raw_mac or sent) and isinstance(value, Mapping) and "sha256" in value:
            return replace(masked, value={**value, "sha256": None})  # the digest of a short secret would give it away
        return masked

    def _masked(self, value: Json, raw: Json, redact: Redact, markers: Markers, *, first: bool = False) -> Masked:
        opener = _Opener(screen=self._screen, redact=redact, markers=markers, everywhere=first)
        opened = opener.open(value) if first or "base64" in strings(value) else value
        screened = self._screen.screen(opened, redact=redact, markers=markers)
        changed = screened.redacted or opened is not value
        return Masked(
            value=screened.value,
            findings=(*opener.findings, *screened.findings),
            raw_mac=self._mac(raw) if changed else None,
        )

    def _mac(self, value: Json) -> str:
        return hmac.new(self._key, canonical(value), sha256).hexdigest()


@dataclass(slots=True, kw_only=True)
class _Opener:
    """Bytes are screened before their base64, in which no rule would find anything.

    A plan's document holds calls too, so they are looked for everywhere; `everywhere`: whatever looks like base64 may
    become that of a call, because it stands where templates take their values from.
    """

    screen: Screen
    redact: Redact
    markers: Markers
    everywhere: bool
    findings: list[Finding] = field(default_factory=list)

    def open(self, value: Json) -> Json:
        """The value itself where nothing is masked."""
        if isinstance(value, str):
            return self._text(value) if self.everywhere and _LIKE_BASE64.fullmatch(value) else value
        if isinstance(value, Mapping):
            members = {key: self._member(value, key) for key in value}
            return value if all(members[key] is child for key, child in value.items()) else members
        if isinstance(value, Sequence):
            items = [self.open(child) for child in value]
            return value if all(map(is_, items, value)) else items
        return value

    def _member(self, within: Mapping[str, Json], key: str) -> Json:
        child = within[key]
        if isinstance(child, str) and key in _BYTES_FIELDS and within.get("encoding") == "base64":
            return self._text(child)
        return self.open(child)

    def _text(self, text: str) -> str:
        screened = self.screen.screen_bytes(_decoded(text), redact=self.redact, markers=self.markers)
        self.findings += screened.findings
        return b64encode(screened.data).decode() if screened.redacted else text


def _decoded(text: str) -> bytes:
    """What a reader could make of base64, also of some that a tool refuses: with line breaks, unpadded, in pieces."""
    try:
        return b64decode(text, validate=True)
    except ValueError:
        letters = _NOT_BASE64.sub("", text.replace("-", "+").replace("_", "/"))
        return b"".join(b64decode(f"{piece}==") for piece in map(_whole, letters.split("=")))


def _whole(piece: str) -> str:
    """Without a last letter that is less than a byte."""
    return piece[:-1] if len(piece) % 4 == 1 else piece
