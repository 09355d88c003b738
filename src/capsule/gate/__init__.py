"""The one door: every tool call is decided, contained, recorded and answered here.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> from capsule.calls import ToolCall
>>> from capsule.gate import Gate
>>> from capsule.policy import Policy
>>> with TemporaryDirectory() as name, Gate.open(policy=Policy.parse("rules: []"), db=f"{name}/runs.db") as gate:
...     gate.call(ToolCall(tool="fs.read", args={"path": "notes.md"})).status.value
'denied'
"""

from capsule.approval import allow_all, deny_all, reads_only
from capsule.effects import Machine, probe
from capsule.gate.assemble import Opening, assemble, disk_world
from capsule.gate.gate import Gate
from capsule.gate.look_back import is_kept, now_ms, open_journal, tool_definition, tool_definitions
from capsule.gate.parts import Parts, Step

__all__ = [
    "Gate",
    "Machine",
    "Opening",
    "Parts",
    "Step",
    "allow_all",
    "assemble",
    "deny_all",
    "disk_world",
    "is_kept",
    "now_ms",
    "open_journal",
    "probe",
    "reads_only",
    "tool_definition",
    "tool_definitions",
]
