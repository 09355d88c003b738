"""One constraint against one value, as SPEC §3 says it: floors, paths, URLs, commands, other arguments.

`deny` means: as a deny (or a limit, or the strict half of an ask) matches; else as an allow does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from capsule.calls import Access, Components, ConcreteCommand, ConcretePath, ConcreteUrl, Places

Data: TypeAlias = Mapping[str, Any]

PROTECTED = (
    r"/(?P<name>\.git|\.ssh|\.aws|\.gnupg|\.bash_(profile|login|logout)|\.(ba|z|k|c|tc)shrc|\.profile|\.login|\.logout|"
    r"\.z(shenv|profile|login|logout))(/|\Z)"
)
RUNS_LATER = (
    r"/(?P<name>(\.github/workflows|\.vscode|\.idea|\.venv|venv)(?=/)|(Makefile|GNUmakefile|conftest\.py|setup\.py|"
    r"pyproject\.toml|tox\.ini|noxfile\.py|package\.json|\.npmrc|\.envrc|\.mcp\.json|\.pre-commit-config\.yaml|"
    r"\.gitlab-ci\.yml|\.travis\.yml|Jenkinsfile|[^/]*\.pth|sitecustomize\.py)\Z)"
)
TYPES: Mapping[str, Any] = {
    "string": str, "number": (int, float), "integer": int, "array": list, "object": Mapping, "null": type(None)
}  # fmt: skip


def text(names: Sequence[str]) -> str:
    return "".join("/" + name for name in names)


def anchored(pattern: str, places: Places) -> tuple[Components, list[str]]:
    """Where a pattern or a literal path begins, and its components from there."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if parts[:1] == ["~"]:
        return places.home, parts[1:]
    return () if pattern.startswith("/") else places.workdir, parts


def patterns(want: Data) -> list[Any]:
    return [*([want["pattern"]] if "pattern" in want else []), *want.get("patterns", [])]


def expand(pattern: str) -> list[str]:
    """`{a,b}` written out."""
    if braces := re.match(r"((?:\\.|[^\\{])*){([^{}]*)}(.*)", pattern, re.DOTALL):
        return [whole for choice in braces[2].split(",") for whole in expand(braces[1] + choice + braces[3])]
    return [pattern]


def component(glob: str) -> str:
    """One component as a regular expression."""

    def translated(found: re.Match[str]) -> str:
        if found[1]:
            return f"(?!/)[{found[1].replace('!', '^')}{found[2]}]"
        return {"*": "[^/]*", "?": "[^/]"}.get(found[0]) or re.escape(found[0][-1])

    return re.sub(r"\\.|\[(!?.)([^]]*)]|.", translated, glob, flags=re.DOTALL)


def components(globs: Sequence[str], *, hidden: bool, hanging: bool = False) -> str:
    """`**` is any number of components; at the end of a pattern at least one, unless it is `hanging`."""
    found = ""
    for at, glob in enumerate(globs, start=1):
        dot = "" if hidden or glob.startswith((".", "\\.")) else r"(?!\.)"
        many = "+" if at == len(globs) and not hanging else "*"
        found += f"(?:/{dot}[^/]*){many}" if glob == "**" else f"/{dot}{component(glob)}"
    return found


def token(pattern: str, word: str) -> bool:
    """`*` and `?` match anything in a token of a command, and in the name of a tool."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), word, re.DOTALL) is not None


def floor_names(path: ConcretePath, expression: str) -> list[str]:
    """What a floor sees in a path: in both its forms, folded where the volume folds."""
    flags, forms = re.IGNORECASE if path.folded else 0, (text(path.real), text(path.written))
    return [found["name"] for form in forms for found in re.finditer(expression, form, flags)]


def runs_later(path: ConcretePath) -> list[str]:
    return floor_names(path, RUNS_LATER) if path.access is Access.WRITE else []


def under(path: ConcretePath, trees: Sequence[Components]) -> bool:
    return any(floor_names(path, rf"\A(?P<name>{re.escape(text(tree))})(/|\Z)") for tree in trees)


def above_floors(path: ConcretePath, places: Places, *, pattern: str = "", protected: str = "deny") -> bool:
    """Floors 2 and 3, for what one pattern lets through; an empty pattern spells nothing."""
    if path.access is Access.READ or under(path, places.unreadable):
        return not under(path, places.unreadable)
    wild = [re.search(r"(?<!\\)[*?[]", part) is not None for part in pattern.split("/")]
    if (any(wild) or protected != "allow") and (
        under(path, (places.capsule_home, *places.unwritable)) or floor_names(path, PROTECTED)
    ):
        return False
    spelled, listed = re.sub(r"\\(.)", r"\1", f"/{pattern}/"), runs_later(path)
    if path.folded:
        spelled, listed = spelled.lower(), [name.lower() for name in listed]
    return not listed or (not wild[-1] and all(f"/{name}/" in spelled for name in listed))


def path_holds(want: Data, path: ConcretePath, places: Places, *, deny: bool, listing: bool) -> bool:
    hidden, forms = deny or want.get("hidden") == "allow", (path.real, path.written) if deny else (path.real,)
    flags = re.DOTALL | (re.IGNORECASE if deny and path.folded else 0)
    for pattern in [short for whole in patterns(want) for short in expand(whole)]:
        base, globs = anchored(pattern, places)
        below = components(globs, hidden=hidden, hanging=listing or pattern == "**") + ("(/.*)?" if deny else "")
        for names in forms:
            in_workdir = re.match(re.escape(text(places.workdir)) + r"(/|\Z)", text(names), flags)
            start = "" if deny and pattern.startswith("**/") and not in_workdir else re.escape(text(base))
            if re.fullmatch(start + below, text(names), flags) and (
                deny or above_floors(path, places, pattern=pattern, protected=want.get("protected", "deny"))
            ):
                return True
    return False


def host_fits(pattern: str, url: ConcreteUrl, *, deny: bool) -> bool:
    below = url.host.endswith("." + pattern.lower().removeprefix("*."))
    return below if pattern.startswith("*.") else url.host == pattern.lower().strip("[]") or (deny and below)


def url_holds(want: Data, url: ConcreteUrl, *, deny: bool) -> bool:
    """Every key that is there has to hold, and an allow has to name the host."""
    ports = want.get("ports", [url.port] if deny else [80, 443])
    hosts = [
        host
        for pattern in patterns(want)
        for scheme, host, port, path in re.findall(r"\A(.+?)://([^/]*?)(?::(\d+))?/(.*)\Z", pattern)
        if scheme == url.scheme and host_fits(host, url, deny=deny) and url.port in ([int(port)] if port else ports)
        if re.fullmatch(components(path.split("/"), hidden=True), url.path)
    ]
    domains = [host for host in want.get("domains", []) if host_fits(host, url, deny=deny)]
    by_pattern = "pattern" in want or "patterns" in want
    if ("domains" in want and not domains) or not (hosts if by_pattern else url.port in ports):
        return False
    if url.scheme not in want.get("schemes", [url.scheme] if deny else ["http", "https"]):
        return False
    if not valid(want.get("query", True), dict(parse_qsl(url.query, keep_blank_values=True))):
        return False
    private = want.get("private_networks") == "allow" and any("*" not in host for host in domains + hosts)
    return deny or (bool(domains + hosts) and (url.public or private))


def program_fits(pattern: str, command: ConcreteCommand, places: Places, *, deny: bool) -> bool:
    name = command.argv[0]
    if "/" in pattern:
        base, parts = anchored(pattern, places)
        if deny:
            return any(token(text((*base, *parts)), text(one)) for one in (command.invoked, command.program) if one)
        return "/" in name and token(text((*base, *parts)), text(command.invoked or ()))
    if deny:
        return any(token(pattern, one) for one in (name.rsplit("/")[-1], *(command.program or ())[-1:]))
    return "/" not in name and token(pattern, name)


def command_holds(pattern: Any, command: ConcreteCommand, places: Places, *, deny: bool) -> bool:
    first, *rest = pattern.split(" ") if isinstance(pattern, str) else pattern
    words, more = command.argv[1:], deny
    if rest[-1:] == ["**"]:
        rest, more = rest[:-1], True
    if len(words) < len(rest) or (len(words) > len(rest) and not more):
        return False
    if not program_fits(first, command, places, deny=deny):
        return False
    for at, (part, word) in enumerate(zip(rest, words, strict=False)):
        option = word.startswith("-") and not part.startswith("-") and "--" not in rest[:at]
        if not token(part, word) or (option and not deny):
            return False
    return True


def valid(schema: Any, value: Any) -> bool:
    """The subset of JSON Schema; a keyword for another type of value says nothing."""
    if isinstance(schema, bool):
        return schema
    get, dump = schema.get, json.dumps
    python = {"boolean": bool} if isinstance(value, bool) else TYPES
    known = {kind for kind, types in python.items() if isinstance(value, types)}
    found = [
        "type" not in schema or bool(known & {*as_list(schema["type"])}),
        dump(value) in [dump(item) for item in get("enum", [value])],
        dump(value) == dump(get("const", value)),
        any(valid(item, value) for item in get("anyOf", [True])),
    ]
    for kind, suffix in (("number", "imum"), ("string", "Length"), ("array", "Items")):
        amount = 0 if kind not in known else value if kind == "number" else len(value)
        found.append(kind not in known or get("min" + suffix, amount) <= amount <= get("max" + suffix, amount))
    if "string" in known:
        found.append(re.search(get("pattern", ""), value) is not None)
    if "array" in known:
        found += [valid(get("items", True), item) for item in value]
    if "object" in known:
        inner, other = get("properties", {}), get("additionalProperties", True)
        found += [name in value for name in get("required", [])]
        found += [valid(inner.get(name, other), item) for name, item in value.items()]
    return all(found)


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
