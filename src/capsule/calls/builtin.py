"""The five tools that every policy knows.

They are data here, below the policy, because a policy is checked against them at load; `tools` holds what they do.
"""

from __future__ import annotations

from collections.abc import Mapping

from capsule.calls.definition import Guard, RetryProfile, SideEffect, ToolDefinition, Trust

MIB = 1024 * 1024
FILE_BYTES = 10 * MIB
STREAM_BYTES = MIB

FS_READ = ToolDefinition(
    name="fs.read",
    description="Read a regular file, or a range of it.",
    output=("path", "content", "encoding", "size", "sha256", "truncated", "next_offset"),
    args_schema={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "offset": {"type": "integer", "minimum": 0, "default": 0},
            "length": {"type": ["integer", "null"], "minimum": 0, "default": None},
            "encoding": {"type": "string", "enum": ["auto", "utf-8", "base64"], "default": "auto"},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    guards={"path": Guard.READ_PATH},
    max_bytes=FILE_BYTES,
    trust=Trust.PLACES,
)

FS_LIST = ToolDefinition(
    name="fs.list",
    description="List what lies beneath a directory, as far as the policy shows it.",
    output=("path", "entries", "truncated", "next_offset", "skipped_names"),
    args_schema={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "pattern": {"type": "string", "minLength": 1, "default": "**"},
            "offset": {"type": "integer", "minimum": 0, "default": 0},
            "limit": {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 10_000},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    guards={"path": Guard.READ_PATH},
    trust=Trust.PLACES,
)

FS_WRITE = ToolDefinition(
    name="fs.write",
    description="Create, overwrite or append to a regular file, all of it or nothing.",
    output=("path", "bytes_written", "created", "sha256"),
    args_schema={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "content": {"type": "string"},
            "encoding": {"type": "string", "enum": ["utf-8", "base64"], "default": "utf-8"},
            "mode": {"type": "string", "enum": ["create", "overwrite", "append"], "default": "create"},
            "create_dirs": {"type": "boolean", "default": False},
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    guards={"path": Guard.WRITE_PATH},
    side_effect_class=SideEffect.WRITE,
    max_bytes=FILE_BYTES,
    payload="content",
    trust=Trust.TRUSTED,
)

HTTP_GET = ToolDefinition(
    name="http.get",
    description="Fetch a URL with GET; every redirect is decided anew.",
    output=("url", "status", "headers", "body", "encoding", "truncated", "redirects"),
    args_schema={
        "type": "object",
        "properties": {
            "url": {"type": "string", "minLength": 1},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}, "default": {}},
        },
        "required": ["url"],
        "additionalProperties": False,
    },
    guards={"url": Guard.URL, "headers": Guard.HEADERS},
    max_bytes=FILE_BYTES,
    retry_profile=RetryProfile(attempts=2, backoff_ms=500),
)

SHELL_RUN = ToolDefinition(
    name="shell.run",
    description="Run one program with a list of arguments, contained by the machine; no shell.",
    output=("exit_code", "stdout", "stderr", "truncated", "timed_out", "duration_ms"),
    args_schema={
        "type": "object",
        "properties": {
            "command": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "cwd": {"type": "string", "minLength": 1},
            "env": {"type": "object", "additionalProperties": {"type": "string"}, "default": {}},
            "stdin": {"type": "string"},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    guards={"command": Guard.COMMAND, "cwd": Guard.READ_PATH, "env": Guard.ENV},
    side_effect_class=SideEffect.WRITE,
    timeout_ms=60_000,
    max_output_bytes=STREAM_BYTES,
)

BUILTIN: Mapping[str, ToolDefinition] = {
    definition.name: definition for definition in (FS_LIST, FS_READ, FS_WRITE, HTTP_GET, SHELL_RUN)
}
