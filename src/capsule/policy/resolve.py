"""Make a call concrete, once: the only place that looks at the world for a decision."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence

from capsule.calls import (
    Access,
    ConcreteCall,
    ConcreteCommand,
    ConcretePath,
    ConcreteUrl,
    Guard,
    Source,
    ToolCall,
    ToolDefinition,
    World,
)
from capsule.calls.marker import has_marker
from capsule.canon import Json, NotCanonical, canonical
from capsule.documents import schema, suggest
from capsule.errors import ToolError
from capsule.policy.urls import parse_url
from capsule.policy.values import without_credential

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token of RFC 9110
_CONNECTION_HEADERS = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "te", "upgrade", "expect"}
)
_ACCESS = {Guard.READ_PATH: Access.READ, Guard.WRITE_PATH: Access.WRITE}


def definition_of(tool: str, definitions: Mapping[str, ToolDefinition]) -> ToolDefinition:
    found = definitions.get(tool)
    if found is not None:
        return found
    near = suggest(tool, definitions)
    raise ToolError(
        2001, f"no tool is called {tool!r}", hint=f"did you mean {near}?" if near else "see `capsule tools list`"
    )


def resolve(call: ToolCall, definition: ToolDefinition, world: World, *, search: tuple[str, ...] = ()) -> ConcreteCall:
    """What is decided on is what is later acted on; arguments that do not fit the schema are a ToolError 2002."""
    args = valid_arguments(call.args, definition)
    marker = has_marker(args)
    paths: list[ConcretePath] = []
    urls: list[ConcreteUrl] = []
    commands: list[ConcreteCommand] = []
    for argument, guard in definition.guards.items():
        value = args.get(argument)
        if value is None:
            continue
        if guard in _ACCESS:
            paths += [world.path(text, argument=argument, access=_ACCESS[guard]) for text in _texts(value)]
        elif guard is Guard.URL:
            urls += [parse_url(text, argument=argument) for text in _texts(value)]
        elif guard is Guard.COMMAND:
            commands.append(world.command(_texts(value), argument=argument, search=search))
        elif guard is Guard.HEADERS:
            if not marker:  # which the decision refuses, with a better word for it
                _check_headers(value, argument)
            args[argument] = _lower_names(value, argument)
    return ConcreteCall(
        definition=definition,
        args=args,
        source=Source(call.source),
        resolved=world.resolved,
        paths=tuple(paths),
        urls=tuple(urls),
        commands=tuple(commands),
        payload_bytes=_payload_bytes(definition, args),
        marker=marker,
        flags=_not_looked_up(world, paths, commands),
    )


def _not_looked_up(world: World, paths: Sequence[ConcretePath], commands: Sequence[ConcreteCommand]) -> tuple[str, ...]:
    """What a decision on paper has not seen."""
    if world.resolved == "disk":
        return ()
    return (*(("links_not_followed",) if paths else ()), *(("program_not_looked_up",) if commands else ()))


def valid_arguments(args: Mapping[str, Json], definition: ToolDefinition) -> dict[str, Json]:
    """The arguments with defaults filled in; a copy that no caller can change afterwards under the decision."""
    for problem in schema.problems(args, definition.args_schema):
        where = ".".join(str(part) for part in problem.path)
        wrong = without_credential(problem)
        message = f"{definition.name}: {where}: {wrong}" if where else f"{definition.name}: {wrong}"
        raise ToolError(2002, message, hint=problem.hint or f"see `capsule tools show {definition.name}`")
    try:
        canonical(args)
    except NotCanonical as error:
        raise ToolError(2002, f"{definition.name}: {error}", hint="send plain JSON values") from error
    return {**definition.defaults, **{name: _frozen(value) for name, value in args.items()}}


def _frozen(value: Json) -> Json:
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, Mapping):
        return {name: _frozen(inner) for name, inner in value.items()}
    if isinstance(value, Sequence):
        return tuple(_frozen(inner) for inner in value)
    return value


def _texts(value: Json) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    assert isinstance(value, Sequence)
    return tuple(str(item) for item in value)


def _check_headers(headers: Json, argument: str) -> None:
    assert isinstance(headers, Mapping)
    for name, value in headers.items():
        problem = _header_problem(name, str(value))
        if problem is not None:
            raise ToolError(2002, f"{argument}: {problem}", hint="leave it out; a header is one name and one line")


def _header_problem(name: str, value: str) -> str | None:
    """What would let a header change the request it is part of."""
    if not _HEADER_NAME.fullmatch(name):
        return f"{name!r} is not the name of a header"
    if name.lower() in _CONNECTION_HEADERS or name.lower().startswith("proxy-"):
        return f"{name} is not for the caller to set"
    if any(sign in value for sign in "\r\n\0"):
        return f"the value of {name} holds a line break or NUL"
    return None


def _lower_names(value: Json, argument: str) -> dict[str, Json]:
    """Header names mean the same in any case; two spellings of one would let a check see the other."""
    assert isinstance(value, Mapping)
    lowered = {name.lower(): inner for name, inner in value.items()}
    if len(lowered) != len(value):
        raise ToolError(2002, f"{argument}: a header is given twice", hint="header names differ only by case")
    return lowered


def _payload_bytes(definition: ToolDefinition, args: Mapping[str, Json]) -> int | None:
    if definition.payload is None:
        return None
    content = args[definition.payload]
    assert isinstance(content, str)
    if args.get("encoding") != "base64":
        return len(content.encode())
    try:
        return len(b64decode(content, validate=True))
    except ValueError as error:
        raise ToolError(
            2002, f"{definition.payload}: not base64: {error}", hint="encode the bytes as base64"
        ) from error
