"""What a rule is: data, so that a rule set can be printed, recorded by its digest and replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from capsule.canon import Json, digest_of

Category: TypeAlias = Literal["secret", "personal", "granted"]
"""`granted` is a secret that the run itself was given: masked whatever a rule of the policy says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenRule:
    """One kind of thing that is found.

    A text is looked at only if it holds one of the lower-case `keywords`, in any case. What group 1 of `pattern`
    matches (RE2; the whole match where there is no group) is what is masked and counted; it must have the entropy, at
    least one digit where `digit` says so, and not end like a documented example.

    A rule with `names` finds nothing in a text, and any text that is the value under such a name: what is called a
    credential is one, whatever it looks like.
    """

    id: str
    type: str
    pattern: str
    keywords: tuple[str, ...]
    category: Category = "secret"
    confidence: float = 0.9
    entropy: float = 0.0  # bits a character, at least
    digit: bool = False
    names: tuple[str, ...] = ()  # keys of a mapping, in any case; lower case
    examples: tuple[str, ...] = ()  # endings of values that documentation uses; lower case

    def as_json(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "type": self.type,
            "pattern": self.pattern,
            "keywords": list(self.keywords),
            "category": self.category,
            "confidence": self.confidence,
            "entropy": self.entropy,
            "digit": self.digit,
            "names": list(self.names),
            "examples": list(self.examples),
        }


def rules_digest(rules: Sequence[ScreenRule]) -> str:
    """What a run records, so that a replay screens with the same rules."""
    return digest_of([rule.as_json() for rule in rules])
