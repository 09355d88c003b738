"""Where in its run a call stands."""

from __future__ import annotations

from dataclasses import dataclass, field

from capsule.canon import Json
from capsule.gate.parts import Step
from capsule.screen import Markers


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Calls are counted, so an id needs no chance."""

    step: Step
    number: int
    run_id: str
    markers: Markers = field(default_factory=Markers)  # a secret has one number in the call

    @property
    def call_id(self) -> str:
        return f"{self.run_id}.{self.number}"

    def as_json(self) -> dict[str, Json]:
        """A step's id is left out where it follows from its index, and that where it follows from the call's number."""
        named: dict[str, Json] = {} if self.step.id == f"step_{self.step.index + 1}" else {"step": self.step.id}
        placed: dict[str, Json] = {} if self.step.index == self.number - 1 else {"step_index": self.step.index}
        return {"call": self.number, **named, **placed}
