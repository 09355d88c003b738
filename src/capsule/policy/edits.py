"""The smallest edit that would allow a call: a pattern more in a rule, or one rule more. None is offered untried."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from capsule.calls import Access, ConcreteCall, ConcretePath, ConcreteUrl, Guard
from capsule.calls.builtin import FS_LIST
from capsule.canon import Json
from capsule.documents import load_text
from capsule.errors import PlanError
from capsule.policy import floors
from capsule.policy.advice import shown_path
from capsule.policy.command_patterns import CommandPattern
from capsule.policy.commands import CommandConstraint
from capsule.policy.document import read_policy
from capsule.policy.hosts import HostSet
from capsule.policy.layer import Layer
from capsule.policy.matching import RuleIndex
from capsule.policy.paths import PathConstraint, PathPattern
from capsule.policy.rules import Constraint, Rule, Selector
from capsule.policy.selectors import constraint_holds, needs_cover
from capsule.policy.url_patterns import UrlPattern
from capsule.policy.urls import UrlConstraint
from capsule.policy.values import ValueConstraint

_LONGEST_VALUES = 200  # characters of values that a suggested rule spells

_quoted = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wider:
    constraint: Constraint
    added: tuple[Json, ...]
    where: str


def smallest_edit(layer: Layer, call: ConcreteCall) -> str | None:
    """None where the policy grants the call already, where no one edit would do, or no pattern can be written."""
    try:
        return _smallest(layer, call)
    except (ValueError, PlanError):  # a port of 0, a path that is too long once its signs are escaped
        return None


def _smallest(layer: Layer, call: ConcreteCall) -> str | None:
    problems = [*(path.problem for path in call.paths), *(url.problem for url in call.urls)]
    if any(problems) or any(command.problem for command in call.commands):
        return None
    book = layer.book(call.definition, call.source, tainted=False)
    if book.grants.match(call).rules:
        return None
    edits = (_of_rule(layer, rule, call) for rule in book.nearest)
    return next((edit for edit in edits if edit is not None), None) or _one_rule_more(layer, call, book.nearest)


def _of_rule(layer: Layer, rule: Rule, call: ConcreteCall) -> str | None:
    """What to add to the constraints of a rule that do not hold; nothing where that alone would not do."""
    grants: list[tuple[Selector, Constraint]] = []
    added: list[str] = []
    for selector, constraint in rule.grants:
        if constraint_holds(selector, constraint, call, layer.world, as_bars=False):
            grants.append((selector, constraint))
            continue
        wider = _wider(selector, constraint, call, layer)
        if wider is None:
            return None
        grants.append((selector, wider.constraint))
        added.append(f"{', '.join(map(_quoted, wider.added))} to the {wider.where}")
    edited = replace(rule, grants=tuple(grants))
    if not added or not RuleIndex([edited], call.definition, layer.world, as_bars=False).match(call).rules:
        return None
    return f"add {' and '.join(added)} of rule {rule.id}"


def _wider(selector: Selector, constraint: Constraint, call: ConcreteCall, layer: Layer) -> _Wider | None:
    """The constraint with exactly the values of this call beside what it holds."""
    name, guards = selector.name, call.definition.guards
    match constraint:
        case PathConstraint():
            paths = [path for path in call.paths if selector.covers(path.argument, guards[path.argument])]
            added = tuple(_path_pattern(path, layer) for path in paths)
            parsed = tuple(PathPattern.parse(text, unanchored_allowed=False) for text in added)
            return _Wider(
                constraint=replace(constraint, patterns=constraint.patterns + parsed), added=added, where=name
            )
        case UrlConstraint() if constraint.patterns is None and constraint.domains is not None:
            hosts = tuple(url.host for url in call.urls)
            wider = HostSet(exact=constraint.domains.exact | set(hosts), below=constraint.domains.below)
            return _Wider(constraint=replace(constraint, domains=wider), added=hosts, where="domains")
        case UrlConstraint() if constraint.domains is None:
            texts = tuple(map(_url_pattern, call.urls))
            urls = tuple(UrlPattern.parse(text, deny=False) for text in texts)
            wider_urls = replace(constraint, patterns=(constraint.patterns or ()) + urls)
            return _Wider(constraint=wider_urls, added=texts, where=name)
        case CommandConstraint():
            argvs = tuple([_token(token) for token in command.argv] for command in call.commands)
            commands = tuple(CommandPattern.parse(argv, deny=False) for argv in argvs)
            wider_commands = replace(constraint, patterns=(constraint.patterns or ()) + commands)
            return _Wider(constraint=wider_commands, added=argvs, where=name)
        case ValueConstraint() if isinstance(listed := constraint.schema.get("enum"), list | tuple):
            value = call.args.get(name)
            wider_values = replace(constraint, schema={**constraint.schema, "enum": [*listed, value]})
            return _Wider(constraint=wider_values, added=(value,), where=f"enum of {name}")
        case _:
            return None


def _one_rule_more(layer: Layer, call: ConcreteCall, nearest: Sequence[Rule]) -> str | None:
    """It grants no value of an argument that another rule holds to something, but for the one of this call."""
    held = {selector.name for rule in nearest for selector, each in rule.grants if isinstance(each, ValueConstraint)}
    free = held - set(call.definition.guards)
    values = {name: {"const": value} for name in sorted(free) if (value := call.args.get(name)) is not None}
    if len(_quoted(values)) > _LONGEST_VALUES:
        return None
    constraints = {**dict(_constraints(layer, call)), **values}
    raw: Json = {"rules": [{"action": "allow", "tool": call.tool, "constraints": constraints}]}
    document = load_text(_quoted(raw), kind="policy", format="json")
    rules = read_policy(document, {call.tool: call.definition}).rules
    if not RuleIndex(rules, call.definition, layer.world, as_bars=False).match(call).rules:
        return None
    meant = "if this is meant, " if _is_grave(layer, call) else ""
    return f"{meant}add the rule {{action: allow, tool: {call.tool}, constraints: {_quoted(constraints)}}}"


def _is_grave(layer: Layer, call: ConcreteCall) -> bool:
    return any(_is_protected(layer, path) for path in call.paths) or not all(url.public for url in call.urls)


def _is_protected(layer: Layer, path: ConcretePath) -> bool:
    return path.access is Access.WRITE and floors.protected(path, layer.places) is not None


def _constraints(layer: Layer, call: ConcreteCall) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Of each argument that needs it, one that holds for its value and for nothing else."""
    for argument, guard in needs_cover(call):
        match guard:
            case Guard.READ_PATH | Guard.WRITE_PATH:
                paths = [path for path in call.paths if path.argument == argument]
                beneath = "/**" if call.tool == FS_LIST.name else ""  # a listing of nothing helps nobody
                spelled: list[Json] = [_path_pattern(path, layer).rstrip("/") + beneath for path in paths]
                named: dict[str, Json] = {"pattern": spelled[0]} if len(spelled) == 1 else {"patterns": spelled}
                yield argument, {**named, **({"protected": "allow"} if _is_protected(layer, paths[0]) else {})}
            case Guard.URL:
                for url in call.urls:
                    private: dict[str, Json] = {} if url.public else {"private_networks": "allow"}
                    yield argument, {"pattern": _url_pattern(url), **private}
            case Guard.COMMAND:
                for command in call.commands:
                    yield argument, {"pattern": [_token(token) for token in command.argv]}
            case Guard.ENV | Guard.HEADERS:
                value = call.args[argument]
                assert isinstance(value, Mapping)
                yield argument, {"properties": {name: {} for name in value}, "additionalProperties": False}


_ESCAPED = str.maketrans({char: "\\" + char for char in "*?[]{}\\"})


def escaped(text: str) -> str:
    """A pattern that matches this text and nothing else."""
    return text.translate(_ESCAPED)


def _path_pattern(path: ConcretePath, layer: Layer) -> str:
    return escaped(shown_path(path.real, layer.places))


def _url_pattern(url: ConcreteUrl) -> str:
    """All of the URL but its query; the brackets around an address are no signs of a pattern."""
    scheme, slashes, rest = url.href.partition("?")[0].partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{authority}{slash}{escaped(path)}"


def _token(token: str) -> str:
    return "".join("\\" + char if char in "*?\\" else char for char in token)
