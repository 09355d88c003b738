"""Approvers that need no screen, and what binds a yes to the one call it was given for.

>>> from capsule.approval import deny_all, reads_only
>>> from capsule.calls import Decision, Effect, Question, SideEffect, ToolCall
>>> ask = Decision(effect=Effect.ASK, resolved="disk", reason="a rule asks")
>>> read = {"call": ToolCall(tool="fs.read"), "call_id": "1", "side_effect": SideEffect.READ}
>>> reads_only(deny_all)(Question(**read, decision=ask, shown={}, digest="")).by
'--approve reads'
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from capsule.calls import Answer, Approver, Question, SideEffect, Source, ToolDefinition
from capsule.canon import Json, canonical

__all__ = ["VALID_FOR_MS", "Bound", "allow_all", "bind_digest", "deny_all", "reads_only"]

VALID_FOR_MS = 10 * 60 * 1000  # as long as a person can be expected to remember what was shown


def deny_all(_question: Question) -> Answer:
    return Answer(
        approved=False,
        by="no approver",
        reason="nobody is there to ask",
        hint="hand an approver to the gate (--approve ask, reads or all); or write an allow rule",
    )


def allow_all(_question: Question) -> Answer:
    return Answer(approved=True, by="--approve all")


def reads_only(otherwise: Approver) -> Approver:
    """Yes to calls of class read; every other goes to the next approver."""

    def approve(question: Question) -> Answer:
        if question.side_effect is SideEffect.READ:
            return Answer(approved=True, by="--approve reads")
        return otherwise(question)

    return approve


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """All that a yes depends on: if any of it changes, it is another call."""

    run_id: str
    definition: ToolDefinition
    source: Source
    args: Mapping[str, Json]  # concrete and raw
    executables: Json  # the real path of each program
    grant: Json  # with its jail
    policies: tuple[str, ...]  # their digests, in the order of the layers


def bind_digest(bound: Bound, *, key: bytes) -> str:
    """A MAC and not a plain digest: it is recorded, and raw arguments may hold a secret short enough to guess."""
    parts: dict[str, Json] = {
        "run": bound.run_id,
        "tool": bound.definition.as_json(),
        "source": bound.source.value,
        "args": bound.args,
        "executables": bound.executables,
        "grant": bound.grant,
        "policies": list(bound.policies),
    }
    return hmac.digest(key, canonical(parts), "sha256").hex()
