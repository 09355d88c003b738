"""YAML 1.2 core over PyYAML's event parser, without what makes YAML surprising: tags, anchors, aliases, merge keys.

PyYAML's own loaders follow YAML 1.1 (`no` is false, 1:30 is 90) and build by recursion in C, which a deep document
overruns. Importing this module costs 15 ms: import it where there is YAML to read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from capsule.canon import MAX_INTEGER, Json
from capsule.documents.tokens import Refused, Token, Unreadable, checked_text
from capsule.documents.wording import shown

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # 7 times faster, where PyYAML was built with libyaml

# NEL, LS and PS are left out too: they end a line for libyaml and for no editor, so a reader would see other lines.
# Spelled as what is refused: the complement, which reaches beyond U+FFFF, takes `re` ten times longer to compile.
_FOREIGN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_TAG_DIRECTIVE = re.compile(r"^%TAG\b", re.MULTILINE)  # refused first: libyaml's time grows as their number squared

_WORDS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER_BEGINS = frozenset("+-.0123456789")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")  # 0644 is a mode, a postal code, an id: text
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_MOST_DIGITS = 30  # of an integer that may fit, with sign and prefix; Python refuses to read endless ones

_SPECIAL = {
    "*": "an alias",
    "&": "an anchor",
    "!": "a tag",
    "%": "a directive",
    "@": "a reserved sign",
    "`": "a reserved sign",
}
_WORD = re.compile(r"[^\s,\]}]{1,60}")
_BEGAN_EARLIER = frozenset(f"while scanning {what}" for what in ("an alias", "an anchor", "a tag", "a directive"))


def yaml_tokens(text: str) -> Iterator[Token]:
    _check_characters(text)
    began = False
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            read = _READERS.get(type(event))
            if read is not None:
                yield read(text, event)
            elif type(event) is DocumentStartEvent:
                _check_start(event, again=began)
                began = True
    except yaml.MarkedYAMLError as error:
        raise _explained(text, error) from error


def _check_characters(text: str) -> None:
    foreign = _FOREIGN.search(text)
    if foreign:
        code = f"{ord(foreign.group()):04X}"
        hint = f'where it is meant, write it as "\\u{code}" in double quotes'
        raise Unreadable(f"the character U+{code} is not allowed in YAML", foreign.start(), hint=hint)
    directive = _TAG_DIRECTIVE.search(text)
    if directive:
        raise Unreadable("the directive %TAG is not supported", directive.start(), hint="remove it; tags are refused")


def _check_start(event: Any, *, again: bool) -> None:
    offset = event.start_mark.index
    if again:
        hint = "put it in a file of its own, or quote a line that is meant to be ---"
        raise Unreadable("a second document begins here; one file is one document", offset, hint=hint)
    if event.version not in (None, (1, 2)):
        raise Unreadable("%YAML names a version that is not 1.2", offset, hint="remove the directive")


def _scalar(text: str, event: Any) -> Token:
    offset: int = event.start_mark.index
    if event.tag is not None or event.anchor is not None:
        raise _special(text, offset)
    value: str = event.value
    if not event.implicit[0]:
        return "scalar", checked_text(value, offset), offset
    if value in _WORDS:
        return "scalar", _WORDS[value], offset
    if value == "<<":
        hint = "write the keys out where they are meant, or quote it"
        raise Refused("found <<: merging mappings is not supported", offset, hint=hint)
    return "scalar", _number(value, offset) if value[0] in _NUMBER_BEGINS else value, offset


def _number(word: str, offset: int) -> Json:
    """The number that a plain scalar spells, or the word itself."""
    for spelling, base in ((_DECIMAL, 10), (_OCTAL, 8), (_HEXADECIMAL, 16)):
        if spelling.fullmatch(word):
            return _integer(word, base, offset)
    finite = _FLOAT.fullmatch(word)
    if finite is None and _NOT_FINITE.fullmatch(word) is None:
        return word
    if finite is None or abs(number := float(word)) == float("inf"):
        raise Refused(f"found {word:.60}, allowed: finite numbers", offset, hint="quote it where text is meant")
    return number


def _integer(word: str, base: int, offset: int) -> int:
    if len(word) <= _MOST_DIGITS:
        number = int(word, 0 if base != 10 else 10)
        if -MAX_INTEGER <= number <= MAX_INTEGER:
            return number
    message = f"found {word:.60}, allowed: integers up to ±(2^53-1)"
    raise Refused(message, offset, hint="quote it where text is meant")


def _collection(text: str, event: Any) -> Token:
    offset: int = event.start_mark.index
    if event.tag is not None or event.anchor is not None:
        raise _special(text, offset)
    return "mapping" if type(event) is MappingStartEvent else "list", None, offset


def _end(_text: str, event: Any) -> Token:
    return "end", None, event.start_mark.index


def _alias(text: str, event: Any) -> Token:
    raise _special(text, event.start_mark.index)


_READERS: dict[type, Callable[[str, Any], Token]] = {
    ScalarEvent: _scalar,
    MappingStartEvent: _collection,
    SequenceStartEvent: _collection,
    MappingEndEvent: _end,
    SequenceEndEvent: _end,
    AliasEvent: _alias,
}


def _special(text: str, offset: int) -> Refused:
    """For a plain word whose first sign YAML takes for itself; a glob such as *.md is the usual one."""
    found = _WORD.match(text, offset)
    word = found.group() if found else text[offset]
    meaning = _SPECIAL.get(word[0], "a sign of its own")
    message = f"found {shown(word)}: YAML reads an unquoted {word[0]} as {meaning}, which is not allowed here"
    return Refused(message, offset, hint=f"quote it: '{word}'" if "'" not in word else "quote it")


def _explained(text: str, error: yaml.MarkedYAMLError) -> Unreadable:
    mark = error.problem_mark
    if error.context in _BEGAN_EARLIER or mark is None:
        mark = error.context_mark
    offset: int = min(mark.index, len(text)) if mark is not None else 0
    if text[offset : offset + 1] in _SPECIAL:
        return _special(text, offset)
    began = error.context_mark
    within = f" {error.context} from line {began.line + 1}" if began is not None and began.index < offset else ""
    return Unreadable(
        f"not valid YAML{within}: {error.problem}{_found(text, offset)}", offset, hint=_hint(text, offset)
    )


def _found(text: str, offset: int) -> str:
    word = _WORD.match(text, offset)
    return f", at {shown(word.group() if word else text[offset])}" if offset < len(text) else ", at the end"


def _hint(text: str, offset: int) -> str | None:
    if text[offset : offset + 1] == "\t":
        return "indent with spaces, not with tabs"
    if text[offset : offset + 1] == ":":
        return "quote a value that holds ': '"
    return None
