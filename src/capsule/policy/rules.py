"""A policy as frozen values, the way its author wrote it; nothing here knows a machine yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from capsule.calls import Guard, Redact, SandboxGrant, Source
from capsule.canon import Json
from capsule.policy.commands import CommandConstraint
from capsule.policy.paths import PathConstraint, PathPattern
from capsule.policy.tool_names import ToolName
from capsule.policy.urls import UrlConstraint
from capsule.policy.values import ValueConstraint

Constraint: TypeAlias = PathConstraint | UrlConstraint | CommandConstraint | ValueConstraint

DocumentPath: TypeAlias = tuple[str | int, ...]


DEFAULT_SEARCH = ("/usr/local/bin", "/usr/bin", "/bin")


class Action(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"
    LIMIT = "limit"


_PATHS = frozenset({Guard.READ_PATH, Guard.WRITE_PATH})

GUARD_KEYS: Mapping[str, frozenset[Guard]] = {
    "paths": _PATHS,
    "read_paths": frozenset({Guard.READ_PATH}),
    "write_paths": frozenset({Guard.WRITE_PATH}),
    "urls": frozenset({Guard.URL}),
    "commands": frozenset({Guard.COMMAND}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """What a constraint is about: one argument by name, or every argument under a guard key."""

    name: str
    is_guard_key: bool

    def covers(self, argument: str, guard: Guard | None) -> bool:
        return guard in GUARD_KEYS[self.name] if self.is_guard_key else self.name == argument


Constraints: TypeAlias = tuple[tuple[Selector, Constraint], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleLimits:
    max_bytes: int | None = None
    max_calls: int | None = None
    per_minute: int | None = None
    timeout_ms: int | None = None
    max_output_bytes: int | None = None
    sandbox: SandboxGrant | None = None

    @property
    def counted(self) -> bool:
        return self.max_calls is not None or self.per_minute is not None


_NO_LIMITS = RuleLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    match: tuple[Mapping[str, Json], ...] = ()
    no_match: tuple[Mapping[str, Json], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    id: str
    action: Action
    tools: tuple[ToolName, ...]
    place: DocumentPath
    when_tainted: bool = False
    when_sources: frozenset[Source] | None = None
    grants: Constraints = ()  # what an allow or ask needs to grant a call
    bars: Constraints = ()  # what makes a deny, limit or ask stand in the way of one
    limits: RuleLimits = RuleLimits()
    secrets: tuple[str, ...] = ()
    redact: Redact | None = None
    sandbox_level: str | None = None
    why: str | None = None
    examples: Examples = Examples()
    is_plain: bool = field(init=False)  # it sets no term of a grant: most rules only say what they match

    def __post_init__(self) -> None:
        named = (self.secrets, self.redact, self.sandbox_level, self.limits != _NO_LIMITS)
        urls = [constraint for _, constraint in self.grants if isinstance(constraint, UrlConstraint)]
        loosened = any(url.private_networks or url.max_redirects is not None for url in urls)
        object.__setattr__(self, "is_plain", not (any(named) or loosened))

    def names(self, tool: str) -> bool:
        return any(name.matches(tool) for name in self.tools)

    def applies(self, tool: str, source: Source, *, tainted: bool) -> bool:
        """Whether the rule takes part at all; what `when` leaves out is as if it were not written."""
        if self.when_tainted and not tainted:
            return False
        if self.when_sources is not None and source not in self.when_sources:
            return False
        return self.names(tool)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTest:
    tool: str
    args: Mapping[str, Json]
    expect: str
    place: DocumentPath
    code: int | None = None
    source: Source = Source.API
    tainted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLimits:
    calls: int | None = None
    wall_time_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRules:
    """The whole document; `name` and `digest` are what the journal keeps of its identity."""

    name: str
    digest: str
    ask_by_default: bool = False
    rules: tuple[Rule, ...] = ()
    limits: PolicyLimits = PolicyLimits()
    search: tuple[str, ...] = DEFAULT_SEARCH
    trusted_paths: tuple[PathPattern, ...] | None = None  # None: not named; an empty list trusts nothing
    tests: tuple[PolicyTest, ...] = ()

    @property
    def asks_by_default(self) -> bool:
        """Only beside a rule that can grant something: without one a policy denies everything, and no deny or limit
        that is added to it may change that."""
        return self.ask_by_default and any(rule.action in (Action.ALLOW, Action.ASK) for rule in self.rules)
