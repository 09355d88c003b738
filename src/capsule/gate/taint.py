"""Whether a result comes from outside: once one was returned, the run is tainted and never stops being so."""

from __future__ import annotations

from collections.abc import Sequence

from capsule.calls import ConcreteCall, Source, Trust
from capsule.policy import Layer

_TRUST_THE_WORKDIR = frozenset({Source.PLAN, Source.PACK, Source.API})


def is_untrusted(call: ConcreteCall, layers: Sequence[Layer]) -> bool:
    """A place is trusted where every layer that names trusted paths trusts it; where none does, the workdir is."""
    match call.definition.trust:
        case Trust.TRUSTED:
            return False
        case Trust.UNTRUSTED:
            return True
        case Trust.PLACES:
            naming = [layer for layer in layers if layer.rules.trusted_paths is not None]
            if naming:
                return not all(layer.trusts(call) for layer in naming)
            return call.source not in _TRUST_THE_WORKDIR or not all(layer.in_workdir(call) for layer in layers)
