"""Run a plan through the gate: each step is a call with source `plan`, in order; nothing happens beside the gate."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from capsule.calls import Answer, Approver, CallError, Question, RunStatus, Source, Status, ToolCall, ToolResult
from capsule.canon import Json
from capsule.errors import PlanError, StorageError
from capsule.gate import Gate, Opening, Step, assemble
from capsule.plans.document import Plan, PlanStep
from capsule.plans.scope import Scope

_PAUSE_SECONDS = 0.5  # how long a wait sleeps at once, so that its progress can be shown


class Watcher(Protocol):
    """Who shows progress. It hears of an outcome only when that is durable."""

    def opened(self, run_id: str) -> None: ...
    def check(self) -> None:
        """Asked before each call; raises to end the run."""

    def began(self, step: Step) -> None: ...
    def ended(self, step: Step, tool: str, result: ToolResult) -> None: ...
    def waiting(self, step: Step, left_ms: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOutcome:
    run_id: str
    status: RunStatus
    denied: int  # also those under `continue_on_error`
    error: CallError | None = None


@dataclass(slots=True, kw_only=True)
class _Told:
    """Outcomes that are held back with their record, until the record that follows makes both durable."""

    watcher: Watcher
    waiting: list[tuple[Step, str, ToolResult]] = field(default_factory=list)

    def asks(self, approver: Approver) -> Approver:
        """The question is a record, so whoever is asked may see what came before it."""

        def approve(question: Question) -> Answer:
            self.flush()
            return approver(question)

        return approve

    def intent(self, step: Step) -> None:
        self.flush()
        self.watcher.began(step)

    def flush(self) -> None:
        for step, tool, result in self.waiting:
            self.watcher.ended(step, tool, result)
        self.waiting.clear()


@dataclass(slots=True, kw_only=True)
class _Tally:
    denied: int = 0
    ends_as: RunStatus = RunStatus.COMPLETED

    def take(self, step: PlanStep, status: Status) -> bool:
        """Whether the plan may go on as far as this step is concerned."""
        if status is Status.SUCCESS:
            return True
        self.denied += status is Status.DENIED
        if step.continue_on_error:
            return True
        if status is Status.DENIED:
            self.ends_as = RunStatus.DENIED
        elif self.ends_as is RunStatus.COMPLETED:
            self.ends_as = RunStatus.FAILED
        return False


def run_plan(
    plan: Plan, inputs: Mapping[str, Json], opening: Opening, *, watcher: Watcher, fail_fast: bool = True
) -> PlanOutcome:
    """The whole plan as one run. Interrupted, it leaves a run that says so; what else ends it is in its last record."""
    told = _Told(watcher=watcher)
    try:
        with _opened(plan, inputs, opening, told) as gate:
            watcher.opened(gate.run_id)
            scope = Scope(plan, inputs, run={"id": gate.run_id, "workdir": str(opening.workdir)})
            return _Runner(plan=plan, gate=gate, scope=scope, told=told, fail_fast=fail_fast).run()
    except StorageError:
        told.waiting.clear()  # what the journal does not hold nobody hears of
        raise
    finally:
        told.flush()


def _opened(plan: Plan, inputs: Mapping[str, Json], opening: Opening, told: _Told) -> Gate:
    record: dict[str, Json] = {
        "plan": plan.as_json(),
        "plan_name": plan.name,
        "plan_digest": plan.digest,
        "inputs": inputs,
    }
    in_use = (*opening.in_use, *((plan.file,) if plan.file else ()))
    approver = told.asks(opening.approver)
    return Gate(
        assemble(
            replace(opening, plan=record, source=Source.PLAN, in_use=in_use, approver=approver, on_intent=told.intent)
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stop:
    """Why a plan ends early: an error of the run, or a denied or failed step; `left` would have been next in it."""

    error: CallError | None = None
    left: tuple[Step, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Runner:
    plan: Plan
    gate: Gate
    scope: Scope
    told: _Told
    fail_fast: bool
    tally: _Tally = field(default_factory=_Tally)

    def run(self) -> PlanOutcome:
        stop: _Stop | None = None
        for step in self.plan.steps:
            late = self._out_of_time()
            stop = _Stop(error=late, left=(_at(step),)) if late else self._step(step)
            if stop is not None:
                later = (_at(rest) for rest in self.plan.steps[step.index + 1 :])
                self._skip([*stop.left, *later])
                break
        error = stop.error if stop else None
        status = RunStatus.FAILED if error else self.tally.ends_as
        self.gate.finish(status, error=error)
        return PlanOutcome(run_id=self.gate.run_id, status=status, denied=self.tally.denied, error=error)

    def _out_of_time(self, *, after_ms: int = 0) -> CallError | None:
        limit = self.gate.wall_time_ms
        if limit is None or self.gate.elapsed_ms + after_ms < limit:
            return None
        used = f"the run has used up its {limit} ms (limits.wall_time)"
        waits = f"the next call must wait {after_ms} ms for its rate, which the run has not left of its {limit} ms"
        hint = "raise limits.wall_time of the policy, or split the plan"
        return CallError(code=7003, message=waits if after_ms else used, hint=hint)

    def _step(self, step: PlanStep) -> _Stop | None:
        """One step, or each element of its `foreach`; a stop where the plan may not go on."""
        elements = self._ready(step, _at(step), lambda: self.scope.begin(step))
        if elements is _NOT_READY:
            return self._stop_unless(self.tally.take(step, Status.ERROR))
        if elements is None:
            return self._call(step, _at(step), None)
        assert isinstance(elements, list | tuple)
        places = [Step(id=f"{step.id}[{number}]", index=step.index) for number in range(len(elements))]
        for number, item in enumerate(elements):
            stop = self._call(step, places[number], item)
            if stop is not None:
                return replace(stop, left=(*stop.left, *places[number + 1 :]))
        return None

    def _stop_unless(self, goes_on: bool) -> _Stop | None:  # noqa: FBT001 - its answer
        return None if goes_on or not self.fail_fast else _Stop()

    def _call(self, step: PlanStep, at: Step, item: Json) -> _Stop | None:
        args = self._ready(step, at, lambda: self.scope.args(step, item))
        if args is _NOT_READY:
            return self._stop_unless(self.tally.take(step, Status.ERROR))
        assert isinstance(args, Mapping)
        call = ToolCall(tool=step.tool, args=args, source=Source.PLAN)
        late = self._held_back(call, at)
        if late is not None:
            return _Stop(error=late, left=(at,))
        result = self.gate.call(call, step=at, hold_read=True)
        self.told.waiting.append((at, step.tool, result))
        self.scope.keep(step, result.status, result.output, result.error)
        return self._stop_unless(self.tally.take(step, result.status))

    def _ready(self, step: PlanStep, at: Step, render: Callable[[], object]) -> object:
        """What a template gives; where it cannot be rendered the step is recorded as one that never ran."""
        try:
            return render()
        except PlanError as error:
            call = ToolCall(tool=step.tool, args=step.written_args, source=Source.PLAN)
            result = self.gate.reject(call, error, step=at)
            self.told.waiting.append((at, step.tool, result))
            self.scope.keep(step, result.status, error=result.error)
            return _NOT_READY

    def _held_back(self, call: ToolCall, at: Step) -> CallError | None:
        """A call over a rate waits before it is decided, and the wait is a record; the error: there is no time left."""
        self.told.watcher.check()
        left_ms = self.gate.held_back_ms(call)
        if left_ms and self._out_of_time(after_ms=left_ms) is None:
            self.gate.wait(at, left_ms)
            self.told.flush()
        while left_ms and (late := self._out_of_time(after_ms=left_ms)) is None:
            self.told.watcher.check()
            self.told.watcher.waiting(at, left_ms)
            time.sleep(min(left_ms / 1000, _PAUSE_SECONDS))
            left_ms = self.gate.held_back_ms(call)
        return late if left_ms else self._out_of_time()

    def _skip(self, left: Sequence[Step]) -> None:
        if left:
            self.gate.skip([(step, self.plan.steps[step.index].tool) for step in left])


def _at(step: PlanStep) -> Step:
    return Step(id=step.id, index=step.index)


_NOT_READY = object()
