"""`python -m bench [NAME…]`"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TypeAlias

from bench.canonical import canonical_json
from bench.decision import decision
from bench.install import install
from bench.memory import memory
from bench.opening import path
from bench.place import Place
from bench.rows import Missing, Row, Skipped, table
from bench.size import stored_bytes
from bench.startup import startup
from bench.step import recorded_step
from bench.syncs import syncs
from bench.timing import FULL, TOUCH, Effort
from bench.verifying import verify

Benchmark: TypeAlias = Callable[[Effort, Place], Iterator[Row]]

BENCHMARKS: Mapping[str, Benchmark] = {
    "startup": startup,
    "decision": decision,
    "path": path,
    "syncs": syncs,
    "step": recorded_step,
    "bytes": stored_bytes,
    "memory": memory,
    "install": install,
    "verify": verify,
    "canonical": canonical_json,
}


def main() -> int:
    options = _options(sys.argv[1:])
    rows: list[Row | Missing] = []
    try:
        for name in options.names or BENCHMARKS:
            rows += _measured(name, TOUCH if options.touch else FULL)
    finally:
        print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores\n")
        print(table(rows))
    return 0


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure, and print one table of ratios.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one or more of: {' '.join(BENCHMARKS)}; default: all"
    )
    parser.add_argument("--touch", action="store_true", help="tiny counts: shows that it runs, and measures nothing")
    options = parser.parse_args(words)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are: {' '.join(BENCHMARKS)}")
    return options


def _measured(name: str, effort: Effort) -> list[Row | Missing]:
    print(f"{name} …", end="", file=sys.stderr, flush=True)
    began = perf_counter()
    with TemporaryDirectory(prefix="capsule-bench-") as directory:
        try:
            rows: list[Row | Missing] = list(BENCHMARKS[name](effort, Place(root=Path(directory).resolve())))
        except Skipped as reason:
            rows = [Missing(what=name, why=str(reason))]
    print(f" {perf_counter() - began:.1f} s", file=sys.stderr)
    return rows


if __name__ == "__main__":
    sys.exit(main())
