"""Step 6: what leaves the gate is what is recorded, and neither holds a secret that a rule of the screen knows."""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from capsule.approval import Bound, bind_digest
from capsule.calls import Finding, Redact
from capsule.canon import Json, canonical
from capsule.screen import Screen, has_marker

_BYTES_FIELDS = ("content", "body")  # where a tool's output may carry bytes as base64


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

    @staticmethod
    def marked(args: Json) -> bool:
        """A value that was masked once can never come back in."""
        return has_marker(args)

    def record(self, record: Mapping[str, Json], *, raw: Json = None, redact: Redact = "secrets") -> Masked:
        """What goes into the journal of a call; where something was masked, `raw_mac` is that of `raw`."""
        screened = self._screen.screen(record, redact=redact)
        raw_mac = self._mac(raw) if screened.redacted else None
        return Masked(value=screened.value, findings=screened.findings, raw_mac=raw_mac)

    def output(self, output: Json, *, redact: Redact, sent: bool = False) -> Masked:
        """Bytes are screened before their base64, in which no rule would find anything. `sent`: a secret went in."""
        if not isinstance(output, Mapping):
            return self._masked(output, redact)
        opened, findings = self._opened(output, redact)
        masked = self._masked(opened, redact)
        value, changed = masked.value, masked.raw_mac is not None or opened is not output
        if (changed or sent) and isinstance(value, Mapping) and "sha256" in value:
            value = {**value, "sha256": None}  # the digest of a short secret would give it away
        raw_mac = self._mac(output) if changed else None
        return Masked(value=value, findings=(*findings, *masked.findings), raw_mac=raw_mac)

    def _opened(self, output: Mapping[str, Json], redact: Redact) -> tuple[Mapping[str, Json], tuple[Finding, ...]]:
        if output.get("encoding") != "base64":
            return output, ()
        for name in _BYTES_FIELDS:
            text = output.get(name)
            if not isinstance(text, str):
                continue
            try:
                screened = self._screen.screen_bytes(b64decode(text, validate=True), redact=redact)
            except binascii.Error:
                continue  # a tool that says base64 and means something else: its text is screened as text
            if screened.redacted:
                return {**output, name: b64encode(screened.data).decode()}, screened.findings
            return output, screened.findings
        return output, ()

    def _masked(self, value: Json, redact: Redact) -> Masked:
        screened = self._screen.screen(value, redact=redact)
        raw_mac = self._mac(value) if screened.redacted else None
        return Masked(value=screened.value, findings=screened.findings, raw_mac=raw_mac)

    def _mac(self, value: Json) -> str:
        return hmac.new(self._key, canonical(value), sha256).hexdigest()
