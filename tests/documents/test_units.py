from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.documents import units


@pytest.mark.parametrize(
    ("written", "count"),
    [
        (0, 0),
        (8192, 8192),
        ("4096", 4096),
        ("00", 0),
        ("5B", 5),
        ("1KB", 1000),
        ("1KiB", 1024),
        ("1MB", 1_000_000),
        ("1MiB", 1_048_576),
        ("2GB", 2_000_000_000),
        ("2GiB", 2_147_483_648),
        ("1.5MB", 1_500_000),
        ("0.5KiB", 512),
        ("007MB", 7_000_000),
    ],
)
def test_sizes(written: str | int, count: int) -> None:
    assert units.size(written) == count


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ("0s", 0),
        ("500ms", 500),
        ("20s", 20_000),
        ("1.5s", 1500),
        ("0.001s", 1),
        ("10m", 600_000),
        ("1h", 3_600_000),
        ("30d", 2_592_000_000),
        ("36525d", 3_155_760_000_000),
    ],
)
def test_durations(written: str | int, count: int) -> None:
    assert units.duration_ms(written) == count


FORMS = "4096, 512KiB, 1.5MB (B, KB, MB, GB, KiB, MiB, GiB)"
TIMES = "500ms, 20s, 10m, 1h, 30d"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (-1, f"found -1, allowed: {FORMS}"),
        ("-1MB", f"found '-1MB', allowed: {FORMS}"),
        ("1 MB", f"found '1 MB'; did you mean 1MB? Allowed: {FORMS}"),
        ("1mb", f"found '1mb'; did you mean 1MB? Allowed: {FORMS}"),
        ("1e3", f"found '1e3', allowed: {FORMS}"),
        ("", f"found '', allowed: {FORMS}"),
        ("MB", f"found 'MB', allowed: {FORMS}"),
        ("1.MB", f"found '1.MB', allowed: {FORMS}"),
        ("٣MB", f"found '٣MB', allowed: {FORMS}"),
        ("1MB\n", f"found '1MB\\n'; did you mean 1MB? Allowed: {FORMS}"),
        (True, f"found true, allowed: {FORMS}"),
        ("9" * 19, f"found '{'9' * 19}', allowed: {FORMS}"),
        ("1.5B", "found '1.5B', allowed: whole numbers of B"),
        (2**53, f"found {2**53}, allowed: at most 2^53-1 bytes"),
        ("9007200GB", "found '9007200GB', allowed: at most 2^53-1 bytes"),
    ],
)
def test_what_is_no_size(written: str | int, message: str) -> None:
    with pytest.raises(ValueError, match=r"^found") as refused:
        units.size(written)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (-1, f"found -1, allowed: {TIMES}"),
        ("20 s", f"found '20 s'; did you mean 20s? Allowed: {TIMES}"),
        ("20S", f"found '20S'; did you mean 20s? Allowed: {TIMES}"),
        ("1h30m", f"found '1h30m', allowed: {TIMES}"),
        ("1w", f"found '1w', allowed: {TIMES}"),
        ("1MB", f"found '1MB', allowed: {TIMES}"),
        (False, f"found false, allowed: {TIMES}"),
        ("0.0001s", "found '0.0001s', allowed: whole numbers of ms"),
        ("36526d", "found '36526d', allowed: at most 36525d"),
        ("9" * 18 + "s", f"found '{'9' * 18}s', allowed: at most 36525d"),
        (250, f"found 250, allowed: {TIMES}"),
        ("10", f"found '10', allowed: {TIMES}"),
    ],
)
def test_what_is_no_duration(written: str | int, message: str) -> None:
    with pytest.raises(ValueError, match=r"^found") as refused:
        units.duration_ms(written)
    assert str(refused.value) == message


@given(st.integers(0, 10**7), st.sampled_from([("ms", 1), ("s", 1000), ("m", 60_000)]))
def test_a_unit_multiplies(amount: int, unit: tuple[str, int]) -> None:
    assert units.duration_ms(f"{amount}{unit[0]}") == amount * unit[1]
