"""What a gate is made of. No part has a default: a gate with a part missing would be open."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from capsule.calls import Approver, Clock, Source, World
from capsule.effects import Anchors
from capsule.gate.masking import Mask
from capsule.policy import Layer
from capsule.store import RunWriter
from capsule.tools import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Where in its run a call stands; a plan names its steps, other doors count them."""

    id: str
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    registry: Registry
    layers: tuple[Layer, ...]
    world: World
    anchors: Anchors
    writer: RunWriter
    mask: Mask
    approver: Approver
    clock: Clock
    source: Source  # of most calls of this run
    workdir: Path
    on_intent: Callable[[Step], None]  # told when the intent of a step is durable, and with it all outcomes before
    resources: ExitStack  # what to let go of at the end
