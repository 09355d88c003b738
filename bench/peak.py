"""The command `capsule` in this process, and after what it prints, on a line of its own, its peak memory in bytes."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from capsule.__main__ import main

_STATUS = Path("/proc/self/status")


def peak() -> int:
    """Of this process alone where that can be had: getrusage counts in what the parent had when it forked."""
    if _STATUS.exists():
        line = next(line for line in _STATUS.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    try:
        main()
    except SystemExit as done:
        if done.code:
            raise
    print(f"\n{peak()}")
