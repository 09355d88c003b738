"""`--input k=v` and `--input @FILE`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from capsule.canon import Json
from capsule.documents import load_file
from capsule.errors import PlanError


def given_inputs(words: Sequence[str]) -> dict[str, Json]:
    """Text stays text: the plan declares how to read it. What comes later wins."""
    given: dict[str, Json] = {}
    for word in words:
        if word.startswith("@"):
            given |= _from_file(Path(word[1:]))
            continue
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise PlanError(3004, f"--input {word}: found no `=`", hint="write --input NAME=VALUE or --input @FILE")
        given[name] = value
    return given


def _from_file(file: Path) -> Mapping[str, Json]:
    document = load_file(file, kind="inputs file")
    if not isinstance(document.value, Mapping):
        raise document.error((), "inputs are a mapping of names to values")
    return document.value
