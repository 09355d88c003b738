"""What a tool is: its name, its arguments, and which of them a policy guards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from capsule.canon import Json


class Guard(StrEnum):
    """What an argument reaches, and so which constraint must cover it before a call is allowed."""

    READ_PATH = "read_path"
    WRITE_PATH = "write_path"
    URL = "url"
    COMMAND = "command"
    ENV = "env"  # must be covered as soon as it is not empty
    HEADERS = "headers"  # must be covered as soon as it carries credentials


class SideEffect(StrEnum):
    READ = "read"
    WRITE = "write"
    AUTH = "auth"


class Trust(StrEnum):
    """Whether a result taints the run: `places` asks where it came from (`trusted_paths`)."""

    TRUSTED = "trusted"
    PLACES = "places"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryProfile:
    attempts: int = 1
    backoff_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """The contract of a tool; its digest is part of every approval."""

    name: str
    description: str
    args_schema: Mapping[str, Json]
    output: tuple[str, ...] = ()  # the members of what it gives, for whoever writes a plan
    guards: Mapping[str, Guard] = field(default_factory=dict)
    side_effect_class: SideEffect = SideEffect.READ
    timeout_ms: int = 30_000
    max_bytes: int | None = None  # default cap on what one call reads or writes
    max_output_bytes: int | None = None  # default cap on each stream of a process
    payload: str | None = None  # the argument whose bytes are written; its size is known before the act
    retry_profile: RetryProfile = RetryProfile()
    trust: Trust = Trust.UNTRUSTED

    @property
    def arguments(self) -> Mapping[str, Json]:
        properties = self.args_schema.get("properties", {})
        assert isinstance(properties, Mapping)
        return properties

    @property
    def defaults(self) -> dict[str, Json]:
        """Argument defaults as the schema states them."""
        return {
            name: schema["default"]
            for name, schema in self.arguments.items()
            if isinstance(schema, Mapping) and "default" in schema
        }

    def as_json(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "description": self.description,
            "args_schema": self.args_schema,
            "output": list(self.output),
            "guards": {name: guard.value for name, guard in self.guards.items()},
            "side_effect_class": self.side_effect_class.value,
            "timeout_ms": self.timeout_ms,
            "max_bytes": self.max_bytes,
            "max_output_bytes": self.max_output_bytes,
            "payload": self.payload,
            "retry_profile": {
                "attempts": self.retry_profile.attempts,
                "backoff_ms": self.retry_profile.backoff_ms,
            },
            "trust": self.trust.value,
        }
