"""The one door. Every tool call, whoever makes it, goes through these seven steps:

    1  validate       find the tool, check the arguments, make them concrete, once
    2  decide         allow, ask or deny, by the policies alone
    3  approve        only for ask; after a yes the call is decided again
    4  record intent  durably, before anything happens
    5  run            the tool with its grant and nothing else
    6  screen         mask what must not leave, note findings and taint
    7  record outcome and return the same bytes

Calls that are invalid or denied end early and are recorded too. A caller must still end the run: `finish`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self, TypeAlias

from capsule.approval import deny_all
from capsule.calls import (
    Approver,
    CallError,
    ConcreteCall,
    Decision,
    Effect,
    Grant,
    LayerState,
    Redact,
    RunState,
    RunStatus,
    SideEffect,
    Status,
    ToolCall,
    ToolResult,
    Trust,
)
from capsule.canon import Json
from capsule.documents import shown
from capsule.errors import CapsuleError, PlanError, PolicyDenied, StorageError, ToolError
from capsule.gate.approvals import Approvals
from capsule.gate.assemble import Opening, assemble
from capsule.gate.context import GrantedContext
from capsule.gate.foreign import attempt, described
from capsule.gate.masking import Masked
from capsule.gate.parts import Parts, Step
from capsule.gate.place import Place
from capsule.gate.plain import plain_call
from capsule.gate.recordable import Copier, recordable
from capsule.gate.records import call_record, decision_record, error_from, error_record, grant_record, result_record
from capsule.gate.run_clock import RunClock
from capsule.gate.taint import is_untrusted
from capsule.gate.turn import Turn
from capsule.policy import (
    Policy,
    advance,
    definition_of,
    resolve,
    resolve_and_decide,
    search_path,
    visible_entries,
    wall_time_ms,
)
from capsule.screen import Markers
from capsule.settings import Settings

PolicyLike: TypeAlias = Policy | Path | str
"""A policy, or the file that it is read from."""


class Gate:
    """One run: its policies, its counters, its journal. Made by `Gate.open`, used as a context manager."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._clock = RunClock(parts.clock)
        self._approvals = Approvals(
            parts.approver, parts.writer, self._clock, parts.mask, tuple(layer.rules.digest for layer in parts.layers)
        )
        self._state = RunState(layers=tuple(LayerState() for _ in parts.layers))
        self._turn = Turn()  # decision and intent of one call are taken together, so the tape has one order
        self._calls = 0
        self._ended = False
        self._has_rates = any(rule.limits.per_minute for layer in parts.layers for rule in layer.rules.rules)

    @classmethod
    def open(
        cls,
        *,
        policy: PolicyLike | Sequence[PolicyLike],
        db: Path | str | None = None,
        workdir: Path | str = ".",
        approver: Approver = deny_all,
    ) -> Self:
        """Begin a run. `policy` is a file, a policy, or several as layers; an ask needs an approver that says yes.

        As a context manager the run ends `completed`, or `failed` when an exception leaves the block.
        """
        opening = Opening(
            settings=Settings.load(os.environ),
            policies=_policies(policy),
            workdir=Path(workdir).absolute(),
            db=None if db is None else Path(db),
            approver=approver,
        )
        return cls(assemble(opening))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Whatever ends the run is in its last record, unless the journal itself cannot be written."""
        try:
            if not self._ended:
                self._end_with(error)
        finally:
            self.close()

    def _end_with(self, error: BaseException | None) -> None:
        match error:
            case None | SystemExit(code=None | 0):
                self.finish(RunStatus.COMPLETED)
            case KeyboardInterrupt():
                self.finish(RunStatus.INTERRUPTED)
            case StorageError():
                with suppress(StorageError):  # there may be room for a last record; if not the run is interrupted
                    self.finish(RunStatus.FAILED, error=CallError.of(error))
            case CapsuleError():
                self.finish(RunStatus.FAILED, error=CallError.of(error))
            case _:
                self.finish(RunStatus.FAILED, error=CallError(code=9001, message=described(error)))

    @property
    def run_id(self) -> str:
        return self._parts.writer.run_id

    @property
    def wall_time_ms(self) -> int | None:
        return wall_time_ms(self._parts.layers)

    @property
    def elapsed_ms(self) -> int:
        """How long the run has run; the time in which a person was asked does not count."""
        return self._clock.elapsed_ms()

    def call(self, call: ToolCall, *, step: Step | None = None, hold_read: bool = False) -> ToolResult:
        """Decide, contain, record and answer one call; what a tool or a policy says is a result, not an exception.

        StorageError is raised where the journal cannot record: then nothing was run, or its outcome is unknown.
        """
        with self._turn.flight():
            with self._turn:
                if self._ended:
                    raise StorageError(5002, f"run {self.run_id} is over", hint="open another gate for further calls")
                at = self._place(step)
                copier = Copier()  # the caller's values are read once: what is decided on is what is done and recorded
                call = plain_call(call, copier)
                try:
                    concrete, decision = self._decide(call, copier)  # 1, 2
                except ToolError as error:
                    return self._refuse(call, at, Status.ERROR, CallError.of(error))
                if concrete is not None and decision.effect is Effect.ASK:
                    concrete, decision = self._approvals.ask(  # 3
                        call, at, concrete, decision, again=lambda: self._decide(call, copier)
                    )
                if concrete is None or decision.grant is None:
                    return self._refuse(call, at, Status.DENIED, _denial(decision), decision)
                recorded = self._record_intent(call, at, concrete, decision)  # 4
            ran = self._run(at, concrete, decision.grant)  # 5
            result, raw_mac = self._screen(at, concrete, decision.grant, ran, recorded)  # 6
            hold = hold_read and concrete.side_effect is SideEffect.READ
            self._record_outcome(at, result, raw_mac, hold=hold)  # 7
            return result

    def reject(self, call: ToolCall, error: CapsuleError, *, step: Step) -> ToolResult:
        """Record a call that its door could not even make, and why."""
        with self._turn:
            return self._refuse(plain_call(call, Copier()), self._place(step), Status.ERROR, CallError.of(error))

    def held_back_ms(self, call: ToolCall) -> int:
        """How long a call must wait for a rate before it can be let through; 0 where no rate is in its way."""
        if not self._has_rates:
            return 0
        with self._turn:
            copier = Copier()
            try:
                return self._decide(plain_call(call, copier), copier)[1].retry_after_ms or 0
            except ToolError:
                return 0

    def skip(self, steps: Sequence[tuple[Step, str]]) -> None:
        """Record steps that the run will not reach, with their tools."""
        listed: list[Json] = [{"step": step.id, "step_index": step.index, "tool": tool} for step, tool in steps]
        masked = self._parts.mask.record({"steps": listed})
        with self._turn:
            self._parts.writer.append("skipped", {**masked.as_record(), "at": self._clock.wall_ms()})

    def wait(self, step: Step, wait_ms: int) -> None:
        """Record that a call is held back because of a rate."""
        masked = self._parts.mask.record({"step": step.id, "step_index": step.index, "wait_ms": wait_ms})
        with self._turn:
            self._parts.writer.append("wait", {**masked.as_record(), "at": self._clock.wall_ms()})

    def finish(self, status: RunStatus, *, error: CallError | None = None) -> None:
        """Write the run's last record and let its lock go; a run that ends without one is `interrupted`.

        No call begins after this; those that other threads have in flight are waited for.
        """
        said = {} if error is None else self._said(error).as_record()
        with self._turn:
            self._ended = True
            self._turn.wait_for_others()
            self._parts.writer.end({"status": status.value, **said, "at": self._clock.wall_ms()})

    def close(self) -> None:
        """Let everything go; a run without its last record is left `interrupted`."""
        with self._turn:
            self._ended = True
            self._turn.wait_for_others()
            self._parts.resources.close()

    def _place(self, step: Step | None) -> Place:
        self._calls += 1
        number = self._calls
        return Place(step=step or Step(id=f"step_{number}", index=number - 1), number=number, run_id=self.run_id)

    # 1 validate, 2 decide

    def _decide(self, call: ToolCall, copier: Copier) -> tuple[ConcreteCall | None, Decision]:
        """An exception in either step is a deny; a call that is not valid is a ToolError."""
        self._state = replace(self._state, now_ms=self._clock.elapsed_ms())
        return resolve_and_decide(self._parts.layers, lambda: self._validate(call, copier), self._state)

    def _validate(self, call: ToolCall, copier: Copier) -> ConcreteCall:
        definition = definition_of(call.tool, self._parts.registry.definitions)
        if copier.misfit is not None:
            raise ToolError(2002, f"{call.tool}: {copier.misfit}", hint="arguments are plain JSON values")
        return resolve(call, definition, self._parts.world, search=search_path(self._parts.layers))

    def _refuse(
        self, call: ToolCall, at: Place, status: Status, error: CallError, decision: Decision | None = None
    ) -> ToolResult:
        """A call that never runs is a record like any other."""
        said = {"decision": recordable(decision_record(decision))} if decision else {}
        asked = {**at.as_json(), **call_record(call, self._parts.source)}
        record = {**asked, **said, "error": recordable(error_record(error))}
        masked = self._parts.mask.record(record, raw=call.args, markers=at.markers)
        body = {**masked.as_record(), "status": status.value, "at": self._clock.wall_ms()}
        self._parts.writer.append("refused", {**body, **_found(masked)})
        refused = error_from(_object(masked.as_record()["error"]))
        return ToolResult(call_id=at.call_id, status=status, error=refused, findings=masked.findings)

    # 4 record intent

    def _record_intent(self, call: ToolCall, at: Place, concrete: ConcreteCall, decision: Decision) -> Masked:
        assert decision.grant is not None
        grant = grant_record(decision.grant, concrete.definition)
        asked = {**at.as_json(), **call_record(call, self._parts.source)}
        record = {**asked, "decision": decision_record(decision), "grant": grant}
        redact: Redact = "personal" if decision.grant.redact == "personal" else "secrets"  # arguments: never off
        masked = self._parts.mask.record(record, raw=call.args, redact=redact, markers=at.markers)
        self._parts.writer.append("intent", {**masked.as_record(), "at": self._clock.wall_ms()})
        self._state = advance(self._state, decision, now_ms=self._state.now_ms)
        self._parts.on_intent(at.step)
        return masked

    # 5 run

    def _run(self, at: Place, concrete: ConcreteCall, grant: Grant) -> _Ran:
        context = GrantedContext(
            run_id=self.run_id,
            step_id=at.step.id,
            workdir=self._parts.workdir,
            deadline=self._clock.monotonic() + grant.limits.timeout_ms / 1000,
            grant=grant,
            anchors=self._parts.anchors,
            clock=self._parts.clock,
            visible=partial(visible_entries, self._parts.layers, concrete, self._state, self._parts.world),
        )
        tool = self._parts.registry.get(concrete.tool)
        output = attempt(lambda: recordable(tool.run(concrete.args, context)), who=concrete.tool)
        flags = tuple(context.flags)
        if isinstance(output, CapsuleError):
            return _Ran(output=None, error=output, flags=flags)
        return _Ran(output=output, error=None, flags=flags)

    # 6 screen

    def _screen(
        self, at: Place, concrete: ConcreteCall, grant: Grant, ran: _Ran, recorded: Masked
    ) -> tuple[ToolResult, str | None]:
        masked = self._parts.mask.output(
            ran.output, redact=grant.redact, markers=at.markers, sent=recorded.raw_mac is not None
        )
        flags = [*ran.flags, *(["runs_later"] if any(file.runs_later for file in grant.files) else [])]
        unsaid = ran.error is not None and ran.error.code == 2005  # it is not there, so it has said nothing
        speaks = ran.output is not None or (concrete.definition.trust is Trust.UNTRUSTED and not unsaid)
        if speaks and is_untrusted(concrete, self._parts.layers):
            flags.append("untrusted")
            with self._turn:
                self._state = replace(self._state, tainted=True)
        error, found = None, (*recorded.findings, *masked.findings)
        if ran.error is not None:
            said = self._said(CallError.of(ran.error), at.markers)
            error, found = error_from(_object(said.as_record()["error"])), (*found, *said.findings)
        result = ToolResult(
            call_id=at.call_id,
            status=_status(ran.error),
            output=masked.value,
            error=error,
            findings=found,
            flags=tuple(flags),
        )
        return result, masked.raw_mac

    def _said(self, error: CallError, markers: Markers | None = None) -> Masked:
        """An error as it may be recorded: its words may come from a tool, a caller or a file."""
        return self._parts.mask.record({"error": recordable(error_record(error))}, markers=markers)

    # 7 record outcome

    def _record_outcome(self, at: Place, result: ToolResult, raw_mac: str | None, *, hold: bool) -> None:
        mac: dict[str, Json] = {} if raw_mac is None else {"raw_mac": raw_mac}
        body = {"call": at.number, **result_record(result), **mac, "at": self._clock.wall_ms()}
        with self._turn:
            self._parts.writer.append("outcome", body, hold=hold)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ran:
    output: Json
    error: CapsuleError | None
    flags: tuple[str, ...]


def _status(error: CapsuleError | None) -> Status:
    if error is None:
        return Status.SUCCESS
    return Status.DENIED if isinstance(error, PolicyDenied) else Status.ERROR


def _denial(decision: Decision) -> CallError:
    assert decision.code is not None
    return CallError(
        code=decision.code,
        message=decision.reason,
        hint=decision.suggestion,
        retry_after_ms=decision.retry_after_ms,
    )


def _object(value: Json) -> dict[str, Json]:
    assert isinstance(value, Mapping)
    return dict(value)


def _found(masked: Masked) -> dict[str, Json]:
    return {"findings": [finding.as_json() for finding in masked.findings]} if masked.findings else {}


def _policies(policy: PolicyLike | Sequence[PolicyLike]) -> tuple[Policy, ...]:
    layers: object = [policy] if isinstance(policy, Policy | Path | str) else policy
    if not isinstance(layers, list | tuple) or not all(isinstance(layer, Policy | Path | str) for layer in layers):
        raise PlanError(3001, f"policy: found {shown(policy)}, allowed: a file, a Policy, or a list of these")
    return tuple(layer if isinstance(layer, Policy) else Policy.load(layer) for layer in layers)
