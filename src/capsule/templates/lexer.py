"""Text to pieces, as Jinja2 cuts it: plain text and the tokens of each `{{ … }}`; comments fall away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

MAX_TOKENS = 400  # of one expression: bounds the depth of its tree far below the interpreter's recursion limit
MAX_NUMBER = 400  # characters: more digits than any number that JSON can hold; longer ones take Python long to read
_SHOWN = 60  # characters of a faulty template in its message

_START = re.compile(r"\{(?P<kind>[{%#])(?P<sign>[-+]?)")
_COMMENT_END = re.compile(r"(?P<sign>[-+]?)#\}")
_END = re.compile(r"(?P<sign>-?)\}\}")
_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<float>(?<!\.)(?:[0-9]+_)*[0-9]+
        (?:(?:\.(?:[0-9]+_)*[0-9]+)?[eE][-+]?(?:[0-9]+_)*[0-9]+ | \.(?:[0-9]+_)*[0-9]+))
  | (?P<integer>0[bB](?:_?[01])+ | 0[oO](?:_?[0-7])+ | 0[xX](?:_?[0-9a-fA-F])+ | [1-9](?:_?[0-9])* | 0(?:_?0)*)
  | (?P<name>\w+)
  | (?P<string>'[^'\\]*(?:\\.[^'\\]*)*' | "[^"\\]*(?:\\.[^"\\]*)*")
  | (?P<operator>//|\*\*|==|!=|>=|<=|[-+*/%~\[\](){}<>=.:|,;])
    """,
    re.VERBOSE | re.DOTALL,
)
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


class BadTemplate(ValueError):
    """A text that is not a template of this language; `path` leads to it in the value that was compiled."""

    def __init__(self, message: str, *, hint: str | None = None, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = path

    def at(self, path: tuple[str | int, ...]) -> BadTemplate:
        return BadTemplate(self.message, hint=self.hint, path=path)


class Token(NamedTuple):
    kind: str
    text: str
    at: int


class Tokens(NamedTuple):
    """One `{{ … }}`, without its braces."""

    source: str
    tokens: tuple[Token, ...]
    end: int


Piece: TypeAlias = str | Tokens


def fault(source: str, at: int, message: str, *, hint: str | None = None) -> BadTemplate:
    """What is quoted around the fault is cut between words: of half a secret nobody could tell that it is one."""
    begin, end = max(0, at - _SHOWN // 2), min(at + _SHOWN - _SHOWN // 2, len(source))
    if begin:
        begin = source.find(" ", begin, at) + 1 or begin
    if end < len(source):
        end = max(source.rfind(" ", at + 1, end), 0) or end
    left, right = "…" if begin else "", "…" if end < len(source) else ""
    return BadTemplate(f"{message} at character {at + 1} of {left}{source[begin:end]!a}{right}", hint=hint)


def pieces(source: str) -> Iterator[Piece]:
    """Never empty text; `-` inside a brace strips the white space beside it."""
    position, strip = 0, False
    while start := _START.search(source, position):
        text = source[position : start.start()]
        text = text.lstrip() if strip else text
        text = text.rstrip() if start["sign"] == "-" else text
        if text:
            yield text
        if start["kind"] == "%":
            raise fault(source, start.start(), "statements ({% … %}) are not part of the template language")
        if start["kind"] == "#":
            end = _COMMENT_END.search(source, start.end())
            if end is None:
                raise fault(source, start.start(), "a comment that never ends", hint="close it with #}")
        else:
            tokens, end = _expression_tokens(source, start)
            yield tokens
        position, strip = end.end(), end["sign"] == "-"
    rest = source[position:].lstrip() if strip else source[position:]
    if rest:
        yield rest


def _expression_tokens(source: str, start: re.Match[str]) -> tuple[Tokens, re.Match[str]]:
    found: list[Token] = []
    awaited: list[str] = []  # closing brackets; `}}` ends the expression only outside of them
    position = start.end()
    while True:
        if not awaited and (end := _END.match(source, position)):
            return Tokens(source, tuple(found), end.start()), end
        token = _next_token(source, position, begin=start.start())
        position = token.at + len(token.text)
        if token.kind == "space":
            continue
        if token.kind == "operator":
            _balance(source, token, awaited)
        found.append(token)
        if len(found) > MAX_TOKENS:
            raise fault(source, token.at, f"an expression of more than {MAX_TOKENS} parts", hint="use variables")


def _next_token(source: str, position: int, *, begin: int) -> Token:
    if position >= len(source):
        raise fault(source, begin, "an expression that never ends", hint="close it with }}")
    match = _TOKEN.match(source, position)
    if match is None or match.lastgroup is None:
        raise fault(source, position, "an unexpected character")
    if match.lastgroup in {"float", "integer"} and len(match[0]) > MAX_NUMBER:
        raise fault(source, position, f"a number of more than {MAX_NUMBER} characters", hint="write it as text")
    return Token(match.lastgroup, match[0], position)


def _balance(source: str, token: Token, awaited: list[str]) -> None:
    if token.text in _BRACKETS:
        awaited.append(_BRACKETS[token.text])
    elif token.text in ")]}" and (not awaited or awaited.pop() != token.text):
        raise fault(source, token.at, f"a `{token.text}` that nothing opened")


class Cursor:
    """A place between the tokens of one expression."""

    def __init__(self, expression: Tokens) -> None:
        self._source = expression.source
        self._tokens = (*expression.tokens, Token("end", "}}", expression.end))
        self._next = 0

    @property
    def kind(self) -> str:
        return self._tokens[self._next].kind

    @property
    def text(self) -> str:
        return self._tokens[self._next].text

    def take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1].text

    def sees(self, word: str, ahead: int = 0) -> bool:
        token = self._tokens[min(self._next + ahead, len(self._tokens) - 1)]
        return token.text == word and token.kind in {"name", "operator"}

    def skip(self, *words: str) -> bool:
        """Pass these words if all of them come next."""
        found = all(self.sees(word, ahead) for ahead, word in enumerate(words))
        self._next += len(words) if found else 0
        return found

    def fault(self, message: str, *, hint: str | None = None) -> BadTemplate:
        return fault(self._source, self._tokens[self._next].at, message, hint=hint)
