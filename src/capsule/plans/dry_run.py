"""What a plan would be allowed to do, decided on the disk as it is now; nothing runs and nothing is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from capsule.calls import Decision, Source, ToolCall
from capsule.canon import Json
from capsule.errors import PlanError, ToolError
from capsule.gate import Opening, disk_world
from capsule.plans.document import Plan, PlanStep
from capsule.plans.scope import Scope
from capsule.policy import InOrder, wall_time_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """`decision` is None where the step cannot be known before the run, or its call is not valid; `note` says why."""

    step_id: str
    tool: str
    decision: Decision | None
    note: str | None = None
    code: int | None = None

    def as_json(self) -> dict[str, Json]:
        decision = None if self.decision is None else self.decision.as_json()
        return {"step_id": self.step_id, "tool": self.tool, "decision": decision, "note": self.note, "code": self.code}


def dry_run(plan: Plan, inputs: Mapping[str, Json], opening: Opening) -> Iterator[Foreseen]:
    """Each step in order, as if every call before it had been let through."""
    in_use = (*opening.in_use, *(file for file in (plan.file, *(policy.file for policy in opening.policies)) if file))
    with disk_world(opening.settings, opening.workdir, db=opening.db, in_use=in_use) as (world, _):
        layers = tuple(policy.bind(world) for policy in opening.policies)
        scope = Scope(plan, inputs, run={"id": "dry-run", "workdir": str(opening.workdir)})
        deciding = InOrder(layers, world)
        wall_time = wall_time_ms(layers)
        for step in plan.steps:
            for step_id, args in _calls(scope, step):
                if isinstance(args, PlanError):
                    note = f"not known before the run: {args.message}"
                    yield Foreseen(step_id=step_id, tool=step.tool, decision=None, note=note)
                    continue
                foreseen = _foreseen(deciding, step_id, ToolCall(tool=step.tool, args=args, source=Source.PLAN))
                if wall_time is not None and deciding.now_ms >= wall_time:
                    note = f"the run would be over: calls wait {deciding.now_ms} ms for their rates"
                    yield Foreseen(step_id=step_id, tool=step.tool, decision=None, note=note, code=7003)
                    return
                yield foreseen


def _foreseen(deciding: InOrder, step_id: str, call: ToolCall) -> Foreseen:
    try:
        return Foreseen(step_id=step_id, tool=call.tool, decision=deciding.decide(call))
    except ToolError as error:
        return Foreseen(step_id=step_id, tool=call.tool, decision=None, note=str(error), code=error.code)


def _calls(scope: Scope, step: PlanStep) -> Iterator[tuple[str, Mapping[str, Json] | PlanError]]:
    try:
        elements = scope.begin(step)
        if elements is None:
            yield step.id, scope.args(step)
            return
    except PlanError as error:
        yield step.id, error
        return
    for number, item in enumerate(elements):
        try:
            yield f"{step.id}[{number}]", scope.args(step, item)
        except PlanError as error:
            yield f"{step.id}[{number}]", error
