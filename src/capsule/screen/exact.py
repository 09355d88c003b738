"""Secrets whose value is known, because the run was granted them: found in every form the tools themselves write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

from capsule.calls.marker import base64_forms
from capsule.screen.rule import ScreenRule

MIN_SECRET = 4  # bytes; masking what is shorter would shred every text
_MIN_ENCODED = 6  # characters of an encoded form, for the same reason
_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")
_BORDER = 2  # base64 characters on either side that hold some bits of the secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    rule: ScreenRule
    plain: tuple[bytes, ...]
    encoded: tuple[bytes, ...]  # base64 without its borders

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        for form in self.plain:
            for start in _places(data, form):
                yield start, start + len(form)
        for form in self.encoded:
            for start in _places(data, form):
                yield _bordered(data, start, start + len(form))

    def within(self, data: bytes) -> bool:
        return any(form in data for form in self.plain) or any(form in data for form in self.encoded)


def exact(name: str, value: str) -> Exact:
    data = value.encode(errors="surrogatepass")
    rule = ScreenRule(id=f"secret:{name}", type="secret", pattern="", keywords=(), category="granted", confidence=1.0)
    if len(data) < MIN_SECRET:
        return Exact(rule=rule, plain=(), encoded=())
    percent = (quote(data, safe=""), quote(data), quote_plus(data), "".join(f"%{byte:02X}" for byte in data))
    escaped = (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    forms = {*percent, *map(_lower_percent, percent), *escaped, data.hex(), data.hex().upper()}
    return Exact(
        rule=rule,
        plain=(data, *sorted(_long_enough(forms) - {data})),
        encoded=tuple(sorted(_long_enough(set(base64_forms(data))))),
    )


def _long_enough(forms: set[str]) -> set[bytes]:
    return {form.encode(errors="surrogatepass") for form in forms if len(form) >= _MIN_ENCODED}


def _lower_percent(text: str) -> str:
    head, *rest = text.split("%")
    return head + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


def _places(data: bytes, form: bytes) -> Iterator[int]:
    place = data.find(form)
    while place >= 0:
        yield place
        place = data.find(form, place + 1)


def _bordered(data: bytes, start: int, end: int) -> tuple[int, int]:
    for _ in range(_BORDER):
        if start > 0 and data[start - 1] in _BASE64:
            start -= 1
        if end < len(data) and data[end] in _BASE64:
            end += 1
    return start, end
