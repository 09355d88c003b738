"""What the templates of a run see, and no more than they will still name.

The runner of a plan does, for each step in order:

    scope = Scope(plan, plan.read_inputs(given), run={"id": run_id, "workdir": str(workdir)})   # renders the variables
    elements = scope.begin(step)               # None, or the list a `foreach` goes over
    args = scope.args(step)                    # or scope.args(step, element) for each element
    scope.keep(step, Status.SUCCESS, output)   # once, or once for each element

`keep` is told of denied and failed calls too, and of a step that could not be rendered; not of a skipped one.
Whatever cannot be rendered is PlanError 3003 and names its place in the plan, a variable with its line. A result is
held only while a later template names it.
"""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from capsule.calls import CallError, Status
from capsule.canon import Json
from capsule.errors import PlanError
from capsule.plans.document import Plan, PlanStep, template_error
from capsule.templates.values import MAX_RESULT, weigh


@dataclass(slots=True, kw_only=True)
class _Result:
    """Of a `foreach`, the outputs of all its elements and the first failure."""

    outputs: list[Json] = field(default_factory=list)
    status: Status = Status.SUCCESS
    error: CallError | None = None


class Scope:
    def __init__(self, plan: Plan, inputs: Mapping[str, Json], *, run: Mapping[str, Json]) -> None:
        self._plan = plan
        self._results: dict[int, _Result] = {}
        self._listed: int | None = None  # the step whose `foreach` has given a list; a failed one has no elements
        self._steps: dict[str, Json] = {}
        taken = {*plan.variables, *(step.store_as for step in plan.steps)}
        self._names: dict[str, Json] = {name: value for name, value in inputs.items() if name not in taken}
        self._names |= {"inputs": inputs, "input": inputs, "run": run}
        self._set_variables()
        self._names["steps"] = self._steps
        self._named_last: dict[int, list[PlanStep]] = defaultdict(list)
        for index, kept in plan.kept.items():
            self._named_last[kept.until].append(plan.steps[index])

    def _set_variables(self) -> None:
        size = 0
        for name, template in self._plan.variables.items():
            place = f"variables.{name}"
            try:
                value = template.render(self._names, at=place)
                size += weigh(value)
            except PlanError as error:
                raise self._misset(name, error.message, error.hint) from None
            if size > MAX_RESULT:  # they are all held until the run ends
                message = f"{place}: the variables up to here are over {MAX_RESULT // 1024 // 1024} MiB together"
                raise self._misset(name, message, "put it into the steps that need it")
            self._names[name] = value

    def _misset(self, name: str, message: str, hint: str | None) -> PlanError:
        return template_error(self._plan.document, ("variables", name), message, hint)

    def begin(self, step: PlanStep) -> Sequence[Json] | None:
        """Let go of what was named for the last time; then the elements of a `foreach`, or None without one."""
        for done in self._named_last.pop(step.index - 1, ()):
            self._forget(done)
        if step.foreach is None:
            return None
        place = f"steps[{step.index}].foreach"
        elements = step.foreach.render(self._names, at=place)
        if not isinstance(elements, Sequence) or isinstance(elements, str):
            raise PlanError(3003, f"{place}: the value is no list", hint="`foreach` takes a list")
        self._listed = step.index
        if not elements and step.index in self._plan.kept:
            self._show(step, _Result())
        return elements

    def args(self, step: PlanStep, item: Json = None) -> Mapping[str, Json]:
        names = self._names if step.foreach is None else ChainMap({"item": item}, self._names)
        args = step.args.render(names, at=f"steps[{step.index}].args")
        assert isinstance(args, Mapping)
        return args

    def keep(self, step: PlanStep, status: Status, output: Json = None, error: CallError | None = None) -> None:
        """How a call of this step ended; of a `foreach` all outputs are kept, and the first failure."""
        kept = self._plan.kept.get(step.index)
        if kept is None:
            return
        result = self._results.setdefault(step.index, _Result())
        if kept.output and (step.foreach is None or self._listed == step.index):
            result.outputs.append(output)
        if result.status is Status.SUCCESS:
            result.status, result.error = status, error
        self._show(step, result)

    def _show(self, step: PlanStep, result: _Result) -> None:
        output: Json = result.outputs
        if step.foreach is None:
            output = result.outputs[0] if result.outputs else None
        error = None if result.error is None else result.error.as_json()
        self._steps[step.id] = {"output": output, "status": result.status.value, "error": error}
        if step.store_as is not None:
            self._names[step.store_as] = output

    def _forget(self, step: PlanStep) -> None:
        self._results.pop(step.index, None)
        self._steps.pop(step.id, None)
        if step.store_as is not None:
            self._names.pop(step.store_as, None)
