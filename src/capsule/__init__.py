"""The gate between an agent and a machine: every tool call is decided, done exactly so, and recorded.

>>> from capsule import Policy, ToolCall
>>> policy = Policy.parse("rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: ./docs/**}}}]")
>>> policy.decide(ToolCall(tool="fs.read", args={"path": "/etc/passwd"})).code
1001
"""

from __future__ import annotations

from importlib import import_module

from capsule._version import __version__

TYPE_CHECKING = False  # as type checkers know it: importing `typing` would nearly double what `capsule --version` costs
if TYPE_CHECKING:
    from capsule.calls import Answer, CallError, Decision, Question, RunStatus, Source, Status, ToolCall, ToolResult
    from capsule.errors import (
        AgentStopped,
        CapsuleError,
        PackError,
        PlanError,
        PlannerError,
        PolicyDenied,
        ReplayError,
        StorageError,
        ToolError,
    )
    from capsule.gate import Gate
    from capsule.plans import Plan
    from capsule.policy import Policy

_HOMES = {
    **dict.fromkeys(
        (
            "AgentStopped",
            "CapsuleError",
            "PackError",
            "PlanError",
            "PlannerError",
            "PolicyDenied",
            "ReplayError",
            "StorageError",
            "ToolError",
        ),
        "capsule.errors",
    ),
    **dict.fromkeys(
        ("Answer", "CallError", "Decision", "Question", "RunStatus", "Source", "Status", "ToolCall", "ToolResult"),
        "capsule.calls",
    ),
    "Gate": "capsule.gate",
    "Plan": "capsule.plans",
    "Policy": "capsule.policy",
}

__all__ = [
    "AgentStopped",
    "Answer",
    "CallError",
    "CapsuleError",
    "Decision",
    "Gate",
    "PackError",
    "Plan",
    "PlanError",
    "PlannerError",
    "Policy",
    "PolicyDenied",
    "Question",
    "ReplayError",
    "RunStatus",
    "Source",
    "Status",
    "StorageError",
    "ToolCall",
    "ToolError",
    "ToolResult",
    "__version__",
]


def __getattr__(name: str) -> object:
    """Each name is imported at first use: `import capsule` alone costs next to nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'capsule' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
