"""What in a valid policy is dangerous, or says nothing: remarks for its author, none of which changes a decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from capsule.calls import SandboxGrant, ToolDefinition
from capsule.canon import Json
from capsule.documents import suggest
from capsule.policy.commands import CommandConstraint
from capsule.policy.paths import PathConstraint
from capsule.policy.policy import Policy
from capsule.policy.rules import Action, Rule
from capsule.policy.urls import UrlConstraint

_LIMITS = ("max_bytes", "timeout_ms", "max_output_bytes", "max_calls", "per_minute")  # the last two count by rule
_EVERYTHING = frozenset({"/**", "**", "~/**", "./**"})
_BROAD = frozenset({"/**", "~/**"})
# Programs whose whole purpose is to run what they are given.
_RUN_ANYTHING = frozenset(
    {
        *("ash", "bash", "busybox", "dash", "fish", "ksh", "sh", "zsh"),
        *("awk", "bun", "deno", "gawk", "node", "perl", "php", "python", "python3", "ruby"),
        *("doas", "env", "find", "make", "npx", "nsenter", "parallel", "setsid", "ssh", "sudo"),
        *("timeout", "watch", "xargs"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    level: Literal["danger", "note"]
    rule: str
    message: str

    def as_json(self) -> dict[str, Json]:
        return {"level": self.level, "rule": self.rule, "message": self.message}


def check_policy(policy: Policy) -> list[Remark]:
    rules = policy.rules
    remarks = [remark for rule in rules.rules for remark in _of_rule(rule, policy.definitions)]
    remarks += _unreachable_limits(policy)
    if not any(rule.action in (Action.ALLOW, Action.ASK) for rule in rules.rules):
        message = "it denies everything: it has no allow and no ask rule, and default_action counts only beside one"
        remarks.append(Remark(level="note", rule=rules.name, message=message))
    if rules.asks_by_default:
        message = "default_action: ask lets a tired person allow what nobody thought of; deny is safer"
        remarks.append(Remark(level="danger", rule=rules.name, message=message))
    return remarks


def _of_rule(rule: Rule, definitions: Mapping[str, ToolDefinition]) -> Iterator[Remark]:
    if not rule.tools:
        yield Remark(level="note", rule=rule.id, message="an empty list of tools matches nothing")
    for tool in rule.tools:
        if not any(tool.matches(name) for name in definitions):
            near = suggest(tool.text, definitions)
            meant = f"; did you mean {near}?" if near else "; `capsule tools list` shows what there is"
            message = f"no tool is called {tool.text}{meant}"
            yield Remark(level="danger" if near else "note", rule=rule.id, message=message)
    if rule.limits.sandbox is not None:
        yield from _of_sandbox(rule, rule.limits.sandbox)
    if rule.redact == "off":
        message = "redact: off writes secrets into the journal and hands them to the caller"
        yield Remark(level="danger", rule=rule.id, message=message)
    for _, constraint in rule.grants or rule.bars:
        match constraint:
            case PathConstraint():
                yield from _of_paths(rule, constraint)
            case UrlConstraint():
                yield from _of_urls(rule, constraint)
            case CommandConstraint():
                yield from _of_commands(rule, constraint)
            case _:
                pass


def _of_paths(rule: Rule, paths: PathConstraint) -> Iterator[Remark]:
    if not paths.patterns:
        yield Remark(level="note", rule=rule.id, message="an empty list of patterns matches nothing")
    for pattern in paths.patterns:
        for message in _slips(pattern.text):
            yield Remark(level="note", rule=rule.id, message=message)
    if rule.action in (Action.DENY, Action.LIMIT):
        return
    for pattern in paths.patterns:
        if pattern.text in _BROAD or _begins_wild(pattern.text):
            message = f"{pattern.text} grants more than any one job needs; name the directories"
            yield Remark(level="danger", rule=rule.id, message=message)
        if paths.hidden and pattern.text in _EVERYTHING:
            message = f"hidden: allow on {pattern.text} reaches .env, .ssh and the like"
            yield Remark(level="danger", rule=rule.id, message=message)
    if paths.protected and any(pattern.is_literal for pattern in paths.patterns):
        message = "protected: allow lets a repository, credentials or a shell's start-up files be changed"
        yield Remark(level="danger", rule=rule.id, message=message)
    if paths.protected and not any(pattern.is_literal for pattern in paths.patterns):
        message = "protected: allow has no effect: no pattern of the rule is without wildcards"
        yield Remark(level="note", rule=rule.id, message=message)


def _of_urls(rule: Rule, urls: UrlConstraint) -> Iterator[Remark]:
    every_host = urls.domains is None and any(pattern.host is None for pattern in urls.patterns or ())
    if rule.action in (Action.ALLOW, Action.ASK) and every_host:
        message = "it allows every public host, and so any leak to one of them"
        yield Remark(level="danger", rule=rule.id, message=message)
    if urls.private_networks:
        message = "private_networks: allow reaches services that trust whoever reaches them, a cloud's metadata too"
        yield Remark(level="danger", rule=rule.id, message=message)


def _of_commands(rule: Rule, commands: CommandConstraint) -> Iterator[Remark]:
    if rule.action in (Action.ALLOW, Action.ASK):
        named = {pattern.first.rpartition("/")[2] for pattern in commands.patterns or ()}
        for name in sorted(named & _RUN_ANYTHING):
            message = f"{name} runs other programs, so this allows any command that the jail lets run"
            yield Remark(level="danger", rule=rule.id, message=message)
        if "*" in named:
            yield Remark(level="danger", rule=rule.id, message="it allows every program there is")
    if rule.action is Action.DENY:
        message = "a deny of commands is a seat belt: most can be spelled another way; what contains is the jail"
        yield Remark(level="note", rule=rule.id, message=message)
    if commands.deny_tokens:
        message = "deny_tokens is a seat belt, not a control"
        yield Remark(level="note", rule=rule.id, message=message)


def _of_sandbox(rule: Rule, sandbox: SandboxGrant) -> Iterator[Remark]:
    for key, paths in (("read", sandbox.read), ("write", sandbox.write)):
        for path in paths:
            if path.rstrip("/") in ("", "~", "/home", "/etc", "/root"):
                message = f"sandbox.{key}: {path} holds more than any one command needs"
                yield Remark(level="danger", rule=rule.id, message=message)
    if sandbox.network and sandbox.read:
        message = "a command that reads files and has the network can send them anywhere"
        yield Remark(level="danger", rule=rule.id, message=message)


def _slips(pattern: str) -> Iterator[str]:
    """What means something elsewhere, and is taken to the letter here."""
    names = pattern.split("/")
    if any("**" in name and name.strip("*") for name in names):
        yield f"in {pattern} a ** inside a name is a *: for any number of directories write **/ before the name"
    if names[0].startswith("$"):
        yield f"{pattern}: {names[0]} is a name and no variable; the home is ~/"
    if names[0].startswith("~") and names[0] != "~":
        yield f"{pattern}: {names[0]} is a name in the workdir; only ~/ is a home"


def _begins_wild(pattern: str) -> bool:
    """`/*/…` and `/**/…` hang from the root and name no directory."""
    return pattern.startswith(("/*", "/{", "/?", "/["))


def _unreachable_limits(policy: Policy) -> Iterator[Remark]:
    """A limit that is larger than one which holds for every call of the rule's tools."""
    rules, tools = policy.rules.rules, policy.definitions
    held = {tool: _always_held(rules, tool) for tool in tools}
    granted = {tool: _granted(rules, tool) for tool in tools}
    most = policy.rules.limits.calls
    for rule in rules:
        named = [tool for tool in tools if rule.names(tool)]
        for limit in _LIMITS:
            mine = getattr(rule.limits, limit)
            why = None if mine is None else _undercut(mine, [held[tool].get(limit) for tool in named])
            if why is None and mine is not None and rule.action is Action.LIMIT:
                why = _not_granted(mine, [found.get(limit) for tool in named if (found := granted[tool]) is not None])
            if why is not None:
                yield Remark(level="note", rule=rule.id, message=f"its {_spelled(limit)} is never reached: {why}")
        if most is not None and rule.limits.max_calls is not None and most < rule.limits.max_calls:
            message = f"its max_calls is never reached: limits.calls lets {most} calls through in all"
            yield Remark(level="note", rule=rule.id, message=message)


def _undercut(mine: int, held: Sequence[tuple[int, str] | None]) -> str | None:
    smaller = [found for found in held if found is not None and found[0] < mine]
    if not smaller or len(smaller) < len(held):
        return None
    return f"{min(smaller)[1]} holds a smaller one for every call"


def _not_granted(mine: int, granted: Sequence[int | None]) -> str | None:
    if not granted or not all(value is not None and value < mine for value in granted):
        return None
    return "every rule that allows says a smaller one"


def _always_held(rules: Sequence[Rule], tool: str) -> dict[str, tuple[int, str]]:
    """Of the limit rules that hold for every call of a tool: for each limit the smallest, and whose it is."""
    always = [
        rule
        for rule in rules
        if rule.action is Action.LIMIT and not rule.bars and rule.when_sources is None and rule.names(tool)
    ]
    found: dict[str, tuple[int, str]] = {}
    for limit in _LIMITS:
        values = [(getattr(rule.limits, limit), rule.id) for rule in always if getattr(rule.limits, limit) is not None]
        if values:
            found[limit] = min(values)
    return found


def _granted(rules: Sequence[Rule], tool: str) -> dict[str, int] | None:
    """Of limits that every rule names which could allow a call: the largest. What each counts for itself adds up."""
    granting = [rule for rule in rules if rule.action in (Action.ALLOW, Action.ASK) and rule.names(tool)]
    if not granting:
        return None
    found: dict[str, int] = {}
    for limit in _LIMITS[:3]:
        values = [getattr(rule.limits, limit) for rule in granting]
        if None not in values:
            found[limit] = max(values)
    return found


def _spelled(limit: str) -> str:
    return "rate_limit" if limit == "per_minute" else limit.removesuffix("_ms")
