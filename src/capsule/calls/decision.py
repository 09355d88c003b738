"""What a policy is asked with, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from capsule.calls.concrete import Access, Components, Resolved
from capsule.canon import Json
from capsule.errors import KINDS

Redact: TypeAlias = Literal["off", "secrets", "personal"]


class Effect(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount:
    """What one rule has let through in this run."""

    total: int = 0
    recent_ms: tuple[int, ...] = ()  # run-clock times of the last minute, oldest first


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerState:
    calls: int = 0  # calls let through in this run
    rules: Mapping[str, RuleCount] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """Everything about the run that a decision may depend on; frozen, so that deciding stays pure."""

    now_ms: int = 0  # the run's clock: it stands still while a person is asked
    tainted: bool = False
    layers: tuple[LayerState, ...] = (LayerState(),)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGrant:
    """One file or directory of this call, never a tree."""

    argument: str
    access: Access
    anchor: Literal["workdir", "root"]
    components: Components  # the exact real path below the anchor
    runs_later: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlGrant:
    argument: str
    href: str
    host: str
    port: int
    private_networks: bool = False
    max_redirects: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxGrant:
    """What a command may reach beyond the system's programs: literal paths and the network, or nothing."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = False
    protected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandGrant:
    argument: str
    argv: tuple[str, ...]
    program: Components | None
    sandbox: SandboxGrant
    level: str | None  # the weakest jail that will do; None is the default of the kind of call


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    timeout_ms: int
    max_bytes: int | None = None
    max_output_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The resources of this one call; tools get nothing else."""

    limits: Limits
    files: tuple[FileGrant, ...] = ()
    urls: tuple[UrlGrant, ...] = ()
    commands: tuple[CommandGrant, ...] = ()
    redact: Redact = "secrets"
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer of the policy; `grant` is there for allow and ask and never for deny."""

    effect: Effect
    resolved: Resolved
    reason: str
    code: int | None = None
    rule: str | None = None
    suggestion: str | None = None
    flags: tuple[str, ...] = ()
    grant: Grant | None = None
    counted: tuple[tuple[int, str], ...] = ()  # (layer, rule) whose counters go up when the call runs
    limit_rules: Mapping[str, str] = field(default_factory=dict)  # limit → the rule it came from
    retry_after_ms: int | None = None  # set where waiting would help (a rate)

    @property
    def kind(self) -> str | None:
        return None if self.code is None else KINDS[self.code]

    def as_json(self) -> dict[str, Json]:
        return {
            "effect": self.effect.value,
            "code": self.code,
            "kind": self.kind,
            "rule": self.rule,
            "reason": self.reason,
            "suggestion": self.suggestion,
            "resolved": self.resolved,
            "flags": list(self.flags),
        }
