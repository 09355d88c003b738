from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.policy.folding import fold


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Makefile", "MAKEFILE"),
        ("straße", "STRASSE"),
        ("café", "CAFE\u0301"),
        (".git", ".g\u200cit"),
        (".git", ".Git. "),
        (".git", ".g\u00adit"),
        (".ssh", ".ss\u2060h"),
        ("Makefile", "Make\u200bfile"),
        ("secrets", "sec\U000e0101rets"),
        ("ﬁle", "FILE"),
        ("\u212a", "k"),
    ],
)
def test_names_that_such_a_volume_takes_for_one(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@given(st.text(alphabet="aAß\u212aéE\u0301\u0327\u200c\ufeff. ", min_size=1, max_size=6))
def test_folding_again_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)
