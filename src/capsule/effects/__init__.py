"""The only hands: what touches files does it here, on exactly what was granted.

>>> import tempfile
>>> from pathlib import Path
>>> from capsule.calls import Access, FileGrant
>>> from capsule.effects import Anchors, Bounds, SystemClock, files
>>> grant = FileGrant(argument="path", access=Access.WRITE, anchor="workdir", components=("a.md",))
>>> with tempfile.TemporaryDirectory() as name, Anchors.open(Path(name)) as anchors:
...     bounds = Bounds(max_bytes=100, in_time=lambda: None)
...     files.write(anchors, grant, b"hi", mode="create", create_dirs=False, clock=SystemClock(), bounds=bounds)
...     files.read(anchors, grant, offset=0, length=None, bounds=bounds)
Written(created=True)
Chunk(data=b'hi', size=2, hard_link=False)
"""

from capsule.effects import files
from capsule.effects.anchors import Anchors
from capsule.effects.beneath import Beneath, ComponentWalk, Openat2, has_openat2
from capsule.effects.clock import SystemClock
from capsule.effects.files import Bounds, Visible
from capsule.effects.machine import Machine, probe
from capsule.effects.world import OnDisk, places_of

__all__ = [
    "Anchors",
    "Beneath",
    "Bounds",
    "ComponentWalk",
    "Machine",
    "OnDisk",
    "Openat2",
    "SystemClock",
    "Visible",
    "files",
    "has_openat2",
    "places_of",
    "probe",
]
