"""Secrets found and masked, markers known again, and text from outside made safe to show; no I/O.

>>> from capsule.screen import Screen
>>> screened = Screen(key=b"demo").screen({"token": "ghp_" + "1aB2cD3eF4gH" * 3})
>>> screened.value, screened.findings[0].snippet
({'token': '⟦redacted:github_token:1⟧'}, 'gh…gH')
"""

from capsule.screen.printable import printable
from capsule.screen.rule import ScreenRule, rules_digest
from capsule.screen.rules import RULES
from capsule.screen.screen import Markers, Screen, Screened, ScreenedBytes

__all__ = [
    "RULES",
    "Markers",
    "Screen",
    "ScreenRule",
    "Screened",
    "ScreenedBytes",
    "printable",
    "rules_digest",
]
