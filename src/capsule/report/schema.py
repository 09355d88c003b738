"""The JSON report as JSON Schema: what `capsule schema report` prints."""

from __future__ import annotations

from collections.abc import Mapping

from capsule.calls import RunStatus, Status
from capsule.canon import Json
from capsule.report.build import REPORT_VERSION

_TEXT: Mapping[str, Json] = {"type": ["string", "null"]}
_COUNT: Mapping[str, Json] = {"type": "integer", "minimum": 0}
_OBJECT: Mapping[str, Json] = {"type": ["object", "null"]}
_TEXTS: Mapping[str, Json] = {"type": "array", "items": {"type": "string"}}

_STEP: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "step_index": _COUNT,
        "step_id": _TEXT,
        "call_id": {"type": "string"},
        "tool_name": {"type": "string"},
        "args": {"description": "As recorded: secrets are masked."},
        "source": _TEXT,
        "status": {"type": "string", "enum": [status.value for status in Status]},
        "output": {"description": "As returned and recorded: the same bytes."},
        "error": _OBJECT,
        "decision": _OBJECT,
        "grant": _OBJECT,
        "sandbox": _OBJECT,
        "approval": _OBJECT,
        "findings": {"type": "array", "items": {"type": "object"}},
        "flags": _TEXTS,
        "timing": {
            "type": "object",
            "properties": {"started_at": _TEXT, "ended_at": _TEXT, "duration_ms": {"type": ["integer", "null"]}},
        },
        "hashes": _OBJECT,
    },
    "required": ["step_index", "tool_name", "status"],
}

_RESOURCES: Mapping[str, Json] = {
    "type": "object",
    "description": "What was done, not what was asked for.",
    "properties": {
        "files_read": _TEXTS,
        "files_written": _TEXTS,
        "domains_contacted": _TEXTS,
        "shell_commands": {"type": "array"},
    },
}

REPORT_SCHEMA: Mapping[str, Json] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Capsule report",
    "type": "object",
    "properties": {
        "report_version": {"type": "string", "enum": [REPORT_VERSION]},
        "generated_at": {"type": "string"},
        "run_id": {"type": "string", "description": "Only in `capsule run --json`."},
        "status": {"type": "string", "description": "Only in `capsule run --json`."},
        "run": {
            "type": "object",
            "properties": {
                "run_id": {"type": "string"},
                "status": {"type": "string", "enum": [status.value for status in RunStatus]},
                "mode": {"type": "string"},
                "created_at": _TEXT,
                "completed_at": _TEXT,
                "workdir": _TEXT,
                "inputs": _OBJECT,
                "versions": _OBJECT,
                "head": {
                    "type": "string",
                    "description": "The hash of the run's last record: export it to prove the run.",
                },
                "error": _OBJECT,
            },
            "required": ["run_id", "status", "mode"],
        },
        "plan": _OBJECT,
        "policy": {"type": ["array", "null"]},
        "steps": {"type": "array", "items": _STEP},
        "summary": {
            "type": "object",
            "properties": {
                "total_duration_ms": {"type": ["integer", "null"]},
                "resources": _RESOURCES,
                "counts": {"type": "object", "additionalProperties": _COUNT},
                "denials": {"type": "array", "items": {"type": "object"}},
                "findings": _COUNT,
            },
            "required": ["resources", "counts", "denials"],
        },
    },
    "required": ["report_version", "generated_at", "run", "steps", "summary"],
}
