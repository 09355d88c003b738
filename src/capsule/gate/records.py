"""Decisions, grants and results as they stand in the journal: short, for every step has them, and complete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from capsule.calls import (
    CallError,
    Components,
    Decision,
    Grant,
    Limits,
    ToolCall,
    ToolResult,
)
from capsule.canon import Json

_EMPTY: tuple[Json, ...] = ("", [], {})  # not 0: a limit of 0 is a limit


def _shown(components: Components | None) -> str | None:
    return None if components is None else "/" + "/".join(components)


def _without_empty(values: Mapping[str, Json]) -> dict[str, Json]:
    """What is absent, empty or false says nothing; the format page lists what each absence means."""
    return {
        name: value
        for name, value in values.items()
        if value is not None and value is not False and value not in _EMPTY
    }


def decision_record(decision: Decision) -> dict[str, Json]:
    return _without_empty(
        {
            "effect": decision.effect.value,
            "code": decision.code,
            "rule": decision.rule,
            "reason": None if decision.code is None else decision.reason,
            "suggestion": decision.suggestion,
            "flags": list(decision.flags),
            "limits": dict(decision.limit_rules),
            "counted": [[layer, rule] for layer, rule in decision.counted],
            "retry_after_ms": decision.retry_after_ms,
        }
    )


def limits_record(limits: Limits) -> dict[str, Json]:
    return _without_empty(
        {
            "timeout_ms": limits.timeout_ms,
            "max_bytes": limits.max_bytes,
            "max_output_bytes": limits.max_output_bytes,
        }
    )


def grant_record(grant: Grant) -> dict[str, Json]:
    """The resources of one call, named in full: the exact path, the exact host, the exact argv."""
    return _without_empty(
        {
            "files": [
                _without_empty(
                    {
                        "argument": file.argument,
                        "access": file.access.value,
                        "anchor": file.anchor,
                        "path": "/".join(file.components) or ".",
                        "runs_later": file.runs_later,
                    }
                )
                for file in grant.files
            ],
            "urls": [
                _without_empty(
                    {
                        "argument": url.argument,
                        "href": url.href,
                        "host": url.host,
                        "port": url.port,
                        "private_networks": url.private_networks,
                        "max_redirects": url.max_redirects,
                    }
                )
                for url in grant.urls
            ],
            "commands": [
                _without_empty(
                    {
                        "argument": command.argument,
                        "argv": list(command.argv),
                        "program": _shown(command.program),
                        "read": list(command.sandbox.read),
                        "write": list(command.sandbox.write),
                        "network": command.sandbox.network,
                        "protected": command.sandbox.protected,
                        "level": command.level,
                    }
                )
                for command in grant.commands
            ],
            "limits": limits_record(grant.limits),
            "redact": grant.redact if grant.redact != "secrets" else None,
            "secrets": list(grant.secrets),
        }
    )


def call_record(call: ToolCall) -> dict[str, Json]:
    """The call as it was made; its arguments with their defaults follow from the tool's definition."""
    return {"tool": call.tool, "args": dict(call.args), "source": call.source.value}


def error_record(error: CallError | None) -> dict[str, Json] | None:
    if error is None:
        return None
    return _without_empty(
        {"code": error.code, "message": error.message, "hint": error.hint, "retry_after_ms": error.retry_after_ms}
    )


def error_from(record: Mapping[str, Json]) -> CallError:
    """The error as it was recorded: what is returned is what stands in the journal."""
    return CallError(
        code=cast("int", record["code"]),
        message=cast("str", record["message"]),
        hint=cast("str | None", record.get("hint")),
        retry_after_ms=cast("int | None", record.get("retry_after_ms")),
    )


def result_record(result: ToolResult) -> dict[str, Json]:
    return _without_empty(
        {
            "status": result.status.value,
            "error": error_record(result.error),
            "findings": [finding.as_json() for finding in result.findings],
            "artifacts": list(result.artifacts),
            "flags": list(result.flags),
        }
    ) | ({} if result.output is None else {"output": result.output})
