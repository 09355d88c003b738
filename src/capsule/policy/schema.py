"""The policy document as JSON Schema: what `capsule schema policy` prints and what every policy is checked against.

What an argument's constraint may hold depends on the tool; `constraints` checks that part.
"""

from __future__ import annotations

from collections.abc import Mapping

from capsule.calls import BUILTIN, Source
from capsule.canon import Json


def _strings(description: str) -> dict[str, Json]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _one_or(item: Mapping[str, Json], description: str) -> dict[str, Json]:
    return {"anyOf": [item, {"type": "array", "items": item}], "description": description}


_TEXT: Mapping[str, Json] = {"type": "string"}
_SIZE: Mapping[str, Json] = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}
_DURATION: Mapping[str, Json] = {
    "type": ["string", "integer"],
    "description": "With its unit, as in 500ms, 20s or 10m; a bare number is refused, because it does not say which.",
}
_ALLOW: Mapping[str, Json] = {"type": "string", "enum": ["allow"]}
_SOURCES: Mapping[str, Json] = {"type": "string", "enum": [source.value for source in Source]}

PATH_CONSTRAINT: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "One pattern: / the file system, ~/ the home, else the workdir."},
        "patterns": _strings("Several; any of them."),
        "hidden": {**_ALLOW, "description": "Let wildcards match names that begin with a dot."},
        "protected": {**_ALLOW, "description": "Let a pattern without wildcards name a protected path."},
    },
    "additionalProperties": False,
}

QUERY_CONSTRAINT: Mapping[str, Json] = {
    "type": "object",
    "additionalProperties": _one_or(_TEXT, "What the parameter may be."),
    "description": "Every parameter of the query must be named here, with one of these values.",
}

URL_CONSTRAINT: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "domains": _strings('Hosts: exact, or "*.example.com" for names below it.'),
        "pattern": {"type": "string", "description": "scheme://host[:port]/path-glob, or ** for all."},
        "patterns": _strings("Several; any of them."),
        "schemes": _strings("Default http and https."),
        "ports": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65535}},
        "query": QUERY_CONSTRAINT,
        "private_networks": {**_ALLOW, "description": "Only with hosts named without wildcards."},
        "max_redirects": {"type": "integer", "minimum": 0, "maximum": 20},
    },
    "additionalProperties": False,
}

_COMMAND_PATTERN: Mapping[str, Json] = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}

COMMAND_CONSTRAINT: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "pattern": {**_COMMAND_PATTERN, "description": "Tokens, or text cut at single spaces."},
        "patterns": {"type": "array", "items": _COMMAND_PATTERN, "description": "Several; any of them."},
        "executables": _strings("Short for the patterns NAME **."),
        "deny_tokens": _strings("A seat belt, not a control."),
    },
    "additionalProperties": False,
}

SANDBOX: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "read": _strings("Literal paths."),
        "write": _strings("Literal paths."),
        "network": {"type": "string", "enum": ["none", "allow"]},
        "protected": _ALLOW,
    },
    "additionalProperties": False,
}

LIMIT_KEYS: Mapping[str, Mapping[str, Json]] = {
    "max_bytes": _SIZE,
    "max_calls": {"type": "integer", "minimum": 0},
    "rate_limit": {
        "type": "object",
        "properties": {"requests_per_minute": {"type": "integer", "minimum": 1, "maximum": 100_000}},
        "required": ["requests_per_minute"],
        "additionalProperties": False,
    },
    "timeout": _DURATION,
    "max_output_bytes": _SIZE,
    "sandbox": SANDBOX,
}

_CONSTRAINTS: Mapping[str, Json] = {
    "type": "object",
    "properties": dict(LIMIT_KEYS),
    "additionalProperties": {
        "type": "object",
        "examples": [{"pattern": "./docs/**"}, {"enum": ["create"]}],  # of what is guarded, and of other arguments
    },
    "description": "Argument names, guard keys (paths read_paths write_paths urls commands) and limits.",
}

_EXAMPLES: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "match": {"type": "array", "items": {"type": "object"}},
        "no_match": {"type": "array", "items": {"type": "object"}},
    },
    "additionalProperties": False,
    "description": "Arguments that this rule must match, or must not; checked at load.",
}

_RULE: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "minLength": 1, "maxLength": 100},
        "action": {"type": "string", "enum": ["allow", "ask", "deny", "limit"]},
        "tool": _one_or({"type": "string", "minLength": 1}, "A name, a list, or a glob such as fs.*"),
        "when": {
            "type": "object",
            "properties": {"tainted": {"type": "boolean", "enum": [True]}, "source": _one_or(_SOURCES, "Who asks.")},
            "additionalProperties": False,
        },
        "constraints": _CONSTRAINTS,
        "secrets": _strings("Names of secrets that calls of this rule may use."),
        "redact": {"type": "string", "enum": ["off", "secrets", "personal"]},
        "sandbox_level": {"type": "string", "enum": ["namespaces", "landlock", "seatbelt", "any"]},
        "why": _TEXT,
        "examples": _EXAMPLES,
    },
    "required": ["action", "tool"],
    "additionalProperties": False,
}

_TEST: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "tool": _TEXT,
        "args": {"type": "object"},
        "expect": {"type": "string", "enum": ["allow", "ask", "deny"]},
        "code": {"type": "integer"},
        "source": _SOURCES,
        "tainted": {"type": "boolean"},
    },
    "required": ["tool", "expect"],
    "additionalProperties": False,
}

POLICY_SCHEMA: Mapping[str, Json] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Capsule policy",
    "description": f"What a run may do. Built-in tools: {', '.join(BUILTIN)}.",
    "type": "object",
    "properties": {
        "version": {"enum": [1, "1"], "default": 1},
        "name": _TEXT,
        "description": _TEXT,
        "default_action": {"type": "string", "enum": ["deny", "ask"], "default": "deny"},
        "path": _strings("Directories in which bare program names are found."),
        "trusted_paths": _strings("Files whose content does not taint a run."),
        "rules": {"type": "array", "items": _RULE},
        "limits": {
            "type": "object",
            "properties": {"calls": {"type": "integer", "minimum": 0}, "wall_time": _DURATION},
            "additionalProperties": False,
        },
        "tests": {"type": "array", "items": _TEST},
    },
    "additionalProperties": False,
}
