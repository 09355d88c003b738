"""How documents, paths and values are spelled in messages, whatever they hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from capsule.canon import Json

_SHOWN = 60  # characters of a found value: enough to recognise it
_LISTED = 24  # allowed words in one message: all keys of any document of ours
_LONGEST_WORD = 64  # a longer word is not a slip of the finger, and comparing costs its square
_CLOSE = 0.6  # of difflib's ratio; below it, suggestions stop being helpful

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_.*-]*")
_CUT_WORDS = (re.compile(r"\s\S*\Z"), re.compile(r"[\w.\0-]+\Z"))  # the last word, else what looks like one
_NOT_TEXT_WHEN_BARE = frozenset({"true", "false", "null"})


def suggest(word: str, allowed: Iterable[str]) -> str | None:
    """The allowed word that was probably meant, for a did-you-mean."""
    if len(word) > _LONGEST_WORD:
        return None
    from difflib import get_close_matches  # noqa: PLC0415 - needed only once something is wrong

    spelled = {_folded(name): name for name in allowed}
    near = get_close_matches(_folded(word), spelled, n=1, cutoff=_CLOSE)
    return spelled[near[0]] if near else None


def _folded(word: str) -> str:
    return word.casefold().replace("-", "_")


def beginning(text: str, most: int) -> str:
    """At most so many characters, and no piece of a word but where it is all one word: of half a secret nobody could
    tell any more that it is one.
    """
    begun = text[:most]
    cuts = (cut.start() for pattern in _CUT_WORDS if (cut := pattern.search(begun)) and cut.start())
    place = next(cuts, None)
    return begun.partition("\0")[0] if place is None else begun[:place]


def shown(value: object) -> str:
    """A found value, in one short printable piece."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return repr(value) if len(value) <= _SHOWN else f"{beginning(value, _SHOWN)!r}…"
    if isinstance(value, int) and value.bit_length() > _SHOWN:
        return "a huge integer"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


def listed(words: Iterable[Json]) -> str:
    """Allowed words, bare where they can be written so."""
    spelled = [_bare(word) for word in words]
    if len(spelled) > _LISTED:
        spelled[_LISTED:] = ["…"]
    return ", ".join(spelled)


def _bare(word: Json) -> str:
    if isinstance(word, str) and _BARE.fullmatch(word) and word not in _NOT_TEXT_WHEN_BARE:
        return word
    return shown(word)


def spell(path: Sequence[str | int]) -> str:
    """`rules[0].constraints.path`; the root is empty text."""
    parts: list[str] = []
    for part in path:
        if isinstance(part, str) and _BARE.fullmatch(part) and len(part) <= _SHOWN:
            parts.append(f".{part}" if parts else part)
        else:
            parts.append(f"[{shown(part)}]")
    return "".join(parts)


def spell_name(name: str) -> str:
    """A file's name without what a terminal would obey."""
    return name if name.isprintable() else repr(name)[1:-1]
