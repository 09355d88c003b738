"""Random policies: only what every reading of the specification takes as valid, with each key now and then."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random  # noqa: TID251 - a type: the caller seeds it
from typing import Any, TypeAlias, cast

from capsule.calls import BUILTIN, Places, Source
from reference.alphabet import (
    BOXES,
    DENY_TOKENS,
    DOMAINS,
    FIRST,
    GLOBS,
    GUARDED,
    HEADERS,
    NAMES,
    OTHER,
    RARE,
    SPELLED,
    TOKENS,
    URL_GLOBS,
    Document,
)

Rule: TypeAlias = dict[str, Any]

IDS = tuple("abcdefg")
TOOLS = ("fs.read", "fs.read", "fs.list", "fs.write", "fs.write", "http.get", "http.get", "shell.run", "shell.run")
FS = ("fs.list", "fs.read", "fs.write")
SOURCES = (*Source, *[Source.API, Source.PLAN] * 3, Source.AGENT)


def chance(rng: Random, share: float) -> bool:
    return rng.random() < share


def several(rng: Random, items: Sequence[Any], low: int, high: int) -> list[Any]:
    return [rng.choice(items) for _ in range(rng.randint(low, high))]


def one_or_list(rng: Random, items: list[Any]) -> Document:
    return {"pattern": items[0]} if len(items) == 1 and chance(rng, 0.5) else {"patterns": items}


def path_pattern(rng: Random, places: Places, *, deny: bool) -> str:
    if chance(rng, 0.1 if deny else 0.3):
        return rng.choice(["**", "**", "./**", "/**", ".", "~/**", "./docs"])
    if chance(rng, 0.12):
        return rng.choice(SPELLED)
    workdir = "/" + "/".join(places.workdir)
    start = rng.choice(["./", "./", "", "", "~/", f"{workdir}/", "**/" if deny or chance(rng, 0.3) else "./"])
    words = NAMES + NAMES + RARE
    parts = [rng.choice(words) if chance(rng, 0.65) else rng.choice([*GLOBS, "*"]) for _ in range(rng.randint(1, 2))]
    if chance(rng, 0.1):
        parts.insert(rng.randint(0, 1), "**")
    return start + "/".join([*parts, "**"] if chance(rng, 0.5) and parts[-1] != "**" else parts)


def path_want(rng: Random, places: Places, *, deny: bool, writes: bool) -> Document:
    if writes and not deny and chance(rng, 0.2):
        return one_or_list(rng, several(rng, GUARDED, 1, 3)) | {"protected": "allow"}
    want = one_or_list(rng, [path_pattern(rng, places, deny=deny) for _ in range(rng.choice([1, 1, 1, 2, 2, 3]))])
    if chance(rng, 0.02):
        want = {"patterns": []}
    return want if deny or chance(rng, 0.85) else want | {"hidden": "allow"}


def url_want(rng: Random, *, deny: bool) -> Document:
    private = not deny and chance(rng, 0.2)
    hosts = [host for host in DOMAINS if not private or "*" not in host]
    if chance(rng, 0.6):
        want: Document = {"domains": several(rng, hosts, 1, 3)}
    else:
        spelled = [
            rng.choice(["https", "https", "http"]) + "://" + rng.choice(hosts) + rng.choice(["", "", ":8080"])
            for _ in range(rng.choice([1, 1, 2]))
        ]
        want = one_or_list(rng, [text + rng.choice(URL_GLOBS) for text in spelled])
        if chance(rng, 0.1):
            want["domains"] = several(rng, hosts, 1, 2)
    if private:
        want["private_networks"] = "allow"
    if chance(rng, 0.15):
        want["schemes"] = rng.choice([["https"], ["http", "https"], []])
    if chance(rng, 0.15):
        want["ports"] = rng.choice([[443], [80, 8080], [443, 8443]])
    if chance(rng, 0.1):
        want["query"] = rng.choice(
            [{"q": "1"}, {"q": "*"}, {"q": ["2*", "1"]}, {"q": "2"}, {"p": "*"}, {"q": "*", "p": "*"}]
        )
    return want


def command_want(rng: Random, *, deny: bool) -> Document:
    lists = []
    for _ in range(rng.choice([1, 1, 2])):
        tokens = [rng.choice(FIRST), *several(rng, list(TOKENS), 0, 2)]
        if chance(rng, 0.5):
            tokens.append("**")
        lists.append(tokens if chance(rng, 0.3) else " ".join(tokens))
    want = {"executables": several(rng, ["git", "ls"], 1, 2)} if chance(rng, 0.2) else one_or_list(rng, lists)
    return want if deny or chance(rng, 0.5) else want | {"deny_tokens": several(rng, DENY_TOKENS, 1, 3)}


def argument_wants(rng: Random, tools: list[str], places: Places, *, deny: bool) -> Document:
    """A constraint for what each of the tools guards."""
    found: Document = {}
    if set(tools) & set(FS):
        writes = "fs.write" in tools
        first, second = (path_want(rng, places, deny=deny, writes=writes) for _ in range(2))
        alone = set(tools) <= set(FS)
        if alone and chance(rng, 0.65):
            found["path"] = first
        elif alone and chance(rng, 0.5):
            found |= {"read_paths": first} if tools != ["fs.write"] else {}
            found |= {"write_paths": second} if writes else {}
        else:
            found["paths"] = first
    if "http.get" in tools:
        found["url" if tools == ["http.get"] and chance(rng, 0.7) else "urls"] = url_want(rng, deny=deny)
    if "shell.run" in tools:
        found["command" if tools == ["shell.run"] and chance(rng, 0.7) else "commands"] = command_want(rng, deny=deny)
        if tools == ["shell.run"] and chance(rng, 0.2):
            found["cwd"] = path_want(rng, places, deny=deny, writes=False)
    if len(tools) == 1 and chance(rng, 0.55 if tools == ["http.get"] else 0.2):
        found.update([rng.choice(OTHER[tools[0]])])
    return found


def limit_wants(rng: Random, tools: list[str], share: float) -> Document:
    found: Document = {}
    if chance(rng, share):
        found["max_calls"] = rng.randint(1, 3)
    if chance(rng, share / 2):
        found["rate_limit"] = {"requests_per_minute": rng.randint(1, 3)}
    if chance(rng, 2 * share) and tools not in (["shell.run"], ["fs.list"]):
        found["max_bytes"] = rng.choice([3, 3, 6, 9, "1KB", "1MiB"])
    if chance(rng, share):
        found["timeout"] = rng.choice(["500ms", "5s", "20s", "2m"])
    if chance(rng, share) and tools == ["shell.run"]:
        found["max_output_bytes"] = rng.choice([1000, "2KB", "2MB"])
    return found


def tool_field(rng: Random, favourite: str) -> tuple[Any, list[str]]:
    """What a rule writes under `tool`, and the built-in tools that it names."""
    other, kind = rng.choice(TOOLS), rng.random()
    if kind < 0.12:
        return "*", list(BUILTIN)
    if kind < 0.27 and favourite in FS:
        return "fs.*", list(FS)
    if kind < 0.37 and other != favourite:
        return [favourite, other], sorted([favourite, other])
    return (favourite, [favourite]) if kind < 0.9 else (other, [other])


def conditions(rng: Random, action: str) -> Document:
    found: Document = {}
    if action in ("ask", "deny") and chance(rng, 0.3):
        found["tainted"] = True
    if chance(rng, 0.12):
        found["source"] = [source.value for source in several(rng, SOURCES, 2, 4)]
    return found


def rule(rng: Random, name: str, favourite: str, places: Places) -> Rule:
    action = rng.choice(["allow"] * 12 + ["ask"] * 3 + ["deny"] * 3 + ["limit"] * 3)
    tool, tools = tool_field(rng, favourite)
    wants = argument_wants(rng, tools, places, deny=action in ("deny", "limit"))
    if action != "allow" and chance(rng, 0.2 if action == "deny" else 0.5):
        wants = {}
    elif action in ("deny", "limit", "ask") and len(tools) > 1 and chance(rng, 0.7):
        wants = dict([rng.choice(list(wants.items()))])
    if action != "deny":
        wants |= limit_wants(rng, tools, 0.5 if action == "limit" else 0.12)
    if action == "limit" and not set(wants) & {"max_calls", "rate_limit", "max_bytes", "timeout", "max_output_bytes"}:
        wants["max_calls"] = 2
    found: Rule = {"id": name, "action": action, "tool": tool}
    if action in ("allow", "ask"):
        found |= extras(rng, tools, wants)
    when = conditions(rng, action)
    return found | ({"when": when} if when else {}) | ({"constraints": wants} if wants else {})


def extras(rng: Random, tools: list[str], wants: Document) -> Rule:
    found: Rule = {}
    if tools == ["shell.run"] and chance(rng, 0.4):
        wants["sandbox"] = rng.choice(BOXES)
    if tools == ["shell.run"] and chance(rng, 0.2):
        found["sandbox_level"] = rng.choice(["any", "landlock", "namespaces"])
    if tools in (["shell.run"], ["http.get"]) and chance(rng, 0.4):
        found["secrets"] = ["TOKEN"]
    if chance(rng, 0.12):
        found["redact"] = rng.choice(["off", "secrets", "personal"])
    return found


def wide(rng: Random, name: str, favourite: str) -> Rule:
    """An allow for most of what is asked of a tool, so that other rules decide."""
    if favourite in FS:
        want: Document = {"path": {"patterns": ["**", "~/**", *several(rng, ["/**", *SPELLED], 0, 2)]}}
        if chance(rng, 0.5):
            want["path"]["hidden"] = "allow"
    elif favourite == "http.get":
        hosts = ["example.com", "*.example.com", "other.org", "8.8.8.8"]
        want = {"url": {"domains": hosts, "ports": [80, 443, 8080]}}
        if chance(rng, 0.4):
            want["headers"] = HEADERS[0]
    else:
        want = {"command": {"executables": ["git", "ls", "rm"], "patterns": ["./tools/x **"]}}
        if chance(rng, 0.6):
            want["command"]["deny_tokens"] = several(rng, DENY_TOKENS, 1, 3)
        if chance(rng, 0.4):
            want |= {"env": {"type": "object"}, "paths": {"pattern": "**"}}
    return {"id": name, "action": "allow", "tool": favourite, "constraints": want} | extras(rng, [favourite], want)


def document(rng: Random, favourite: str, places: Places) -> Document:
    names = rng.sample(IDS, rng.choice([0, *[1, 2, 3, 3, 4, 4, 5, 5, 6] * 3]))
    rules = [rule(rng, name, favourite, places) for name in names]
    if rules and chance(rng, 0.5):
        rules[0] = wide(rng, names[0], favourite)
        if chance(rng, 0.35):
            rules = [one for one in rules if one is rules[0] or one["action"] in ("deny", "limit")]
        rng.shuffle(rules)
    found: Document = {"version": 1, "name": "random", "rules": rules}
    if chance(rng, 0.2):
        found["default_action"] = rng.choice(["ask", "ask", "deny"])
    if chance(rng, 0.12):
        found["limits"] = {"calls": rng.randint(3, 9)}
    return cast("Document", json.loads(json.dumps(found)))  # no part is there twice: YAML would write an alias
