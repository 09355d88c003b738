"""A run as one readable value: the JSON report, from which every other form is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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


@dataclass(slots=True)
class _Gathered:
    outputs: bool
    steps: dict[str, _Step] = field(default_factory=dict)
    approvals: dict[str, Mapping[str, Json]] = field(default_factory=dict)
    skipped: list[Mapping[str, Json]] = field(default_factory=list)

    def take(self, record: Record) -> None:
        body = record.body
        name = str(body.get("call"))
        match record.kind:
            case "answer":
                self.approvals[name] = body
            case "intent":
                self.steps[name] = _Step(call=body, ran=True, input_hash=record.hash, approval=self.approvals.get(name))
            case "refused":
                self.steps[name] = _Step(
                    call=body, ran=False, input_hash=record.hash, outcome=body, approval=self.approvals.get(name)
                )
            case "outcome":
                step = self._begun(name)
                step.output_hash = record.hash
                step.outcome = body if self.outputs else {name: body[name] for name in body if name != "output"}
            case "skipped":
                self.skipped += [as_mapping(step) for step in as_list(body.get("steps"))]
            case _:
                pass

    def _begun(self, name: str) -> _Step:
        step = self.steps.get(name)
        if step is None:
            raise not_understood(f"call {name}, which has an outcome and never began,")
        return step


def build_report(store: Store, run: Run, *, generated_ms: int, outputs: bool = True) -> dict[str, Json]:
    """What the run was, every step with its decision, and what was really done.

    All of it is held at once. Without `outputs`, which a summary does not show, what a step takes is small.
    """
    try:
        return _report(store, run, generated_ms=generated_ms, outputs=outputs)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise not_understood(f"run {run.run_id}") from None


def _report(store: Store, run: Run, *, generated_ms: int, outputs: bool) -> dict[str, Json]:
    gathered = _Gathered(outputs=outputs)
    for record in store.records(run.run_id, bodies=outputs):
        gathered.take(record)
    steps = [*_called(run, gathered.steps.values()), *_skipped(gathered.skipped)]
    start = run.start.body
    return {
        "report_version": REPORT_VERSION,
        "generated_at": iso(generated_ms),
        "run": _run(run),
        "plan": start.get("plan"),
        "policy": start.get("policies"),
        "steps": steps,
        "summary": _summary(run, steps),
    }


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


def _called(run: Run, steps: Iterable[_Step]) -> Iterator[dict[str, Json]]:
    for step in steps:
        call, outcome = step.call, as_mapping(step.outcome)
        index = cast("int", call.get("step_index", cast("int", call["call"]) - 1))
        yield {
            "step_index": index,
            "step_id": call.get("step", f"step_{index + 1}"),
            "call_id": f"{run.run_id}.{call['call']}",
            "tool_name": call.get("tool"),
            "args": call.get("args"),
            "source": call.get("source", run.start.body.get("source")),
            "status": outcome.get("status", Status.UNKNOWN.value),
            "output": outcome.get("output"),
            "error": _error(outcome.get("error")),
            "decision": {"effect": Effect.ALLOW.value, **as_mapping(call.get("decision"))}
            if step.ran
            else call.get("decision"),
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


def _summary(run: Run, steps: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    began, ended = run.start.at, run.end.at if run.end else None
    findings = [finding for step in steps for finding in as_list(step.get("findings"))]
    return {
        "total_duration_ms": None if began is None or ended is None else ended - began,
        "resources": _resources(steps),
        "counts": run.counts.as_json(),
        "denials": [_denial(step) for step in steps if step.get("status") == Status.DENIED.value],
        "findings": len(findings),
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


def _resources(steps: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """What was done, not what was asked for: only steps that ended well count."""
    ended_well = [step for step in steps if step.get("status") == Status.SUCCESS.value]
    done = [as_mapping(step.get("grant")) for step in ended_well]
    contents = [as_mapping(step.get("grant")) for step in ended_well if step.get("tool_name") != FS_LIST.name]
    files = [str(file).split(" ", 1) for grant in contents for file in as_list(grant.get("files"))]
    return {
        "files_read": _sorted(path for access, path in files if access == "read"),
        "files_written": _sorted(path for access, path in files if access == "write"),
        "domains_contacted": _sorted(
            str(as_mapping(url).get("host")) for grant in done for url in as_list(grant.get("urls"))
        ),
        "shell_commands": [
            as_mapping(command).get("argv") for grant in done for command in as_list(grant.get("commands"))
        ],
    }


def _sorted(texts: Iterable[str]) -> list[Json]:
    return [*sorted(set(texts))]
