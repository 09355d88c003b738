"""The command line: parse, call, print; what a command does lives in the rooms below.

>>> from capsule.cli import COMMANDS
>>> COMMANDS["run"].help
'Run a plan under a policy.'
"""

from __future__ import annotations

from capsule.cli.launch import start
from capsule.cli.table import COMMANDS

__all__ = ["COMMANDS", "start"]
