"""Code that is not Capsule's own is called here and nowhere else: tools and approvers. What they raise is a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from capsule.errors import CapsuleError
from capsule.gate.plain import described

T = TypeVar("T")


def attempt(act: Callable[[], T], *, who: str) -> T | CapsuleError:
    try:
        return act()
    except CapsuleError as error:
        return error
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        return CapsuleError(9001, f"{who} failed unexpectedly: {described(error)}")
