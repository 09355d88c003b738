"""Random policies, concrete calls and run states, over alphabets so small that rules often match.

`sample` draws everything from one `Random`; the hypothesis strategies wrap the same generator.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random  # noqa: TID251 - seeded by the caller: no chance enters that a test did not hand in
from typing import Any, TypeAlias

from hypothesis import strategies as st

from capsule.calls import ConcreteCall, ConcretePath, LayerState, Places, RuleCount, Source
from reference.alphabet import ELSEWHERE, GLOBS, HOSTS, NAMES, PROGRAMS, RARE, TOKENS, URL_PATHS, WORDS, Document
from reference.cases import Question
from reference.concrete import PAPER, absolute, concrete, places
from reference.random_policies import IDS, TOOLS, chance, document, several

Sample: TypeAlias = Question

PLACES = (PAPER, places("/home/user/work"), places("/home/user/.cache/w"))
SOURCES = (*Source, *[Source.API, Source.PLAN] * 3)
NOW_MS = 1_000_000


def known(document: Document, *keys: str) -> list[Any]:
    """What the rules of a policy spell under some constraint keys."""
    rules = [rule for rule in document["rules"] for _ in range(4 if rule["action"] == "allow" else 1)]
    wants = [rule.get("constraints", {}).get(key, {}) for rule in rules for key in keys]
    found = [item for want in wants for item in [want.get("pattern"), *want.get("patterns", [])] if item]
    return found + [item for want in wants for item in want.get("domains", []) + want.get("executables", [])]


def path_text(rng: Random, document: Document) -> str:
    spelled = known(document, "path", "paths", "read_paths", "write_paths", "cwd")
    if spelled and chance(rng, 0.65):
        parts: list[str] = []
        for part in rng.choice(spelled).split("/"):
            parts += several(rng, NAMES, 0, 2) if part == "**" else [rng.choice(GLOBS.get(part, [part]))]
        text = "/".join(parts).replace("{Makefile,a}", "Makefile").replace("*", "x") or "."
        return text + "/" + rng.choice(NAMES) if chance(rng, 0.1) else text
    if chance(rng, 0.25):
        return rng.choice(ELSEWHERE)
    return "/".join(several(rng, NAMES + RARE, 1, 3))


def url_text(rng: Random, document: Document) -> str:
    scheme, host = rng.choice(["https", "https", "https", "http", "ftp"]), rng.choice(HOSTS)
    port, path = rng.choice(["", "", "", "", ":8080", ":80", ":8443"]), rng.choice(URL_PATHS)
    spelled = known(document, "url", "urls")
    if spelled and chance(rng, 0.7):
        *before, host = rng.choice(spelled).split("://")
        scheme = before[0] if before else rng.choice(["https", "https", "http"])
        host, _, tail = host.partition("/")
        host = host.replace("*", rng.choice(["a", "a.b"]))
        path = "/" + tail.replace("**", rng.choice(["a", "a/b"])).replace("*", "a") if before else path
        port = "" if before or chance(rng, 0.8) else port
    if chance(rng, 0.02):
        host = f"user@{host}"
    return f"{scheme}://{host.lower()}{port}{path}{rng.choice(['', '', '?q=1', '?q=2&p='])}"


def argv(rng: Random, document: Document) -> list[str]:
    spelled = known(document, "command", "commands")
    if not spelled or chance(rng, 0.25):
        return [rng.choice(PROGRAMS), *several(rng, WORDS, 0, 3)]
    tokens = rng.choice(spelled)
    first, *rest = tokens.split(" ") if isinstance(tokens, str) else tokens
    found = [rng.choice(["git", "ls"]) if first in ("*", "g*") else first.replace("*", "git")]
    for token in rest:
        found += several(rng, WORDS, 0, 2) if token == "**" else [rng.choice(TOKENS[token])]
    return found + several(rng, WORDS, 0, 1 if rest else 2)


def arguments(rng: Random, tool: str, document: Document) -> Document:
    if tool == "http.get":
        headers = [{"accept": "x"}, {"authorization": "k"}, {"cookie": "k"}, {"authorization": "secret:TOKEN"}]
        headers += [{"x-key": "secret:TOKEN"}, {"x-key": "Bearer secret:TOKEN"}, {"x-key": "secret:OTHER"}]
        found: Document = {"url": url_text(rng, document)}
        return found | ({"headers": rng.choice(headers)} if chance(rng, 0.3) else {})
    if tool == "shell.run":
        found = {"command": argv(rng, document)}
        found |= {"cwd": rng.choice([".", "docs", path_text(rng, document)])} if chance(rng, 0.2) else {}
        found |= {"env": rng.choice([{}, {"A": "1"}, {"A": "secret:TOKEN"}])} if chance(rng, 0.2) else {}
        return found | ({"stdin": rng.choice(["x", "secret:TOKEN", "x" * 9])} if chance(rng, 0.15) else {})
    found = {"path": path_text(rng, document)}
    if tool == "fs.write":
        found["content"] = "x" * rng.randint(0, 10) if chance(rng, 0.97) else "a secret:TOKEN"
        found |= {"mode": rng.choice(["create", "overwrite", "append"])} if chance(rng, 0.5) else {}
    if tool == "fs.read" and chance(rng, 0.3):
        found |= rng.choice([{"offset": 7}, {"length": 5}, {"length": 20}, {"encoding": "base64"}])
    if tool == "fs.list" and chance(rng, 0.3):
        found |= rng.choice([{"pattern": "*"}, {"limit": 50}])
    return found


def bent(rng: Random, path: ConcretePath, places: Places, document: Document) -> ConcretePath:
    """Now and then a link, a volume that does not tell cases apart, or no real path at all."""
    if chance(rng, 0.1):
        path = replace(path, real=absolute(path_text(rng, document), places))
    if chance(rng, 0.05):
        depth = len(places.workdir) if path.written[: len(places.workdir)] == places.workdir else 0
        recased = (name.upper() if chance(rng, 0.5) else name for name in path.written[depth:])
        written = (*path.written[:depth], *recased)
        path = replace(path, folded=True, written=written)
    return replace(path, problem="a loop of links") if chance(rng, 0.01) else path


def call(rng: Random, tool: str, document: Document, places: Places) -> ConcreteCall:
    found = concrete(tool, arguments(rng, tool, document), places=places, source=rng.choice(SOURCES))
    paths = tuple(bent(rng, path, places, document) for path in found.paths)
    commands = found.commands
    if commands and chance(rng, 0.5):  # as if looked up
        [command] = commands
        name = command.argv[0].rsplit("/")[-1]
        real = ("usr", "bin", "rm" if chance(rng, 0.1) else name)
        problem = "no such program" if chance(rng, 0.02) else None
        invoked = command.invoked or ("usr", "bin", name)
        commands = (replace(command, program=real, invoked=invoked, problem=problem),)
    return replace(found, paths=paths, commands=commands, marker=chance(rng, 0.01))


def state(rng: Random) -> LayerState:
    rules = {}
    for name in IDS:
        if chance(rng, 0.5):
            ages = sorted(several(rng, [0, 1, 30_000, 59_999, 60_000, 60_001, 70_000], 0, 3), reverse=True)
            total = max(len(ages), rng.choice([0, 0, 1, 1, 2, 3]))
            rules[name] = RuleCount(total=total, recent_ms=tuple(NOW_MS - age for age in ages))
    return LayerState(calls=rng.randint(0, 9), rules=rules)


def sample(rng: Random) -> Sample:
    tool, where = rng.choice(TOOLS), rng.choice(PLACES)
    policy = document(rng, tool, where)
    return Sample(policy, call(rng, tool, policy, where), state(rng), NOW_MS, chance(rng, 0.3), where)


def policies(places: Places = PAPER) -> st.SearchStrategy[Document]:
    return randoms().map(lambda rng: document(rng, rng.choice(TOOLS), places))


def calls(places: Places = PAPER) -> st.SearchStrategy[ConcreteCall]:
    return randoms().map(lambda rng: call(rng, rng.choice(TOOLS), {"rules": []}, places))


def states() -> st.SearchStrategy[LayerState]:
    return randoms().map(state)


def samples() -> st.SearchStrategy[Sample]:
    return randoms().map(sample)


def randoms() -> st.SearchStrategy[Random]:
    return st.randoms(use_true_random=False)
