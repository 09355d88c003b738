"""Code that is not Capsule's own is called here and nowhere else: tools and approvers. What they raise is a value."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TypeVar

from capsule.errors import CapsuleError

T = TypeVar("T")


def attempt(act: Callable[[], T], *, who: str) -> T | CapsuleError:
    try:
        return act()
    except CapsuleError as error:
        return error
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        return CapsuleError(9001, f"{who} failed unexpectedly: {described(error)}")


def described(error: BaseException) -> str:
    """Its type and message; an exception whose text cannot be made has one all the same."""
    return "".join(traceback.format_exception_only(error)).strip()
