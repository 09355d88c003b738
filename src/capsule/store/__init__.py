"""The journal: append-only, hash-chained runs in one SQLite file, which anyone can check and nobody can alter unseen.

>>> from pathlib import Path
>>> from tempfile import mkdtemp
>>> from capsule.effects.clock import SystemClock
>>> store = Store.open(Path(mkdtemp()) / "runs.db", clock=SystemClock())
>>> with store.begin({"at": 0, "mode": "run"}) as run:
...     run.end({"at": 1, "status": "completed"})
>>> store.verify().ok
True
"""

from capsule.store.faults import not_understood
from capsule.store.reading import Record, Run
from capsule.store.store import Store
from capsule.store.tally import Counts
from capsule.store.verify import ChainCheck, Verification
from capsule.store.writer import RunWriter

__all__ = [
    "ChainCheck",
    "Counts",
    "Record",
    "Run",
    "RunWriter",
    "Store",
    "Verification",
    "not_understood",
]
