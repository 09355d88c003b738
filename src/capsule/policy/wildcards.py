"""Many names with wildcards, found by a literal text that each must hold, so that few are tried on a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from capsule.policy.segments import Wild, is_hidden

T = TypeVar("T")

_GRAM = 3  # long enough to tell words apart, short enough that a name has few of them

_PREFIX, _SUFFIX, _INSIDE = "prefix", "suffix", "inside"
_Key: TypeAlias = tuple[str, str]
_Bucket: TypeAlias = list[tuple[Wild, T]]
_ByLength: TypeAlias = tuple[tuple[int, Mapping[str, _Bucket[T]]], ...]


class WildTable(Generic[T]):
    """`find(name)` is what stands under each wildcard that matches the name.

    Each wildcard is filed under the one of its literal texts that the fewest others share: how it begins, how it
    ends, or three letters inside. What has no literal text at all (`*`, `?`, `[ab]`) is tried on every name.
    """

    __slots__ = ("_always", "_begins", "_ends", "_holds")

    def __init__(self, wilds: Mapping[Wild, T]) -> None:
        shared = Counter(key for wild in wilds for key in _keys(wild))
        filed: dict[_Key, _Bucket[T]] = {}
        self._always: _Bucket[T] = []
        for wild, value in wilds.items():
            keys = _keys(wild)
            bucket = filed.setdefault(min(keys, key=lambda key: (shared[key], key)), []) if keys else self._always
            bucket.append((wild, value))
        self._begins: _ByLength[T] = _by_length(filed, _PREFIX)
        self._ends: _ByLength[T] = _by_length(filed, _SUFFIX)
        self._holds: _ByLength[T] = _by_length(filed, _INSIDE)

    def find(self, name: str, *, hidden: bool = True) -> Sequence[T]:
        """With `hidden=False` a hidden name needs a wildcard that spells its dot."""
        buckets = [self._always] if self._always else []
        for length, table in self._begins:
            if (bucket := table.get(name[:length])) is not None:
                buckets.append(bucket)
        for length, table in self._ends:
            if (bucket := table.get(name[-length:])) is not None:
                buckets.append(bucket)
        for length, table in self._holds:
            grams = {name[at : at + length] for at in range(len(name) - length + 1)}
            buckets += [table[gram] for gram in table.keys() & grams]
        if not buckets:
            return ()
        spelled = not hidden and is_hidden(name)
        return [
            value
            for bucket in buckets
            for wild, value in bucket
            if (wild.spells_dot or not spelled) and wild.holds(name)
        ]


def _keys(wild: Wild) -> set[_Key]:
    keys = {(_INSIDE, gram) for factor in wild.factors for gram in _grams(factor)}
    if wild.prefix:
        keys.add((_PREFIX, wild.prefix))
    if wild.suffix:
        keys.add((_SUFFIX, wild.suffix))
    return keys


def _grams(factor: str) -> Iterable[str]:
    return (factor[at : at + _GRAM] for at in range(max(1, len(factor) - _GRAM + 1)))


def _by_length(filed: Mapping[_Key, _Bucket[T]], kind: str) -> _ByLength[T]:
    tables: dict[int, dict[str, _Bucket[T]]] = {}
    for (found, text), bucket in filed.items():
        if found == kind:
            tables.setdefault(len(text), {})[text] = bucket
    return tuple(sorted(tables.items()))
