"""Why a call is not allowed, and the smallest edit that would allow it."""

from __future__ import annotations

import json

from capsule.calls import Access, Components, ConcreteCall, ConcretePath, Places
from capsule.policy import floors
from capsule.policy.layer import Layer
from capsule.policy.paths import is_within

_quoted = json.JSONEncoder(ensure_ascii=False).encode

_LONGEST_SHOWN = 200  # of a caller's text inside a message


def shown_path(components: Components, places: Places) -> str:
    """A path the way a pattern would spell it: from the workdir, the home or the root."""
    if components == places.workdir:
        return "."
    if is_within(components, places.workdir):
        return "./" + "/".join(components[len(places.workdir) :])
    if is_within(components, places.home) and components != places.home:
        return "~/" + "/".join(components[len(places.home) :])
    return "/" + "/".join(components)


def cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"


def unmatched_reason(call: ConcreteCall, code: int, places: Places) -> str:
    """What no rule covers, in the words of a policy."""
    match code:
        case 1000:
            return f"no rule names {call.tool}"
        case 1001:
            return "; ".join(_path_reason(path, places) for path in call.paths) or f"{call.tool} needs a path"
        case 1002:
            return "; ".join(url.problem or f"no rule allows {cut(url.href)}" for url in call.urls)
        case 1003 | 1004:
            return "; ".join(
                command.problem or f"no rule allows {cut(json.dumps(command.argv))}" for command in call.commands
            )
        case _:
            return f"an argument of {call.tool} does not meet the constraints of any rule"


def _path_reason(path: ConcretePath, places: Places) -> str:
    if path.problem is not None:
        return f"{cut(path.text)!r}: {path.problem}"
    name = cut(shown_path(path.real, places))
    floor = floors.unreadable(path, places)
    if floor is None and path.access is Access.WRITE:
        floor = floors.protected(path, places)
    if floor is not None:
        return f"{name} is protected: {floor}"
    return f"no rule allows {name}"


def advice(layer: Layer, call: ConcreteCall, code: int) -> str | None:
    """The smallest edit: a pattern more in the rule that is nearest, or one rule more."""
    pattern = _pattern(call, code, layer.places)
    if pattern is None:
        return None
    key, value = pattern
    if any(path.access is Access.WRITE and floors.protected(path, layer.places) for path in call.paths):
        written = _quoted({key: {"pattern": value, "protected": "allow"}})
        return f"if this is meant, add the rule {{action: allow, tool: {call.tool}, constraints: {written}}}"
    rule = layer.book(call.definition, call.source, tainted=False).nearest
    if rule is not None:
        return f"add {_quoted(value)} to the {key} of rule {rule.id}"
    written = _quoted({key: {"pattern": value}})
    return f"add the rule {{action: allow, tool: {call.tool}, constraints: {written}}}"


def _pattern(call: ConcreteCall, code: int, places: Places) -> tuple[str, str | list[str]] | None:
    """The argument that is not covered and a pattern that names exactly its value."""
    if code in (1000, 1001):
        for path in call.paths:
            if path.problem is None and floors.unreadable(path, places) is None:
                return path.argument, escaped(shown_path(path.real, places))
    if code in (1000, 1002):
        for url in call.urls:
            if url.problem is None and url.public:
                return url.argument, escaped(url.href.partition("?")[0])
    if code in (1000, 1003):
        for command in call.commands:
            return command.argument, [_token(token) for token in command.argv]
    return None


_ESCAPED = str.maketrans({char: "\\" + char for char in "*?[]{}\\"})


def escaped(text: str) -> str:
    """A pattern that matches this text and nothing else."""
    return text.translate(_ESCAPED)


def _token(token: str) -> str:
    return "".join("\\" + char if char in "*?\\" else char for char in token)
