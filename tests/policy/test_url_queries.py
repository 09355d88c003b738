from __future__ import annotations

import pytest

from capsule.policy.url_queries import QueryConstraint

NAMED = QueryConstraint.of({"page": ["1", "2"], "q": ["a*"], "x y": ["*"]})


@pytest.mark.parametrize(
    ("query", "allow", "deny"),
    [
        ("", True, False),
        ("page=1", True, False),
        ("page=3", False, False),
        ("page=1&page=3", False, False),
        ("page=1&q=abc&x+y=", True, True),
        ("q=abc&x%20y=1&page=3&page=2&z=9", False, True),
        ("p%61ge=%31", True, False),
        ("other=1", False, False),
        ("PAGE=1", False, False),
        ("q", False, False),
        ("&&", True, False),
    ],
)
def test_an_allow_names_every_parameter_and_a_deny_finds_the_named(query: str, *, allow: bool, deny: bool) -> None:
    assert (NAMED.mismatch(query, as_deny=False) is None) is allow
    assert (NAMED.mismatch(query, as_deny=True) is None) is deny


def test_no_parameter_named_is_no_parameter_allowed() -> None:
    nothing = QueryConstraint.of({})
    assert nothing.mismatch("", as_deny=False) is None
    assert nothing.mismatch("a", as_deny=False) == "the query parameter a is not named"


def test_a_parameter_without_values_is_never_right() -> None:
    assert QueryConstraint.of({"a": []}).mismatch("a=1", as_deny=False) is not None
