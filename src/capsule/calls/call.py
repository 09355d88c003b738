"""A call on its way in and a result on its way out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from capsule.canon import Json
from capsule.errors import KINDS, RETRIABLE, CapsuleError


class Source(StrEnum):
    """Who asks. The door sets it, never the caller's data."""

    API = "api"
    PLAN = "plan"
    AGENT = "agent"
    PACK = "pack"
    CHAT = "chat"
    MCP = "mcp"
    HTTP = "http"


class Status(StrEnum):
    """How a step ended; `unknown` began and left no outcome."""

    SUCCESS = "success"
    ERROR = "error"
    DENIED = "denied"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


class RunStatus(StrEnum):
    """How a run stands; the last two need no record of their own: they follow from a lock that is held or free."""

    COMPLETED = "completed"
    FAILED = "failed"
    DENIED = "denied"
    RUNNING = "running"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One wish to use a tool; `ToolCall("fs.read", {"path": "notes.md"})`."""

    tool: str
    args: Mapping[str, Json] = field(default_factory=dict)
    source: Source = Source.API


@dataclass(frozen=True, slots=True, kw_only=True)
class CallError:
    """Why a call was denied or failed, as data: the same tree as `capsule.errors`."""

    code: int
    message: str
    hint: str | None = None
    retry_after_ms: int | None = None

    @property
    def kind(self) -> str:
        return KINDS[self.code]

    @property
    def retriable(self) -> bool:
        return self.code in RETRIABLE

    @classmethod
    def of(cls, error: CapsuleError) -> CallError:
        return cls(code=error.code, message=error.message, hint=error.hint)

    def as_json(self) -> dict[str, Json]:
        return {
            "code": self.code,
            "kind": self.kind,
            "message": self.message,
            "retriable": self.retriable,
            "retry_after_ms": self.retry_after_ms,
            "hint": self.hint,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something a screen rule saw; the snippet never holds the whole of it."""

    rule: str
    type: str
    line: int
    column: int
    length: int
    confidence: float
    snippet: str
    fingerprint: str

    def as_json(self) -> dict[str, Json]:
        return {
            "rule": self.rule,
            "type": self.type,
            "line": self.line,
            "column": self.column,
            "length": self.length,
            "confidence": self.confidence,
            "snippet": self.snippet,
            "fingerprint": self.fingerprint,
        }


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What leaves the gate, and what was recorded: the same values."""

    status: Status
    output: Json = None
    error: CallError | None = None
    findings: tuple[Finding, ...] = ()
    artifacts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    call_id: str = ""  # the gate gives it

    @property
    def ok(self) -> bool:
        return self.status is Status.SUCCESS
