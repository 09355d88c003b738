"""The error tree.

    CapsuleError (code, message, hint, context)
    ├── PolicyDenied     1xxx  the policy, or the machine acting for it, said no
    ├── ToolError        2xxx  no such tool, wrong arguments, it failed, it is not there
    ├── PlanError        3xxx  a document, its templates or its inputs
    ├── ReplayError      4xxx  a recorded run and what was asked of it do not fit
    ├── StorageError     5xxx  the journal cannot be opened, written, read or believed
    ├── PlannerError     6xxx  a model back end
    ├── AgentStopped     7xxx  a bound of a run was reached
    └── PackError        8xxx  a pack

A code tells the case, the class the family. Numbers appear in decisions, results, the store, reports and `--json`.
"""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[int, str] = {
    **dict.fromkeys(range(1000, 1010), "policy_denied"),
    2001: "validation_error",
    2002: "validation_error",
    2003: "execution_error",
    2004: "tool_timeout",
    2005: "tool_unavailable",
    2006: "tool_unavailable",
    **dict.fromkeys(range(3001, 3005), "validation_error"),
    **dict.fromkeys(range(4001, 4006), "replay_error"),
    **dict.fromkeys(range(5001, 5007), "storage_error"),
    **dict.fromkeys(range(6001, 6007), "provider_error"),
    **dict.fromkeys(range(7001, 7006), "stop_condition"),
    **dict.fromkeys(range(8001, 8005), "validation_error"),
    9001: "internal_error",
}

RETRIABLE = frozenset({1006, 2004, 2005, 5001, 5002, 5006, 6001, 6002})


class CapsuleError(Exception):
    """Everything Capsule raises on purpose; `hint` says what to do about it."""

    def __init__(
        self, code: int, message: str, hint: str | None = None, context: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.context: Mapping[str, object] = {} if context is None else context

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]"

    @property
    def kind(self) -> str:
        return KINDS[self.code]

    @property
    def retriable(self) -> bool:
        return self.code in RETRIABLE


class PolicyDenied(CapsuleError):
    """1xxx: an act that no rule grants."""


class ToolError(CapsuleError):
    """2xxx: the call is not valid, or the tool failed."""


class PlanError(CapsuleError):
    """3xxx: a document, a template or an input is not valid; also used for policies and settings."""


class ReplayError(CapsuleError):
    """4xxx: no such run, or a run that does not fit the tape."""


class StorageError(CapsuleError):
    """5xxx: the journal."""


class PlannerError(CapsuleError):
    """6xxx: a model back end."""


class AgentStopped(CapsuleError):
    """7xxx: a bound of the run was reached."""


class PackError(CapsuleError):
    """8xxx: a pack."""
