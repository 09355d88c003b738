"""Why no rule allows a call, in the words of a policy."""

from __future__ import annotations

import json

from capsule.calls import Access, Components, ConcreteCall, ConcretePath, ConcreteUrl, Places
from capsule.documents import beginning
from capsule.policy import floors
from capsule.policy.layer import Layer
from capsule.policy.paths import is_within
from capsule.policy.rules import Action

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
    return text if len(text) <= _LONGEST_SHOWN else beginning(text, _LONGEST_SHOWN) + "…"


def unmatched_reason(call: ConcreteCall, code: int, layer: Layer) -> str:
    """What no rule covers, or covers but for a floor."""
    match code:
        case 1000:
            granting = (rule for rule in layer.rules.rules if rule.action in (Action.ALLOW, Action.ASK))
            others = any(rule.names(call.tool) for rule in granting)
            return f"no rule names {call.tool}" + (f" for source {call.source.value}" if others else "")
        case 1001:
            return "; ".join(_path_reason(path, call, layer) for path in call.paths) or f"{call.tool} needs a path"
        case 1002:
            return "; ".join(url.problem or _url_reason(url) for url in call.urls)
        case 1003 | 1004:
            return "; ".join(
                command.problem or f"no rule allows {cut(json.dumps(command.argv))}" for command in call.commands
            )
        case _:
            return f"an argument of {call.tool} does not meet the constraints of any rule"


def _path_reason(path: ConcretePath, call: ConcreteCall, layer: Layer) -> str:
    if path.problem is not None:
        return f"{cut(path.text)!r}: {path.problem}"
    name = cut(shown_path(path.real, layer.places))
    floor = floors.unreadable(path, layer.places)
    if floor is None and path.access is Access.WRITE:
        floor = floors.protected(path, layer.places)
    if floor is not None:
        return f"{name} is protected: {floor}"
    held_back = layer.book(call.definition, call.source, tainted=False).grants.held_back(call, path)
    if held_back is not None:
        rule, why = held_back
        return f"no rule allows {name}: {rule} covers it, but {why}"
    return f"no rule allows {name}"


def _url_reason(url: ConcreteUrl) -> str:
    if url.public:
        return f"no rule allows {cut(url.href)}"
    return f"{cut(url.host)} is not a public address, and no rule names it with `private_networks: allow`"
