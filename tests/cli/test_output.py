"""Text and colours."""

from __future__ import annotations

import io

import pytest
from typed import Typed

from capsule.cli.output import coloured, counted, print_json


def test_what_is_no_terminal_gets_no_colour() -> None:
    assert coloured("a", "red", stream=io.StringIO()) == "a"


@pytest.mark.parametrize(("count", "text"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs")])
def test_one_is_one(count: int, text: str) -> None:
    assert counted(count, "run") == text


def test_json_keeps_letters_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"wort": "Fuß ⟦x⟧"})
    assert capsys.readouterr().out == '{\n  "wort": "Fuß ⟦x⟧"\n}\n'


def test_a_narrow_locale_is_no_reason_to_fail(process: Typed) -> None:
    ran = process("demo", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii")
    assert ran.code == 0
    assert "Traceback" not in ran.err
