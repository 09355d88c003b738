"""What a policy is asked, and what it answers: both sides of the comparison speak of the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from capsule.calls import ConcreteCall, Effect, LayerState, Places


class Question(NamedTuple):
    document: Any
    call: ConcreteCall
    state: LayerState
    now_ms: int
    tainted: bool
    places: Places

    @property
    def args(self) -> dict[str, Any]:
        return dict(self.call.args)

    def values(self, argument: str | None = None) -> list[Any]:
        """What was made concrete, of all arguments or of one."""
        found: list[Any] = [*self.call.paths, *self.call.urls, *self.call.commands]
        return [one for one in found if argument in (None, one.argument)]

    def texts(self) -> list[tuple[str, str, str]]:
        """What is written in the arguments: of which, under which key of it, and what."""
        keyed = [(name, value if isinstance(value, Mapping) else {"": value}) for name, value in self.args.items()]
        return [(name, key, str(item)) for name, items in keyed for key, item in items.items()]


class Answer(NamedTuple):
    effect: Effect
    code: int | None = None
    rule: str | None = None
    grant: Any = None  # what an allow or an ask grants, by name
