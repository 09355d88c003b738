"""Draws the layers of .importlinter into ARCHITECTURE.md with --write; without, says whether the drawing is current."""

from __future__ import annotations

import configparser
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN = "<!-- layers: drawn by tools/layers.py from .importlinter -->\n"
END = "<!-- end of layers -->\n"


def layers() -> list[list[str]]:
    """The rows of the first contract from the top; a room in parentheses is designed and not built."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", encoding="utf-8")
    rows = contracts["importlinter:contract:layers"]["layers"].strip().splitlines()
    return [row.split(" | ") for row in rows]


def picture() -> str:
    lines = [f"{number:>3}  {'   '.join(rooms)}" for number, rooms in enumerate(layers(), start=1)]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def redrawn(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + picture() + END + after


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    current = redrawn(page)
    if "--write" in sys.argv:
        PAGE.write_text(current, encoding="utf-8")
    elif current != page:
        print("ARCHITECTURE.md does not show the layers of .importlinter: run `just fix`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
