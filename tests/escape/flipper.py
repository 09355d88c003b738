"""Another process that flips names between what is allowed and links to what is not, until its input is closed.

Started as `flipper.py ROOT TARGET…`: in ROOT it flips the files `live/read` and `live/write` and the directory
`par`; each TARGET is a directory that holds a file for each of these names.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

FLIPS = 20
_EXCHANGE = 2  # RENAME_EXCHANGE

_renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)


def exchange(one: Path, other: Path) -> None:
    at_cwd = -100
    if _renameat2 is not None and _renameat2(at_cwd, bytes(one), at_cwd, bytes(other), _EXCHANGE) == 0:
        return
    between = one.with_name("between")
    one.rename(between)
    other.rename(one)
    between.rename(other)


def flip(name: Path, target: Path) -> None:
    """Make it a link to the target and back, some times."""
    link = name.with_name(f"{name.name}-{target.parent.name}-{target.name}")
    if not link.is_symlink():  # at first; and when the other side replaced it by a file
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(target, link.parent))  # an absolute one would be refused for that alone
    for _ in range(FLIPS):
        with suppress(FileNotFoundError):
            exchange(name, link)
            exchange(name, link)


def main(root: Path, targets: Sequence[Path]) -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not select.select([sys.stdin], [], [], 0)[0]:
        for target in targets:
            flip(root / "live/read", target / "read")
            flip(root / "live/write", target / "write")
            flip(root / "par", target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
