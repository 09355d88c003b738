"""Sizes and durations as people write them.

>>> size("1.5MB"), duration_ms("20s")
(1500000, 20000)
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from capsule.canon import MAX_INTEGER
from capsule.documents.wording import shown

_SIZES: Mapping[str, int] = {
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
}
_DURATIONS: Mapping[str, int] = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

MAX_DURATION_MS = 36_525 * 86_400_000  # a century: more is a slip, and what waits cannot wait longer than three

_AMOUNT = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,18}))?([A-Za-z]*)")


_SPOKEN: Mapping[str, tuple[str, ...]] = {
    "B": ("byte", "bytes"),
    "KB": ("k",),
    "MB": ("m",),
    "GB": ("g",),
    "s": ("sec", "secs", "second", "seconds"),
    "m": ("min", "mins", "minute", "minutes"),
    "h": ("hr", "hour", "hours"),
    "d": ("day", "days"),
}
_SLIP = re.compile(r"\s*([0-9]{1,18})\s*([A-Za-z]{1,10})\.?\s*")

_SIZE_FORMS = "4096, 512KiB, 1.5MB (B, KB, MB, GB, KiB, MiB, GiB)"
_DURATION_FORMS = "500ms, 20s, 10m, 1h, 30d"


def size(value: str | int) -> int:
    """Bytes."""
    amount = _amount(value, _SIZES, "B", _SIZE_FORMS)
    if amount > MAX_INTEGER:
        raise ValueError(f"found {shown(value)}, allowed: at most 2^53-1 bytes")
    return amount


def duration_ms(value: str | int) -> int:
    """Milliseconds; a number without a unit is refused, because it does not say of what."""
    amount = _amount(value, _DURATIONS, "", _DURATION_FORMS)
    if amount > MAX_DURATION_MS:
        raise ValueError(f"found {shown(value)}, allowed: at most 36525d")
    return amount


def _amount(value: str | int, units: Mapping[str, int], plain: str, forms: str) -> int:
    written = None if isinstance(value, bool) else _AMOUNT.fullmatch(str(value))
    whole, fraction, unit = written.groups("") if written else ("", "", "")
    factor = units.get(unit or plain)
    if written is None or factor is None:
        meant = _meant(str(value), units)
        raise ValueError(f"found {shown(value)}{f'; did you mean {meant}? Allowed' if meant else ', allowed'}: {forms}")
    amount, rest = divmod(int(whole + fraction) * factor, int(f"1{'0' * len(fraction)}"))
    if rest:
        raise ValueError(f"found {shown(value)}, allowed: whole numbers of {next(iter(units))}")
    return amount


def _meant(written: str, units: Mapping[str, int]) -> str | None:
    """`20 kb` is 20KB, `5 sec` is 5s."""
    parts = _SLIP.fullmatch(written)
    if parts is None:
        return None
    amount, unit = parts.groups()
    name = next((name for name in units if unit.casefold() in (name.casefold(), *_SPOKEN.get(name, ()))), None)
    return None if name is None else f"{amount}{name}"
