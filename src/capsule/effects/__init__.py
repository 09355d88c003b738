"""The only hands: what touches files does it here, on exactly what was granted.

>>> import tempfile
>>> from pathlib import Path
>>> from capsule.calls import Access, FileGrant
>>> from capsule.effects import Anchors, SystemClock, files
>>> grant = FileGrant(argument="path", access=Access.WRITE, anchor="workdir", components=("a.md",))
>>> with tempfile.TemporaryDirectory() as name, Anchors.open(Path(name)) as anchors:
...     files.write(anchors, grant, b"hi", mode="create", create_dirs=False, clock=SystemClock(), cap=100)
...     files.read(anchors, grant, offset=0, length=None, cap=100)
Written(created=True)
Chunk(data=b'hi', size=2, hard_link=False)
"""

from capsule.effects import files
from capsule.effects.anchors import Anchors
from capsule.effects.beneath import Beneath, ComponentWalk, Openat2, has_openat2
from capsule.effects.clock import SystemClock
from capsule.effects.files import Visible
from capsule.effects.machine import Machine, probe
from capsule.effects.world import OnDisk, places_of

__all__ = [
    "Anchors",
    "Beneath",
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
