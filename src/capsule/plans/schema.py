"""The shape of a plan; what only its meaning can tell (names, templates, defaults) is checked in `document`."""

from __future__ import annotations

from capsule.canon import Json

STEP_ID = "^[a-z_][a-z0-9_]*$"
NAME = "^[A-Za-z_][A-Za-z0-9_]*$"

_TEXT: dict[str, Json] = {"type": "string"}

_INPUT: dict[str, Json] = {
    "type": "object",
    "required": ["type"],
    "additionalProperties": False,
    "properties": {
        "type": {"type": "string", "enum": ["string", "integer", "number", "boolean", "array", "object"]},
        "required": {"type": "boolean", "default": False},
        "default": {"description": "Taken where nothing is given; of the declared type, never a template."},
        "enum": {"type": "array", "minItems": 1, "description": "The values that are allowed."},
        "pattern": {"type": "string", "description": "RE2, found anywhere in a string."},
        "items": {"type": "object", "description": "The JSON Schema of an array's items."},
        "description": _TEXT,
    },
}

_STEP: dict[str, Json] = {
    "type": "object",
    "required": ["tool"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "pattern": STEP_ID, "description": "Left out: step_1, step_2, …"},
        "name": _TEXT,
        "description": _TEXT,
        "tool": {"type": "string", "minLength": 1},
        "args": {"type": "object", "default": {}, "description": "Texts may be templates, keys never."},
        "foreach": {
            "type": ["string", "array"],
            "description": "A list, or one {{ expression }} that gives one; the step runs once for each {{ item }}.",
        },
        "store_as": {"type": "string", "pattern": NAME, "description": "The name later templates know the output by."},
        "continue_on_error": {"type": "boolean", "default": False},
    },
}

PLAN_SCHEMA: dict[str, Json] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Capsule plan",
    "type": "object",
    "required": ["steps"],
    "additionalProperties": False,
    "properties": {
        "version": {"enum": ["1", 1], "default": "1"},
        "name": _TEXT,
        "description": _TEXT,
        "inputs": {"type": "object", "additionalProperties": _INPUT, "default": {}},
        "variables": {"type": "object", "default": {}, "description": "Set in order, before the first step."},
        "steps": {"type": "array", "items": _STEP, "minItems": 1},
    },
}
