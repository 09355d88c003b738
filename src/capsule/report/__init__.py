"""A run made readable: the JSON report, read step by step, and the console form of it.

>>> from capsule.report import console_lines, step_lines
>>> step = {"status": "denied", "step_id": "peek", "tool_name": "fs.read", "args": {"path": "/etc/passwd"}}
>>> [line.text for line in step_lines(step)]
['peek  fs.read  /etc/passwd']
"""

from capsule.report.build import Report, iso
from capsule.report.console import ICONS, Line, console_lines, end_lines, run_lines, step_lines, summary_lines
from capsule.report.schema import REPORT_SCHEMA

__all__ = [
    "ICONS",
    "REPORT_SCHEMA",
    "Line",
    "Report",
    "console_lines",
    "end_lines",
    "iso",
    "run_lines",
    "step_lines",
    "summary_lines",
]
