"""YAML plans: read and checked whole, then run step by step through the gate.

>>> from capsule.plans import Plan
>>> plan = Plan.parse("steps: [{tool: fs.read, args: {path: notes.md}}]")
>>> [step.id for step in plan.steps]
['step_1']
"""

from capsule.plans.document import Plan, PlanStep
from capsule.plans.dry_run import Foreseen, dry_run
from capsule.plans.inputs import PlanInput
from capsule.plans.run import PlanOutcome, Watcher, run_plan
from capsule.plans.schema import PLAN_SCHEMA
from capsule.plans.scope import Scope

__all__ = [
    "PLAN_SCHEMA",
    "Foreseen",
    "Plan",
    "PlanInput",
    "PlanOutcome",
    "PlanStep",
    "Scope",
    "Watcher",
    "dry_run",
    "run_plan",
]
