"""A plan as its users hold it: loaded and checked whole before anything runs.

`Plan.load(path)` or `Plan.parse(text)`; then `plan.read_inputs(given)` and a `Scope` to render its steps with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from capsule.canon import Json, digest_of
from capsule.documents import Document, check, load_file, load_text, spell
from capsule.documents.document import Format
from capsule.errors import PlanError
from capsule.plans.inputs import PlanInput, declared, read_given
from capsule.plans.names import Kept, Names
from capsule.plans.schema import PLAN_SCHEMA
from capsule.templates import BadTemplate, Template, compile_value


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    index: int
    id: str
    tool: str
    args: Template
    written_args: Mapping[str, Json]  # as the plan has them, for a step whose templates cannot be rendered
    name: str = ""
    description: str = ""
    foreach: Template | None = None
    store_as: str | None = None
    continue_on_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`kept` says of which steps a later template names the result, and until which step."""

    document: Document
    name: str
    description: str
    inputs: Mapping[str, PlanInput]
    variables: Mapping[str, Template]
    steps: tuple[PlanStep, ...]
    kept: Mapping[int, Kept]
    file: Path | None = None

    @classmethod
    def load(cls, path: Path | str) -> Plan:
        """PlanError with file:line:column for the first thing that is wrong."""
        return _plan(load_file(Path(path), kind="plan"), Path(path).absolute())

    @classmethod
    def parse(cls, text: str, *, name: str = "<plan>", format: Format = "yaml") -> Plan:
        return _plan(load_text(text, name=name, kind="plan", format=format), None)

    def as_json(self) -> Json:
        """The document as it was written, for the record."""
        return self.document.value

    @property
    def digest(self) -> str:
        return digest_of(self.document.value)

    def read_inputs(self, given: Mapping[str, Json]) -> dict[str, Json]:
        """Text is read by the declared type, defaults fill in; PlanError 3004 names the input that does not fit."""
        return read_given(self.inputs, given)


def _plan(document: Document, file: Path | None) -> Plan:
    _refuse_empty(document)
    check(document, PLAN_SCHEMA)
    raw = cast("Mapping[str, Json]", document.value)
    written = cast("Mapping[str, Json]", raw.get("variables", {}))
    names = Names(document, declared(document), written)
    variables = {name: _template(document, ("variables", name), value) for name, value in written.items()}
    steps = _steps(document, cast("Sequence[Mapping[str, Json]]", raw["steps"]))
    for step in steps:
        names.announce(step.id, step.store_as)
    names.refuse_secrets()
    for name, template in variables.items():
        names.variable(name, template)
    for step in steps:
        names.step(step.foreach, step.args)
    return Plan(
        document=document,
        name=str(raw.get("name", document.name)),
        description=str(raw.get("description", "")),
        inputs=names.inputs,
        variables=variables,
        steps=steps,
        kept=names.kept,
        file=file,
    )


def _refuse_empty(document: Document) -> None:
    """A plan without steps has a code of its own, unless a misspelled key explains it."""
    value = document.value
    if not isinstance(value, Mapping) or value.get("steps") not in (None, []):
        return
    if "rules" in value:
        raise document.error(
            ("rules",), "this is a policy, not a plan", hint="capsule run PLAN --policy FILE", key=True
        )
    known = cast("Mapping[str, Json]", PLAN_SCHEMA["properties"])
    if all(key in known for key in value):
        error = document.error(("steps",), "the plan has no steps", hint="give it at least one: steps: [{tool: …}]")
        raise PlanError(3002, error.message, hint=error.hint, context=error.context)


def _steps(document: Document, written: Sequence[Mapping[str, Json]]) -> tuple[PlanStep, ...]:
    return tuple(_step(document, index, raw) for index, raw in enumerate(written))


def _step(document: Document, index: int, raw: Mapping[str, Json]) -> PlanStep:
    place = ("steps", index)
    tool = str(raw["tool"])
    if "{{" in tool:
        message = f"{spell(place)}.tool: the tool of a step cannot be a template"
        raise document.error((*place, "tool"), message, hint="a policy must be able to tell which tools a plan uses")
    return PlanStep(
        index=index,
        id=str(raw.get("id", f"step_{index + 1}")),
        tool=tool,
        args=_template(document, (*place, "args"), raw.get("args", {})),
        written_args=cast("Mapping[str, Json]", raw.get("args", {})),
        name=str(raw.get("name", "")),
        description=str(raw.get("description", "")),
        foreach=_foreach(document, (*place, "foreach"), raw["foreach"]) if "foreach" in raw else None,
        store_as=str(raw["store_as"]) if "store_as" in raw else None,
        continue_on_error=bool(raw.get("continue_on_error", False)),
    )


def _foreach(document: Document, place: tuple[str | int, ...], value: Json) -> Template:
    template = _template(document, place, value)
    if isinstance(value, str) and not template.is_expression:
        hint = 'write it as one expression: foreach: "{{ inputs.files }}"'
        raise document.error(place, f"{spell(place)}: text is no list", hint=hint)
    return template


def _template(document: Document, place: tuple[str | int, ...], value: Json) -> Template:
    try:
        return compile_value(value)
    except BadTemplate as problem:
        path = (*place, *problem.path)
        raise template_error(document, path, f"{spell(path)}: {problem.message}", problem.hint) from None


def template_error(document: Document, path: tuple[str | int, ...], message: str, hint: str | None) -> PlanError:
    error = document.error(path, message, hint=hint)
    return PlanError(3003, error.message, hint=error.hint, context=error.context)
