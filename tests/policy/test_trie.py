from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.calls import Components, Places
from capsule.policy.paths import BoundPattern, PathPattern
from capsule.policy.trie import PatternIndex

PLACES = Places(workdir=("w", "p"), home=("h",), capsule_home=("h", ".capsule"))

NAMES = st.sampled_from(
    [
        "w",
        "p",
        "h",
        "a",
        "b",
        "A",
        ".a",
        ".b",
        "ab",
        "ba",
        "a.log",
        "b.LOG",
        "xmidy",
        "xmid",
        "secret-1",
        "é",
        "E\u0301",
        "ss",
    ]
)
PARTS = st.sampled_from(
    [
        *("**", "*", "?", "a", "b", ".a", "w", "p", "ß", "é"),
        *("a*", "*b", ".*", "*.log", "*mid*", "x*d?", "[ab]", "[!a]", "?i*", "secret-*", "{a,b*}", "*.{log,b}", "*"),
    ]
)
ANCHORS = st.sampled_from(["", "./", "/", "~/", "**/", "/w/", "/w/p/"])
PATTERNS = st.builds(lambda anchor, parts: anchor + "/".join(parts), ANCHORS, st.lists(PARTS, min_size=1, max_size=4))
PATHS = st.one_of(
    st.lists(NAMES, max_size=6).map(tuple),
    st.lists(NAMES, max_size=4).map(lambda names: ("w", "p", *names)),
)


def bound(patterns: list[str]) -> list[tuple[BoundPattern, int]]:
    return [
        (each, number)
        for number, text in enumerate(patterns)
        for each in PathPattern.parse(text, unanchored_allowed=number % 2 == 0).bind(PLACES, lambda names: names)
    ]


@given(
    patterns=st.lists(PATTERNS, max_size=12),
    path=PATHS,
    beneath=st.booleans(),
    hidden=st.booleans(),
    hangs=st.booleans(),
    folded=st.booleans(),
)
def test_the_index_equals_trying_every_pattern(
    patterns: list[str], path: Components, *, beneath: bool, hidden: bool, hangs: bool, folded: bool
) -> None:
    items = bound(patterns)
    found = PatternIndex.build(items).matches(path, beneath=beneath, hidden=hidden, hangs=hangs, folded=folded)
    assert found == {
        number
        for pattern, number in items
        if pattern.matches(path, beneath=beneath, hidden=hidden, hangs=hangs, folded=folded)
    }


@given(patterns=st.lists(PATTERNS, max_size=8), path=PATHS, data=st.data())
def test_order_means_nothing(patterns: list[str], path: Components, data: st.DataObject) -> None:
    items = bound(patterns)
    shuffled = data.draw(st.permutations(items))
    assert PatternIndex.build(items).matches(path) == PatternIndex.build(shuffled).matches(path)


def test_an_empty_index_matches_nothing() -> None:
    assert PatternIndex[int].build([]).matches(("a",), beneath=True, folded=True) == set()


def test_one_value_may_stand_under_several_patterns() -> None:
    items = [(pattern, "rule") for pattern, _ in bound(["/a", "/a/*", "/**/b"])]
    assert PatternIndex.build(items).matches(("a", "b"), beneath=True) == {"rule"}


@pytest.mark.parametrize("shared", ["/**/{}*.log", "/**/*{}*", "/*{}", "/**/a{}?", "/x/**/{}"])
def test_thousands_of_patterns_that_begin_with_a_wildcard(shared: str) -> None:
    patterns = [shared.format(f"n{number:04}") for number in range(3000)]
    index = PatternIndex.build(bound(patterns))
    for number in (0, 17, 2999):
        name = shared.removeprefix("/x").replace("/**", "").replace("/", "").format(f"n{number:04}")
        path = ("x", name.replace("*", "").replace("?", "z")) if "**" in shared else (name.replace("*", "y"),)
        assert index.matches(path) == {number}


def test_many_double_stars_cost_no_more_than_their_places() -> None:
    index = PatternIndex.build(bound(["/" + "**/a/" * 16 + "b"]))
    assert index.matches(("a",) * 200 + ("c",)) == set()
    assert index.matches(("a",) * 200 + ("b",)) == {0}
