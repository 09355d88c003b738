"""Arguments of a call as words."""

from __future__ import annotations

import pytest

from capsule.canon import Json
from capsule.cli.words import call_arguments
from capsule.errors import ToolError


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ([], {}),
        (["path=a"], {"path": "a"}),
        (["path="], {"path": ""}),
        (["path=a=b"], {"path": "a=b"}),
        (["path=--"], {"path": "--"}),
        (["length:=5"], {"length": 5}),
        (["length:=null"], {"length": None}),
        (['headers:={"accept": "*/*"}'], {"headers": {"accept": "*/*"}}),
        (["--", "git", "log"], {"command": ["git", "log"]}),
        (["cwd=.", "--", "a=b", "--", "-x"], {"cwd": ".", "command": ["a=b", "--", "-x"]}),
        (["--"], {}),
    ],
)
def test_words_become_arguments(words: list[str], arguments: dict[str, Json]) -> None:
    assert call_arguments("shell.run", words) == arguments


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["a.md"], "write NAME=a.md"),
        (["length:=five"], "for text write length=five"),
        (["path=a", "path=b"], "a list is written path:="),
        (["offset=5"], "write offset:=5"),
        (["offset="], "write offset:=5"),
    ],
)
def test_words_that_are_none_say_how_to_write_them(words: list[str], hint: str) -> None:
    with pytest.raises(ToolError) as caught:
        call_arguments("fs.read", words)
    assert caught.value.code == 2002
    assert hint in str(caught.value.hint)
