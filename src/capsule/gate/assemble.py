"""Wire the parts of a run together: the only place that knows them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from capsule._version import __version__
from capsule.approval import deny_all
from capsule.calls import Approver, Clock, Source
from capsule.canon import Json, digest_of
from capsule.effects import Anchors, OnDisk, SystemClock, places_of
from capsule.effects.home import machine_key
from capsule.gate.masking import Mask
from capsule.gate.parts import Parts, Step
from capsule.policy import Policy
from capsule.screen import Screen
from capsule.settings import Settings
from capsule.store import Store
from capsule.tools import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a door must say before a run can begin."""

    settings: Settings
    policies: Sequence[Policy]  # each a layer; none denies everything
    workdir: Path
    mode: str = "run"
    source: Source = Source.API  # of most calls of this run
    db: Path | None = None
    approver: Approver = deny_all
    plan: Mapping[str, Json] | None = None  # the plan's document, name and inputs as they go into the record
    in_use: tuple[Path, ...] = ()  # files that no tool may write while the run goes on
    on_intent: Callable[[Step], None] = lambda _: None


def assemble(opening: Opening) -> Parts:
    """The parts of a gate with its run begun: lock held, first record durable. What fails here leaves nothing open."""
    clock: Clock = SystemClock()
    settings = opening.settings
    db = opening.db or settings.db
    with ExitStack() as stack:
        key = machine_key(settings.home, clock)
        in_use = (*opening.in_use, *(policy.file for policy in opening.policies if policy.file))
        world, anchors = stack.enter_context(disk_world(settings, opening.workdir, db=db, in_use=in_use))
        registry = Registry.built_in()
        layers = tuple(policy.bind(world) for policy in opening.policies)
        mask = Mask(Screen(key=key), key)
        store = Store.open(db, clock=clock)
        raw = _first_record(opening, registry, mask, world.places.workdir)
        first = mask.first(raw)
        writer = stack.enter_context(store.begin({**first.as_record(), "at": clock.now_ms()}))
        return Parts(
            registry=registry,
            layers=layers,
            anchors=anchors,
            writer=writer,
            mask=mask,
            approver=opening.approver,
            world=world,
            clock=clock,
            source=opening.source,
            workdir=opening.workdir,
            on_intent=opening.on_intent,
            resources=stack.pop_all(),
        )


@contextmanager
def disk_world(
    settings: Settings, workdir: Path, *, db: Path | None = None, in_use: Sequence[Path] = ()
) -> Iterator[tuple[OnDisk, Anchors]]:
    """The world as it lies on the disk now, seen from a workdir."""
    places = places_of(
        workdir=workdir,
        home=settings.user_home,
        capsule_home=settings.home,
        db=db or settings.db,
        in_use=in_use,
    )
    with Anchors.open(workdir, places=places) as anchors:
        yield OnDisk(places, anchors), anchors


def policies_digest(policies: Sequence[Policy]) -> str:
    """That of the one policy, or of the list of all layers' digests."""
    digests = [policy.digest for policy in policies]
    return digests[0] if len(digests) == 1 else digest_of(digests)


def _first_record(opening: Opening, registry: Registry, mask: Mask, workdir: Sequence[str]) -> dict[str, Json]:
    """What a replay and a reader need to know of the run's beginning."""
    return {
        "mode": opening.mode,
        "source": opening.source.value,
        "workdir": "/" + "/".join(workdir),
        "policy_digest": policies_digest(opening.policies),
        "policies": [
            {"name": policy.name, "digest": policy.digest, "document": policy.value} for policy in opening.policies
        ],
        "screen": mask.rules_digest,
        "tools": digest_of([tool.definition.as_json() for tool in registry]),
        "versions": {"capsule": __version__},
        **(opening.plan or {}),
    }
