from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.policy.segments import Literal, holds, star_text


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a*c", "abc", True),
        ("a*c", "a/b/c", True),
        ("a?c", "a?c", True),
        ("a?c", "abc", False),
        ("**", "", True),
        ("a\\*", "a*", True),
        ("a\\*", "ab", False),
        ("a\\\\*", "a\\b", True),
        ("a\\d", "a\\d", True),
        ("\\", "\\", True),
        ("[a]", "[a]", True),
    ],
)
def test_only_a_star_is_special(pattern: str, text: str, *, expected: bool) -> None:
    assert holds(star_text(pattern), text) is expected


def test_a_question_mark_is_special_where_asked_for() -> None:
    assert holds(star_text("a?c", question=True), "abc")
    assert star_text("a\\?c", question=True) == Literal(text="a?c")


@given(text=st.text(alphabet="ab.-", max_size=6), pattern=st.text(alphabet="ab.-*", max_size=6))
def test_a_wildcard_holds_what_its_literal_parts_say(text: str, pattern: str) -> None:
    part = star_text(pattern)
    if not isinstance(part, Literal) and holds(part, text):
        assert text.startswith(part.prefix)
        assert text.endswith(part.suffix)
        assert all(factor in text for factor in part.factors)
