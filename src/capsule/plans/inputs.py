"""Inputs of a plan: declared in it, given by its user, and never templates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from capsule.canon import Json, NotCanonical, canonical
from capsule.documents import Document, load_text, schema, shown, spell, suggest
from capsule.documents.effort import Effort
from capsule.documents.schema import Problem
from capsule.errors import PlanError

_SCHEMA_KEYS = ("type", "enum", "pattern", "items")
_SHOWN = 20  # characters of an input in an example
_ONLY_FOR = {"pattern": "string", "items": "array"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    name: str
    schema: Mapping[str, Json]
    required: bool
    has_default: bool
    default: Json = None
    description: str = ""

    @property
    def type(self) -> str:
        return str(self.schema["type"])


def declared(document: Document) -> dict[str, PlanInput]:
    """The inputs a plan declares, each checked against itself; the document has the shape of a plan."""
    written = cast("Mapping[str, Mapping[str, Json]]", cast("Mapping[str, Json]", document.value).get("inputs", {}))
    effort = Effort()
    return {name: _declared(document, name, raw, effort) for name, raw in written.items()}


def _declared(document: Document, name: str, raw: Mapping[str, Json], effort: Effort) -> PlanInput:
    place = ("inputs", name)
    shape: dict[str, Json] = {key: raw[key] for key in _SCHEMA_KEYS if key in raw}
    for key, kind in _ONLY_FOR.items():
        if key in raw and raw["type"] != kind:
            raise document.error((*place, key), f"{spell(place)}: `{key}` is for inputs of type {kind}", key=True)
    for problem in schema.unsupported(shape, effort):
        raise _misfit(document, place, problem)
    for index, value in enumerate(cast("list[Json]", raw.get("enum", []))):
        for problem in schema.problems(value, {"type": raw["type"]}):
            raise _misfit(document, (*place, "enum", index), problem)
    if "default" in raw:
        for problem in schema.problems(raw["default"], shape, effort):
            raise _misfit(document, (*place, "default"), problem)
    return PlanInput(
        name=name,
        schema=shape,
        required=bool(raw.get("required", False)),
        has_default="default" in raw,
        default=raw.get("default"),
        description=str(raw.get("description", "")),
    )


def _misfit(document: Document, place: tuple[str | int, ...], problem: Problem) -> PlanError:
    path = (*place, *problem.path)
    above = spell(path[:-1] if problem.key else path)
    return document.error(path, f"{above}: {problem.message}", hint=problem.hint, key=problem.key)


def read_given(inputs: Mapping[str, PlanInput], given: Mapping[str, Json]) -> dict[str, Json]:
    """What a run goes with: text is read by the declared type, defaults fill in; PlanError 3004 names the input."""
    for name in given:
        if name not in inputs:
            near = suggest(name, inputs)
            allowed = ", ".join(inputs) or "none"
            hint = f"did you mean {near}?" if near else f"the plan declares {allowed}"
            raise PlanError(3004, f"the plan declares no input {shown(name)}", hint=hint)
    values: dict[str, Json] = {}
    for name, declaration in inputs.items():
        if name in given:
            values[name] = _read(declaration, given[name])
        elif declaration.has_default:
            values[name] = declaration.default
        elif declaration.required:
            raise PlanError(
                3004, f"input {name} is missing", hint=f"give it: --input {name}={declaration.type.upper()}"
            )
    return values


def _read(declaration: PlanInput, given: Json) -> Json:
    value = _typed(declaration, given) if isinstance(given, str) else given
    for problem in schema.problems(value, declaration.schema):
        place = spell((declaration.name, *problem.path))
        raise PlanError(3004, f"input {place}: {problem.message}", hint=problem.hint)
    try:
        canonical(value)
    except NotCanonical as error:
        raise PlanError(3004, f"input {declaration.name}: {error}") from None
    return value


def _typed(declaration: PlanInput, text: str) -> Json:
    """Text as its type reads it, which for all but strings is JSON."""
    if declaration.type == "string":
        return text
    try:
        return load_text(text, name=f"input {declaration.name}", kind="input", format="json").value
    except PlanError as error:
        if declaration.type not in {"array", "object"}:
            return text  # refused with the word that was found, which says more than where it is not JSON
        item = text if len(text) <= _SHOWN else "…"  # never a piece: of a secret, no rule would know it again
        example = f'["{item}"]' if declaration.type == "array" else '{"key": "value"}'
        hint = error.hint or f"write it as JSON: --input '{declaration.name}={example}'"
        raise PlanError(3004, error.message, hint=hint) from None
