"""Run ids: UUIDv7, sixteen bytes in the file and canonical lower-case text everywhere else."""

from __future__ import annotations

from collections.abc import Iterable

RANDOM_BYTES = 10
MIN_REFERENCE = 4  # hexadecimal digits; fewer name a run by accident

_LATEST_MS = 2**48 - 1
_VERSION = 0x7 << 76
_VERSION_BITS = 0xF << 76
_VARIANT = 0x2 << 62
_VARIANT_BITS = 0x3 << 62
_HEX = frozenset("0123456789abcdef")


def make_run_id(now_ms: int, chance: bytes, newest: bytes | None) -> bytes:
    """Later than `newest` even when the clock went back, so that ids sort as the runs of a store began."""
    earliest = 0 if newest is None else int.from_bytes(newest[:6]) + 1
    value = min(max(now_ms, earliest), _LATEST_MS) << 80 | int.from_bytes(chance)
    return (value & ~_VERSION_BITS & ~_VARIANT_BITS | _VERSION | _VARIANT).to_bytes(16)


def run_id_text(run_id: bytes) -> str:
    text = run_id.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def reference_digits(reference: str) -> str | None:
    """The hexadecimal digits of a whole or partial run id; None where it can be neither."""
    digits = reference.strip().lower().replace("-", "")
    return digits if MIN_REFERENCE <= len(digits) <= 32 and _HEX.issuperset(digits) else None


def nearest_runs(reference: str, run_ids: Iterable[bytes], *, count: int) -> list[str]:
    """The ids that share the most letters, in their places, with the reference; the first of equals goes first."""
    wanted = reference.strip().lower().replace("-", "")[:32]

    def alike(run_id: bytes) -> int:
        digits = run_id.hex()
        ends = (digits[: len(wanted)], digits[-len(wanted) :])
        return max(sum(map(str.__eq__, wanted, end)) for end in ends)

    return [run_id_text(run_id) for run_id in sorted(run_ids, key=alike, reverse=True)[:count]]
