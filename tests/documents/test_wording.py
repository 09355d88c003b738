from __future__ import annotations

import pytest

from capsule.documents import shown, spell, spell_name, suggest


@pytest.mark.parametrize(
    ("word", "allowed", "near"),
    [
        ("arg", ["args", "tool"], "args"),
        ("continue-on-error", ["continue_on_error"], "continue_on_error"),
        ("ALLOW", ["allow", "ask"], "allow"),
        ("permit", ["allow", "ask", "deny", "limit"], None),
        ("naem", ["name", "path"], "name"),
        ("zebra", ["name", "path"], None),
        ("", ["name"], None),
        ("x", [], None),
        ("n" * 100_000, ["n" * 100_000], None),
    ],
)
def test_suggestions(word: str, allowed: list[str], near: str | None) -> None:
    assert suggest(word, allowed) == near


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        ((), ""),
        (("steps", 2, "args"), "steps[2].args"),
        ((0, "a"), "[0].a"),
        (("a b", "1", "x-y.z"), "['a b']['1'].x-y.z"),
        (("\x1b[2J",), "['\\x1b[2J']"),
        (("k" * 1000,), f"['{'k' * 60}'…]"),
    ],
)
def test_paths(path: tuple[str | int, ...], spelled: str) -> None:
    assert spell(path) == spelled


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (5, "5"),
        (1.0, "1.0"),
        (10**30, "a huge integer"),
        ("it's \x07", '"it\'s \\x07"'),
        ("x" * 100, f"'{'x' * 60}'…"),
        ((1,), "a list"),
        ({}, "a mapping"),
        (b"x", "a bytes"),
    ],
)
def test_values(value: object, words: str) -> None:
    assert shown(value) == words


def test_names() -> None:
    assert (spell_name("päth/ to.yaml"), spell_name("a\n\u202eb")) == ("päth/ to.yaml", "a\\n\\u202eb")
