"""Every command, the module it lives in and one line of help: enough to print the list and to import only one."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    module: str
    help: str


COMMANDS = {
    "run": Command("capsule.cli.run", "Run a plan under a policy."),
    "list-runs": Command("capsule.cli.list_runs", "List recorded runs, newest first."),
    "show-run": Command("capsule.cli.show_run", "Show one run and its steps."),
    "report": Command("capsule.cli.report", "Make a run readable: what was done, denied and found."),
    "verify": Command("capsule.cli.verify", "Check that recorded runs were not altered."),
    "policy": Command("capsule.cli.policy", "Check a policy, ask it, and test it: check, explain, decide, test."),
    "tools": Command("capsule.cli.tools", "The tools a call can name: list, show."),
    "schema": Command("capsule.cli.schema", "Print a document's JSON Schema, or the floors as data."),
    "doctor": Command("capsule.cli.doctor", "Check this machine: Python, journal, what can be enforced."),
    "demo": Command("capsule.cli.demo", "See an allowed step, a denied one and the report, in a temporary directory."),
}
