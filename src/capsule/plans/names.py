"""Who may say which name where: found out at load, so that no step fails on a name that could never be there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from capsule.documents import Document, shown, spell, suggest
from capsule.errors import PlanError
from capsule.plans.inputs import PlanInput
from capsule.plans.schema import NAME
from capsule.screen import Screen
from capsule.templates import RESERVED_WORDS, Path, Template

RESERVED = frozenset({"inputs", "input", "steps", "item", "run"})
RESULT_KEYS = ("output", "status", "error")
RUN_KEYS = ("id", "workdir")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A result that a later template names: with or without its output, until the step that names it last."""

    output: bool
    until: int


class Names:
    """Told the parts of a plan in the order in which a run comes by them; every fault is PlanError 3001."""

    def __init__(self, document: Document, inputs: Mapping[str, PlanInput], variables: Collection[str]) -> None:
        self.inputs = inputs
        self.kept: dict[int, Kept] = {}
        self._document = document
        self._variables = variables
        self._set: set[str] = set()  # the variables that are there by now
        self._ids: dict[str, int] = {}
        self._stores: dict[str, int] = {}
        self._at = -1  # the step that is being read; -1 while there are only variables
        for name in inputs:
            self._usable(name, ("inputs", name), key=True)
        for name in variables:
            self._usable(name, ("variables", name), key=True)

    def announce(self, step_id: str, store_as: str | None) -> None:
        """All steps are announced before anything is read: a result that comes later has a message of its own."""
        index = len(self._ids)
        self._usable(step_id, ("steps", index, "id"))
        if step_id in self._ids:
            raise self._taken(step_id, self._ids[step_id], ("steps", index, "id"), "id")
        self._ids[step_id] = index
        if store_as is None:
            return
        self._usable(store_as, ("steps", index, "store_as"))
        if store_as in self._variables:
            raise self._error(("steps", index, "store_as"), f"{shown(store_as)} is a variable already")
        if store_as in self._stores:
            raise self._taken(store_as, self._stores[store_as], ("steps", index, "store_as"), "store_as")
        self._stores[store_as] = index

    def refuse_secrets(self) -> None:
        """Ids are recorded and shown as they are."""
        screen = Screen(key=b"")  # of what is found, only that it was found is wanted
        if not screen.screen([*self._ids]).redacted:
            return
        for index, step_id in enumerate(self._ids):
            if screen.screen(step_id).redacted:
                message = f"the id of steps[{index}] looks like a secret, and ids are shown as they are"
                raise self._error(("steps", index, "id"), message, hint="take another name")

    def variable(self, name: str, template: Template) -> None:
        self._check(template, ("variables", name))
        self._set.add(name)

    def step(self, foreach: Template | None, args: Template) -> None:
        self._at += 1
        if foreach is not None:
            self._check(foreach, ("steps", self._at, "foreach"))
        self._check(args, ("steps", self._at, "args"), item=foreach is not None)

    def _usable(self, name: str, place: Path, *, key: bool = False) -> None:
        if name in RESERVED or name in RESERVED_WORDS:
            raise self._error(place, f"{shown(name)} is reserved", hint="take another name", key=key)
        if not re.fullmatch(NAME.strip("^$"), name) or name.startswith("__"):
            message = f"{shown(name)} is not a name: letters, digits and `_`, not first a digit or `__`"
            raise self._error(place, message, key=key)

    def _taken(self, name: str, first: int, place: Path, key: str) -> PlanError:
        return self._error(place, f"{shown(name)} is the {key} of steps[{first}] already", hint="give each its own")

    def _check(self, template: Template, place: Path, *, item: bool = False) -> None:
        for path, where in template.names.items():
            root, *keys = path
            self._named(str(root), keys, (*place, *where), item=item)

    def _named(self, root: str, keys: list[str | int], place: Path, *, item: bool) -> None:
        if root in {"inputs", "input"}:
            self._input(root, keys, place)
        elif root == "steps":
            self._result(keys, place)
        elif root == "run":
            self._one_of(keys[:1], RUN_KEYS, "run", place)
        elif root == "item":
            if not item:
                raise self._error(place, "`item` is there only in the args of a step with `foreach`")
        elif root in self._stores:
            self._stored(root, place)
        elif root not in self._set and (root in self._variables or root not in self.inputs):
            raise self._unknown(root, place)

    def _input(self, root: str, keys: list[str | int], place: Path) -> None:
        if not keys:
            raise self._error(place, f"`{root}` takes a constant key", hint=f"write {root}.NAME")
        if keys[0] not in self.inputs:
            message = f"the plan declares no input {shown(keys[0])}"
            raise self._error(place, message, hint=_meant(str(keys[0]), self.inputs) or "declare it under `inputs`")

    def _result(self, keys: list[str | int], place: Path) -> None:
        if not keys:
            raise self._error(place, "`steps` takes a constant key", hint="write steps.ID.output")
        step_id = str(keys[0])
        if step_id not in self._ids:
            hint = _meant(step_id, self._ids) or f"the ids are {', '.join(list(self._ids)[:10])}"
            raise self._error(place, f"no step has the id {shown(keys[0])}", hint=hint)
        self._earlier(self._ids[step_id], f"steps.{step_id}", place)
        self._one_of(keys[1:2], RESULT_KEYS, f"steps.{step_id}", place)
        self._keep(self._ids[step_id], output=keys[1:2] in ([], ["output"]))

    def _stored(self, name: str, place: Path) -> None:
        self._earlier(self._stores[name], name, place)
        self._keep(self._stores[name], output=True)

    def _earlier(self, index: int, what: str, place: Path) -> None:
        if self._at < 0:
            raise self._error(place, f"`{what}` is the result of a step, and variables are set before the first")
        if index >= self._at:
            when = "this step itself" if index == self._at else f"steps[{index}], which comes later"
            raise self._error(place, f"`{what}` is the result of {when}")

    def _keep(self, index: int, *, output: bool) -> None:
        before = self.kept.get(index)
        self.kept[index] = Kept(output=output or (before is not None and before.output), until=self._at)

    def _one_of(self, keys: list[str | int], allowed: tuple[str, ...], root: str, place: Path) -> None:
        for key in keys:
            if key not in allowed:
                hint = _meant(str(key), allowed) or f"there are {', '.join(allowed)}"
                raise self._error(place, f"`{root}` has no {shown(key)}", hint=hint)

    def _unknown(self, root: str, place: Path) -> PlanError:
        if root in self._variables:
            hint = f"write inputs.{root}" if root in self.inputs else "variables are set in order"
            return self._error(place, f"the variable `{root}` is set later", hint=hint)
        known = [*self.inputs, *self._variables, *self._stores, *RESERVED]
        hint = _meant(root, known) or "a template knows inputs, variables and what earlier steps `store_as`"
        return self._error(place, f"nothing defines `{root[:60]}`", hint=hint)

    def _error(self, place: Path, message: str, *, hint: str | None = None, key: bool = False) -> PlanError:
        return self._document.error(place, f"{spell(place)}: {message}", hint=hint, key=key)


def _meant(word: str, allowed: Iterable[str]) -> str | None:
    near = suggest(word, allowed)
    return None if near is None else f"did you mean {near}?"
