"""The frozen values that flow between rooms.

>>> from capsule.calls import ToolCall
>>> ToolCall(tool="fs.read", args={"path": "notes.md"}).source
<Source.API: 'api'>
"""

from capsule.calls.builtin import BUILTIN
from capsule.calls.call import CallError, Finding, RunStatus, Source, Status, ToolCall, ToolResult
from capsule.calls.concrete import Access, Components, ConcreteCall, ConcreteCommand, ConcretePath, ConcreteUrl
from capsule.calls.contracts import (
    Answer,
    Approver,
    Chunk,
    Clock,
    Context,
    Entry,
    Listing,
    Question,
    Tool,
    Written,
)
from capsule.calls.decision import (
    CommandGrant,
    Decision,
    Effect,
    FileGrant,
    Grant,
    LayerState,
    Limits,
    Redact,
    RuleCount,
    RunState,
    SandboxGrant,
    UrlGrant,
)
from capsule.calls.definition import Guard, RetryProfile, SideEffect, ToolDefinition, Trust
from capsule.calls.world import Places, World

__all__ = [
    "BUILTIN",
    "Access",
    "Answer",
    "Approver",
    "CallError",
    "Chunk",
    "Clock",
    "CommandGrant",
    "Components",
    "ConcreteCall",
    "ConcreteCommand",
    "ConcretePath",
    "ConcreteUrl",
    "Context",
    "Decision",
    "Effect",
    "Entry",
    "FileGrant",
    "Finding",
    "Grant",
    "Guard",
    "LayerState",
    "Limits",
    "Listing",
    "Places",
    "Question",
    "Redact",
    "RetryProfile",
    "RuleCount",
    "RunState",
    "RunStatus",
    "SandboxGrant",
    "SideEffect",
    "Source",
    "Status",
    "Tool",
    "ToolCall",
    "ToolDefinition",
    "ToolResult",
    "Trust",
    "UrlGrant",
    "World",
    "Written",
]
