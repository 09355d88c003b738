"""Step 6: what leaves the gate is what is recorded, and neither holds a secret that a rule of the screen knows."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from capsule.approval import Bound, bind_digest
from capsule.calls import Finding, Redact
from capsule.canon import Json, canonical
from capsule.screen import Markers, Screen

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

    def record(
        self,
        record: Mapping[str, Json],
        *,
        raw: Mapping[str, Json] | None = None,
        redact: Redact = "secrets",
        markers: Markers | None = None,
    ) -> Masked:
        """What goes into the journal; where something was masked, `raw_mac` is that of `raw`, else of the record."""
        raw = record if raw is None else raw
        findings: tuple[Finding, ...] = ()
        args = record.get("args")
        opened: Json = args
        if isinstance(args, Mapping):
            opened, findings = self._opened(args, redact, markers)
            record = {**record, "args": opened}
        masked = self._screen.screen(record, redact=redact, markers=markers)
        changed = masked.redacted or opened is not args
        return Masked(
            value=masked.value, findings=(*findings, *masked.findings), raw_mac=self._mac(raw) if changed else None
        )

    def output(self, output: Json, *, redact: Redact, markers: Markers, sent: bool = False) -> Masked:
        """What a tool gave. `sent`: a secret went in with the call, and its digest may come out."""
        opened, findings = self._opened(output, redact, markers) if isinstance(output, Mapping) else (output, ())
        masked = self._screen.screen(opened, redact=redact, markers=markers)
        value, changed = masked.value, masked.redacted or opened is not output
        if (changed or sent) and isinstance(value, Mapping) and "sha256" in value:
            value = {**value, "sha256": None}  # the digest of a short secret would give it away
        return Masked(
            value=value, findings=(*findings, *masked.findings), raw_mac=self._mac(output) if changed else None
        )

    def _opened(
        self, output: Mapping[str, Json], redact: Redact, markers: Markers | None
    ) -> tuple[Mapping[str, Json], tuple[Finding, ...]]:
        """Bytes are screened before their base64, in which no rule would find anything."""
        if output.get("encoding") != "base64":
            return output, ()
        for name in _BYTES_FIELDS:
            text = output.get(name)
            if not isinstance(text, str):
                continue
            try:
                screened = self._screen.screen_bytes(b64decode(text, validate=True), redact=redact, markers=markers)
            except ValueError:
                continue  # a tool that says base64 and means something else: its text is screened as text
            if screened.redacted:
                return {**output, name: b64encode(screened.data).decode()}, screened.findings
            return output, screened.findings
        return output, ()

    def _mac(self, value: Json) -> str:
        return hmac.new(self._key, canonical(value), sha256).hexdigest()
