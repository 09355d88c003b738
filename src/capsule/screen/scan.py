"""Where in some bytes the rules see something."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import re2

from capsule.screen.exact import Exact
from capsule.screen.rule import ScreenRule

MAX_HITS = 10_000  # of one rule in one text; what follows is masked as a whole: so many secrets are no text any more


class Hit(NamedTuple):
    start: int
    end: int
    rule: ScreenRule


@cache
def compiled(pattern: str) -> Any:
    return re2.compile(pattern)


def keyword_pattern(rules: Iterable[ScreenRule]) -> str:
    """One pass over a text that tells whether any rule needs to look at it."""
    words = sorted({word for rule in rules for word in rule.keywords})
    return f"(?i){'|'.join(re2.escape(word) for word in words)}"


def suspects(lowered: bytes, rules: Iterable[ScreenRule]) -> tuple[ScreenRule, ...]:
    """The rules one of whose keywords is there."""
    return tuple(rule for rule in rules if any(word in lowered for word in _encoded(rule.keywords)))


@cache
def _encoded(words: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(word.encode() for word in words)


def hits(data: bytes, rules: Sequence[ScreenRule], exact: Sequence[Exact], named: Sequence[Hit] = ()) -> list[Hit]:
    """In order and without overlap: what overlaps is one hit, of the surest and longest rule."""
    found = [hit for rule in rules if not rule.names for hit in _matches(data, rule)]
    found += [Hit(start, end, secret.rule) for secret in exact for start, end in secret.spans(data)]
    found += named
    found.sort(key=lambda hit: (hit.start, -hit.end))
    merged: list[Hit] = []
    for hit in found:
        if merged and hit.start < merged[-1].end:
            merged[-1] = _union(merged[-1], hit)
        else:
            merged.append(hit)
    return merged


def _union(one: Hit, other: Hit) -> Hit:
    """What the run itself was given is masked whatever a rule of the policy says, and so is what it is a part of."""
    best = max(one, other, key=lambda hit: (hit.rule.category == "granted", hit.rule.confidence, hit.end - hit.start))
    return Hit(min(one.start, other.start), max(one.end, other.end), best.rule)


def _matches(data: bytes, rule: ScreenRule) -> Iterator[Hit]:
    pattern = compiled(rule.pattern)
    group = 1 if pattern.groups else 0
    left = MAX_HITS
    for match in pattern.finditer(data):
        start, end = match.span(group)
        if start < end and _is_real(data[start:end], rule):
            if not left:
                yield Hit(start, len(data), rule)
                return
            left -= 1
            yield Hit(start, end, rule)


def _is_real(found: bytes, rule: ScreenRule) -> bool:
    if rule.digit and not any(48 <= byte <= 57 for byte in found):
        return False
    if found.lower().endswith(tuple(ending.encode() for ending in rule.examples)):
        return False
    return rule.entropy == 0 or _entropy(found) >= rule.entropy


def _entropy(data: bytes) -> float:
    """Shannon's, in bits a byte."""
    total = len(data)
    return -sum(count / total * math.log2(count / total) for count in Counter(data).values())
