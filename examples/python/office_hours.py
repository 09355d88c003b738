# ruff: noqa: INP001, T201 - a script of its own
"""A program behind the gate: somebody approves what the policy asks about, and everything is on record."""

from __future__ import annotations

from pathlib import Path

from capsule import Answer, Gate, Policy, Question, ToolCall

HERE = Path(__file__).parent

POLICY = Policy.parse("""
rules:
  - {id: read-docs, action: allow, tool: fs.read, constraints: {path: {pattern: "./docs/**"}}}
  - {id: write-out, action: ask, tool: fs.write, constraints: {path: {pattern: "./out/*.md"}, max_bytes: 1KB}}
""")

CALLS = [
    ToolCall(tool="fs.read", args={"path": "docs/hello.md"}),
    ToolCall(tool="fs.write", args={"path": "out/a.md", "content": "short", "create_dirs": True, "mode": "overwrite"}),
    ToolCall(tool="fs.write", args={"path": "out/b.md", "content": "long " * 1000}),
    ToolCall(tool="fs.write", args={"path": "docs/hello.md", "content": "", "mode": "overwrite"}),
]


def clerk(question: Question) -> Answer:
    """Approves what goes into a.md."""
    approved = question.call.args["path"] == "out/a.md"
    return Answer(approved=approved, by="the clerk", reason=None if approved else "not that one")


with Gate.open(policy=POLICY, workdir=HERE, db=HERE / "runs.db", approver=clerk) as gate:
    for call in CALLS:
        result = gate.call(call)
        print(f"{result.status:<8}", call.tool, call.args["path"])
        if result.error:
            print(f"    {result.error.code} {result.error.message}")
