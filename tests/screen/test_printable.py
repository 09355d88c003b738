"""Text from outside, made safe to show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.screen import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ünïcode, 日本, 🔑❤️", "plain text, ünïcode, 日本, 🔑❤️"),
        ("", ""),
        ("two\nlines\r\n\ttab", r"two\nlines\r\n\ttab"),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("\x9b31m\x7f\x00", r"\x9b31m\x7f\x00"),
        ("evil\u202etxt.exe\u2066\u2069", r"evil\u202etxt.exe\u2066\u2069"),
        ("a\u200bb\u200d\u2060\ufeff", r"a\u200bb\u200d\u2060\ufeff"),
        ("a\u2028b\u2029c\x85", r"a\u2028b\u2029c\x85"),
        ("a\u00a0b\u3000c", r"a\xa0b\u3000c"),
        ("a\u00adb\u115f\u3164\u2800\u034f", r"a\xadb\u115f\u3164\u2800\u034f"),
        ("\U000e0041\U000e0101", r"\U000e0041\U000e0101"),
        ("\ud800", r"\ud800"),
        ("\ue000\U0010ffff", r"\ue000\U0010ffff"),
    ],
)
def test_e5_what_a_terminal_obeys_or_hides_is_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_e5_one_line_that_prints_whatever_it_was(text: str) -> None:
    shown = printable(text)
    assert shown.replace("\ufe0e", "").replace("\ufe0f", "").isprintable()
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown
    assert printable(text[:5] + text[5:]) == printable(text[:5]) + printable(text[5:])
