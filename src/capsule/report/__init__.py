"""A run made readable: one value that is the JSON report, and the console form of it.

>>> from capsule.report import console_lines, step_lines
>>> step = {"status": "denied", "step_id": "peek", "tool_name": "fs.read", "args": {"path": "/etc/passwd"}}
>>> [line.text for line in step_lines(step)]
['peek  fs.read  /etc/passwd']
"""

from capsule.report.build import REPORT_VERSION, build_report, iso
from capsule.report.console import ICONS, Line, console_lines, end_lines, run_lines, step_lines, summary_lines
from capsule.report.schema import REPORT_SCHEMA

__all__ = [
    "ICONS",
    "REPORT_SCHEMA",
    "REPORT_VERSION",
    "Line",
    "build_report",
    "console_lines",
    "end_lines",
    "iso",
    "run_lines",
    "step_lines",
    "summary_lines",
]
