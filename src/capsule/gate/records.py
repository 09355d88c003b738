"""Decisions, grants and results as they stand in the journal: short, for every step has them, and complete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from capsule.calls import (
    CallError,
    CommandGrant,
    Components,
    Decision,
    Effect,
    FileGrant,
    Grant,
    Limits,
    Source,
    ToolCall,
    ToolDefinition,
    ToolResult,
    UrlGrant,
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
    """An intent stands for an allow, so the effect is named only where it is another."""
    return _without_empty(
        {
            "effect": None if decision.effect is Effect.ALLOW else decision.effect.value,
            "code": decision.code,
            "rule": decision.rule,
            "reason": None if decision.code is None else decision.reason,
            "suggestion": decision.suggestion,
            "limits": dict(decision.limit_rules),
            "counted": [[layer, rule] for layer, rule in decision.counted],
            "retry_after_ms": decision.retry_after_ms,
        }
    )


def grant_record(grant: Grant, definition: ToolDefinition) -> dict[str, Json]:
    """The resources of one call, named in full: the exact path, the exact host, the exact argv.

    A limit that is the tool's own default is left out; the digest of the definitions stands in the first record.
    """
    return _without_empty(
        {
            "files": [f"{file.access.value} {path_text(file)}" for file in grant.files],
            "runs_later": any(file.runs_later for file in grant.files),
            "urls": [_url_record(url) for url in grant.urls],
            "commands": [_command_record(command) for command in grant.commands],
            "limits": _limits_record(grant.limits, definition),
            "redact": grant.redact if grant.redact != "secrets" else None,
            "secrets": list(grant.secrets),
        }
    )


def path_text(file: FileGrant) -> str:
    """As a pattern spells it: what hangs from the workdir begins with a dot."""
    start = "." if file.anchor == "workdir" else ""
    return "/".join((start, *file.components)) or "/"


def _url_record(url: UrlGrant) -> dict[str, Json]:
    return _without_empty(
        {
            "argument": url.argument,
            "href": url.href,
            "host": url.host,
            "port": url.port,
            "private_networks": url.private_networks,
            "max_redirects": url.max_redirects,
        }
    )


def _command_record(command: CommandGrant) -> dict[str, Json]:
    return _without_empty(
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


def _limits_record(limits: Limits, definition: ToolDefinition) -> dict[str, Json]:
    return {
        name: granted
        for name, granted, default in (
            ("timeout_ms", limits.timeout_ms, definition.timeout_ms),
            ("max_bytes", limits.max_bytes, definition.max_bytes),
            ("max_output_bytes", limits.max_output_bytes, definition.max_output_bytes),
        )
        if granted != default
    }


def call_record(call: ToolCall, usual: Source | None = None) -> dict[str, Json]:
    """The call as it was made; its arguments with their defaults follow from the tool's definition.

    The source is left out where it is the usual one of the run, which stands in its first record.
    """
    source: dict[str, Json] = {} if call.source is usual else {"source": call.source.value}
    return {"tool": call.tool, "args": dict(call.args), **source}


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
