"""Tool names in rules: exact, or a glob whose `*` matches any run of characters."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z0-9._/:*-]+")


@dataclass(frozen=True, slots=True)
class ToolName:
    """`fs.read`, `fs.*`, `mcp.github.*`, `*`; `*` is the only wildcard, since names hold nothing else."""

    text: str

    @classmethod
    def parse(cls, text: str) -> ToolName:
        """ValueError for what can be the name of no tool: a deny that never matches must not look like one."""
        if not _NAME.fullmatch(text):
            raise ValueError(f"found {text!r}, allowed: letters, digits and . _ - / :, and * as the only wildcard")
        return cls(text)

    @property
    def is_glob(self) -> bool:
        return "*" in self.text

    def matches(self, tool: str) -> bool:
        if not self.is_glob:
            return self.text == tool
        first, *middle, last = self.text.split("*")
        if len(tool) < len(first) + len(last) or not tool.startswith(first) or not tool.endswith(last):
            return False
        rest = tool[len(first) : len(tool) - len(last)]
        for piece in middle:
            _, found, rest = rest.partition(piece) if piece else ("", "*", rest)
            if not found:
                return False
        return True
