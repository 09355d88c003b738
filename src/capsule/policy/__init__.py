"""Allow, ask or deny: a policy is read, bound to a world, and decides.

>>> from capsule.calls import ToolCall
>>> from capsule.policy import Policy
>>> policy = Policy.parse("rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: ./docs/**}}}]")
>>> policy.decide(ToolCall(tool="fs.read", args={"path": "docs/a.md"})).effect.value
'allow'
"""

from __future__ import annotations

from capsule.policy.check import check_policy
from capsule.policy.counters import advance
from capsule.policy.decide import decide, resolve_and_decide
from capsule.policy.explain import Explanation, explain
from capsule.policy.floors import floor_document
from capsule.policy.in_order import InOrder
from capsule.policy.layer import Layer, search_path, wall_time_ms
from capsule.policy.paper import OnPaper
from capsule.policy.policy import Policy, on_paper
from capsule.policy.resolve import definition_of, resolve
from capsule.policy.schema import POLICY_SCHEMA
from capsule.policy.visible import visible_entries

__all__ = [
    "POLICY_SCHEMA",
    "Explanation",
    "InOrder",
    "Layer",
    "OnPaper",
    "Policy",
    "advance",
    "check_policy",
    "decide",
    "definition_of",
    "explain",
    "floor_document",
    "on_paper",
    "resolve",
    "resolve_and_decide",
    "search_path",
    "visible_entries",
    "wall_time_ms",
]
