"""A document: its value, and the text in which the place of every mistake is found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from capsule.canon import Json
from capsule.documents import schema
from capsule.documents.from_json import json_tokens, json_value
from capsule.documents.places import error_at, line_of, locate
from capsule.documents.reading import decoded, read_text
from capsule.documents.tokens import Repeated, Token, Trail, Unreadable, build
from capsule.documents.wording import spell, spell_name
from capsule.errors import PlanError

Format: TypeAlias = Literal["yaml", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    value: Json
    text: str
    name: str  # the file as the user gave it
    format: Format = "yaml"

    def error(self, path: Trail, message: str, *, hint: str | None = None, key: bool = False) -> PlanError:
        """3001 at the value of a path, or at its key; at what is nearest above it where there is no such value."""
        offset = locate(_tokens(self.text, self.format), path, key=key)
        return error_at(self.text[:offset], self.name, message, hint=hint, trail=path)


def load_file(path: Path, *, kind: str) -> Document:
    """A file named .json is JSON, any other YAML; `kind` is what it should be (plan, policy), for messages."""
    form: Format = "json" if path.suffix == ".json" else "yaml"
    return _load(read_text(path, kind=kind), spell_name(str(path)), kind, form)


def load_text(text: str, *, name: str = "<text>", kind: str, format: Format = "yaml") -> Document:
    name = spell_name(name)
    return _load(decoded(text.encode(errors="surrogatepass"), name), name, kind, format)


def check(document: Document, shape: Mapping[str, Json]) -> None:
    """Raise for the first thing in the document that its schema does not allow."""
    for problem in schema.problems(document.value, shape):
        above = spell(problem.path[:-1] if problem.key else problem.path)
        message = f"{above}: {problem.message}" if above else problem.message
        raise document.error(problem.path, message, hint=problem.hint, key=problem.key)


def _load(text: str, name: str, kind: str, form: Format) -> Document:
    if not text.strip():
        raise _empty(name, kind)
    try:
        value = json_value(text) if form == "json" else build(_tokens(text, form))
    except Unreadable as error:
        raise _refused(error, text, name, form) from error
    if value is None and form == "yaml":
        raise _empty(name, kind)
    return Document(value=value, text=text, name=name, format=form)


def _empty(name: str, kind: str) -> PlanError:
    return error_at("", name, f"this {kind} is empty", hint="name another file, or fill this one")


def _tokens(text: str, form: Format) -> Iterator[Token]:
    if form == "json":
        return json_tokens(text)
    from capsule.documents.from_yaml import yaml_tokens  # noqa: PLC0415 - PyYAML takes 15 ms that JSON need not pay

    return yaml_tokens(text)


def _refused(error: Unreadable, text: str, name: str, form: Format) -> PlanError:
    message = error.message
    if isinstance(error, Repeated):
        first = locate(_tokens(text, form), (*error.trail, error.key), key=True)
        message = f"{message}, first on line {line_of(text[:first])}"
    above = spell(error.trail)
    message = f"{above}: {message}" if above else message
    return error_at(text[: error.offset], name, message, hint=error.hint, trail=error.trail)
