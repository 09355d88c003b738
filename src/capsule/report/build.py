"""A run made readable: the JSON report, from which every other form is made; it is read one step at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

from capsule.calls import Effect, Status
from capsule.calls.builtin import FS_LIST
from capsule.canon import Json
from capsule.errors import KINDS, RETRIABLE
from capsule.report.reading import as_list, as_mapping
from capsule.store import Record, Run, Store, not_understood

REPORT_VERSION = "1.0"


@dataclass(slots=True, kw_only=True)
class _Step:
    """What the records of one call say, as they go by."""

    call: Mapping[str, Json]
    ran: bool
    input_hash: str
    output_hash: str | None = None
    outcome: Mapping[str, Json] | None = None
    approval: Mapping[str, Json] | None = None


@dataclass(slots=True, kw_only=True)
class _Gathered:
    """Steps as their records go by, each handed on when its outcome and those of all before it are known."""

    outputs: bool
    steps: OrderedDict[str, _Step] = field(default_factory=OrderedDict)
    approvals: dict[str, Mapping[str, Json]] = field(default_factory=dict)
    skipped: list[Mapping[str, Json]] = field(default_factory=list)

    def take(self, record: Record) -> Iterator[_Step]:
        body = record.body
        name = str(body.get("call"))
        match record.kind:
            case "answer":
                self.approvals[name] = body
            case "intent":
                self.steps[name] = _Step(
                    call=body, ran=True, input_hash=record.hash, approval=self.approvals.pop(name, None)
                )
            case "refused":
                self.steps[name] = _Step(
                    call=body, ran=False, input_hash=record.hash, outcome=body, approval=self.approvals.pop(name, None)
                )
            case "outcome":
                step = self._begun(name)
                step.output_hash = record.hash
                step.outcome = body if self.outputs else {name: body[name] for name in body if name != "output"}
            case "skipped":
                self.skipped += [as_mapping(step) for step in as_list(body.get("steps"))]
            case _:
                pass
        while self.steps and next(iter(self.steps.values())).outcome is not None:
            yield self.steps.popitem(last=False)[1]

    def _begun(self, name: str) -> _Step:
        step = self.steps.get(name)
        if step is None:
            raise not_understood(f"call {name}, which has an outcome and never began,")
        return step


class Report:
    """A run as it is read: what it was, then its steps, one at a time and once, then what they came to.

    Little of it is held at once, so that a run may be as long as it likes.
    """

    def __init__(self, store: Store, run: Run, *, generated_ms: int, outputs: bool = True) -> None:
        """`outputs`: whether the steps show what was returned; a summary does not need it."""
        self._run = run
        self._generated_ms = generated_ms
        self._done = _Done()
        self.steps: Iterator[dict[str, Json]] = self._counted(store, outputs=outputs)

    def head(self) -> dict[str, Json]:
        start = self._run.start.body
        return {
            "report_version": REPORT_VERSION,
            "generated_at": iso(self._generated_ms),
            "run": _run(self._run),
            "plan": start.get("plan"),
            "policy": start.get("policies"),
        }

    def summary(self) -> dict[str, Json]:
        """Of all steps: those that nobody has read yet are read now."""
        for _ in self.steps:
            pass
        began, ended = self._run.start.at, self._run.end.at if self._run.end else None
        return {
            "total_duration_ms": None if began is None or ended is None else ended - began,
            "resources": self._done.resources(),
            "counts": self._run.counts.as_json(),
            "denials": self._done.denials,
            "findings": self._done.findings,
        }

    def _counted(self, store: Store, *, outputs: bool) -> Iterator[dict[str, Json]]:
        try:
            for step in _steps(store, self._run, outputs=outputs):
                self._done.take(step)
                yield step
        except (KeyError, TypeError, ValueError, OverflowError):
            raise not_understood(f"run {self._run.run_id}") from None


def _steps(store: Store, run: Run, *, outputs: bool) -> Iterator[dict[str, Json]]:
    gathered = _Gathered(outputs=outputs)
    for record in store.records(run.run_id, bodies=outputs):
        for step in gathered.take(record):
            yield _called(run, step)
    for step in gathered.steps.values():
        yield _called(run, step)
    yield from _skipped(gathered.skipped)


def iso(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")


def _run(run: Run) -> dict[str, Json]:
    start = run.start
    return {
        "run_id": run.run_id,
        "status": run.status.value,
        "mode": run.mode,
        "created_at": iso(start.at),
        "completed_at": iso(run.end.at) if run.end else None,
        "workdir": start.body.get("workdir"),
        "inputs": start.body.get("inputs"),
        "versions": start.body.get("versions"),
        "head": run.head,
        "error": _error(run.end.body.get("error")) if run.end else None,
    }


def _error(recorded: Json) -> Json:
    """A record keeps what its code does not say by itself."""
    error = as_mapping(recorded)
    code = _integer(error.get("code"))
    if code is None:
        return None
    return {
        "code": code,
        "kind": KINDS.get(code),
        "message": error.get("message"),
        "retriable": code in RETRIABLE,
        "retry_after_ms": error.get("retry_after_ms"),
        "hint": error.get("hint"),
    }


def _called(run: Run, step: _Step) -> dict[str, Json]:
    call, outcome = step.call, as_mapping(step.outcome)
    index = cast("int", call.get("step_index", cast("int", call["call"]) - 1))
    return {
        "step_index": index,
        "step_id": call.get("step", f"step_{index + 1}"),
        "call_id": f"{run.run_id}.{call['call']}",
        "tool_name": call.get("tool"),
        "args": call.get("args"),
        "source": call.get("source", run.start.body.get("source")),
        "status": Status(str(outcome.get("status", Status.UNKNOWN.value))).value,
        "output": outcome.get("output"),
        "error": _error(outcome.get("error")),
        "decision": _decision(call, ran=step.ran),
        "grant": call.get("grant"),
        "sandbox": None,
        "approval": _approval(step.approval),
        "findings": outcome.get("findings", []),
        "flags": outcome.get("flags", []),
        "timing": {
            "started_at": iso(_integer(call.get("at"))),
            "ended_at": iso(_integer(outcome.get("at"))) if step.outcome else None,
            "duration_ms": _duration(call, step.outcome),
        },
        "hashes": {"input": step.input_hash, "output": step.output_hash},
    }


def _decision(call: Mapping[str, Json], *, ran: bool) -> Json:
    """In the form in which a policy answers, with the rule that each limit came from; a call that was none has none."""
    recorded = as_mapping(call.get("decision"))
    if not ran and not recorded:
        return None
    code, rule = _integer(recorded.get("code")), recorded.get("rule")
    allowed = f"rule {rule} allows it" if rule else "it was approved"
    return {
        "effect": recorded.get("effect", Effect.ALLOW.value),
        "code": code,
        "kind": None if code is None else KINDS.get(code),
        "rule": rule,
        "reason": recorded.get("reason", allowed),
        "suggestion": recorded.get("suggestion"),
        "resolved": "disk",
        "flags": ["runs_later"] if as_mapping(call.get("grant")).get("runs_later") else [],
        "limits": recorded.get("limits", {}),
    }


def _duration(call: Mapping[str, Json], outcome: Mapping[str, Json] | None) -> int | None:
    began, ended = _integer(call.get("at")), _integer(outcome.get("at")) if outcome else None
    return None if began is None or ended is None else max(0, ended - began)


def _integer(value: Json) -> int | None:
    return value if isinstance(value, int) else None


def _approval(answer: Mapping[str, Json] | None) -> Json:
    if answer is None:
        return None
    return {"approved": answer.get("approved"), "by": answer.get("by"), "digest": answer.get("digest")}


def _skipped(steps: Iterable[Mapping[str, Json]]) -> Iterator[dict[str, Json]]:
    for step in steps:
        yield {
            "step_index": step.get("step_index"),
            "step_id": step.get("step"),
            "tool_name": step.get("tool"),
            "status": Status.SKIPPED.value,
        }


def _denial(step: Mapping[str, Json]) -> dict[str, Json]:
    error = as_mapping(step.get("error"))
    return {
        "step_index": step.get("step_index"),
        "step_id": step.get("step_id"),
        "tool_name": step.get("tool_name"),
        "code": error.get("code"),
        "reason": error.get("message"),
        "rule": as_mapping(step.get("decision")).get("rule"),
        "suggestion": error.get("hint"),
    }


@dataclass(slots=True)
class _Done:
    """What was done, not what was asked for: only steps that ended well count."""

    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    commands: list[Json] = field(default_factory=list)
    denials: list[Json] = field(default_factory=list)
    findings: int = 0

    def take(self, step: Mapping[str, Json]) -> None:
        self.findings += len(as_list(step.get("findings")))
        if step.get("status") == Status.DENIED.value:
            self.denials.append(_denial(step))
        if step.get("status") != Status.SUCCESS.value:
            return
        grant = as_mapping(step.get("grant"))
        self.hosts.update(str(as_mapping(url).get("host")) for url in as_list(grant.get("urls")))
        self.commands += [as_mapping(command).get("argv") for command in as_list(grant.get("commands"))]
        if step.get("tool_name") == FS_LIST.name:
            return  # a listing reads no file
        for file in as_list(grant.get("files")):
            access, path = str(file).split(" ", 1)
            (self.read if access == "read" else self.written).add(path)

    def resources(self) -> dict[str, Json]:
        return {
            "files_read": [*sorted(self.read)],
            "files_written": [*sorted(self.written)],
            "domains_contacted": [*sorted(self.hosts)],
            "shell_commands": self.commands,
        }
