"""Tool names in rules: exact, or a glob whose `*` matches any run of characters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolName:
    """`fs.read`, `fs.*`, `mcp.github.*`, `*`; `*` is the only wildcard, since names hold nothing else."""

    text: str

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
