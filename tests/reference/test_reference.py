"""The reference evaluator itself, against what the policy language says in words and examples."""

from __future__ import annotations

from math import inf
from random import Random  # noqa: TID251 - hypothesis hands it in
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from capsule.calls import Access, ConcretePath, LayerState, RuleCount, Source
from reference.cases import Answer
from reference.concrete import PAPER, concrete
from reference.evaluator import EFFECTS, Case, strictest_of
from reference.strategies import Sample, samples

NOW = 100_000
EXAMPLE = """
rules:
  - id: read-docs
    action: allow
    tool: [fs.read, fs.list]
    constraints: {path: {patterns: ["./docs/**", "~/notes/*.md"]}, max_bytes: 1MB}
  - {id: secrets, action: deny, tool: "*", constraints: {paths: {pattern: "**/secrets"}}}
  - id: net
    action: allow
    tool: http.get
    constraints:
      url: {domains: [api.github.com, "*.python.org"]}
      rate_limit: {requests_per_minute: 3}
      timeout: 20s
  - id: git
    action: allow
    tool: shell.run
    constraints: {command: {patterns: ["git status", "git log **"]}, timeout: 10s, sandbox: {read: ["."]}}
  - {id: out, action: allow, tool: fs.write, constraints: {path: {pattern: "./out/**"}, max_bytes: 4}}
  - {id: tainted, action: ask, tool: fs.write, when: {tainted: true}}
  - {id: many, action: limit, tool: "*", constraints: {max_calls: 200}}
limits: {calls: 500, wall_time: 10m}
"""


def verdict(policy: str, tool: str, args: dict[str, Any], **run: Any) -> Answer:
    state, tainted = run.pop("state", LayerState()), run.pop("tainted", False)
    call = concrete(tool, args, **run)
    return Case(yaml.safe_load(policy), call, state, NOW, tainted, PAPER).decide()


def answer(policy: str, tool: str, args: dict[str, Any], **run: Any) -> str:
    said = verdict(policy, tool, args, **run)
    return " ".join(str(part) for part in (said.effect, said.code, said.rule) if part)


def only(action: str, tool: str, constraints: str = "{}", more: str = "") -> str:
    return f"rules: [{{id: r, action: {action}, tool: {tool}, constraints: {constraints}{more}}}]"


@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    [
        ("fs.read", {"path": "./docs/a/b.md"}, "allow read-docs"),
        ("fs.read", {"path": "./docs/secrets/k"}, "deny 1001 secrets"),
        ("fs.read", {"path": "/elsewhere/secrets/k"}, "deny 1001 secrets"),
        ("fs.read", {"path": "./.env"}, "deny 1001"),
        ("fs.read", {"path": "/etc/passwd"}, "deny 1001"),
        ("fs.read", {"path": "docs/../x"}, "deny 1001"),
        ("fs.read", {"path": "~/notes/a.md"}, "allow read-docs"),
        ("fs.read", {"path": "~/notes/a/b.md"}, "deny 1001"),
        ("fs.list", {"path": "docs"}, "allow read-docs"),
        ("fs.read", {"path": "docs"}, "deny 1001"),
        ("fs.write", {"path": "out/a", "content": "1234"}, "allow out"),
        ("fs.write", {"path": "out/a", "content": "12345"}, "deny 1005 out"),
        ("http.get", {"url": "https://api.github.com/x?y=1"}, "allow net"),
        ("http.get", {"url": "http://192.168.1.1/"}, "deny 1002"),
        ("http.get", {"url": "https://python.org/"}, "deny 1002"),
        ("http.get", {"url": "https://docs.python.org:8443/"}, "deny 1002"),
        ("http.get", {"url": "https://user@api.github.com/"}, "deny 1002"),
        ("http.get", {"url": "https://api.github.com/", "headers": {"Cookie": "x"}}, "deny 1009"),
        ("shell.run", {"command": ["git", "status"]}, "allow git"),
        ("shell.run", {"command": ["git", "status", "-s"]}, "deny 1003"),
        ("shell.run", {"command": ["git", "log", "--all"]}, "allow git"),
        ("shell.run", {"command": ["./git", "status"]}, "deny 1003"),
        ("shell.run", {"command": ["git", "status"], "cwd": "docs"}, "deny 1001"),
        ("shell.run", {"command": ["git", "status"], "env": {"A": "b"}}, "deny 1009"),
    ],
)
def test_the_example(tool: str, args: dict[str, Any], expected: str) -> None:
    assert answer(EXAMPLE, tool, args) == expected


@pytest.mark.parametrize(
    ("tool", "want", "path", "expected"),
    [
        ("fs.read", "{patterns: []}", "a", "deny 1001"),
        ("fs.read", "{pattern: '**'}", "a/.env", "deny 1001"),
        ("fs.read", "{pattern: './{a,.env}'}", ".env", "allow r"),
        ("fs.read", "{pattern: './[.]env'}", ".env", "deny 1001"),
        ("fs.read", "{pattern: '**', hidden: allow}", ".a/b", "allow r"),
        ("fs.read", "{pattern: '/**', hidden: allow}", "~/.capsule/key", "deny 1001"),
        ("fs.read", "{pattern: 'a/**/b'}", "a/b", "allow r"),
        ("fs.write", "{pattern: '**', hidden: allow}", ".git/x", "deny 1001"),
        ("fs.write", "{pattern: './.git/x'}", ".git/x", "deny 1001"),
        ("fs.write", "{pattern: './.git/x', protected: allow}", ".git/x", "allow r"),
        ("fs.write", "{pattern: './.git/*', protected: allow}", ".git/x", "deny 1001"),
        ("fs.write", "{pattern: './policy.yaml', protected: allow}", "policy.yaml", "allow r"),
        ("fs.write", "{pattern: '~/.capsule/key', protected: allow}", "~/.capsule/key", "deny 1001"),
        ("fs.write", "{pattern: '**'}", "Makefile", "deny 1001"),
        ("fs.write", "{pattern: './*/Makefile'}", "a/Makefile", "allow r"),
        ("fs.write", "{pattern: './.vscode/*'}", ".vscode/a", "deny 1001"),
        ("fs.write", "{pattern: './.vscode/a'}", ".vscode/a", "allow r"),
        ("fs.write", "{pattern: './*.pth'}", "a.pth", "deny 1001"),
    ],
)
def test_paths_and_floors(tool: str, want: str, path: str, expected: str) -> None:
    args = {"path": path} | ({"content": ""} if tool == "fs.write" else {})
    assert answer(only("allow", tool, f"{{path: {want}}}"), tool, args) == expected


@pytest.mark.parametrize(
    ("action", "want", "url", "expected"),
    [
        ("allow", "{domains: []}", "https://a.b/", "deny 1002"),
        ("allow", "{domains: [b.c]}", "https://a.b.c/", "deny 1002"),
        ("deny", "{domains: [b.c]}", "ftp://a.b.c:2121/", "deny 1002 r"),
        ("allow", "{domains: ['10.0.0.1']}", "http://10.0.0.1/", "deny 1002"),
        ("allow", "{domains: ['10.0.0.1'], private_networks: allow}", "http://10.0.0.1/", "allow r"),
        ("allow", "{pattern: 'https://a.b:8080/x/**'}", "https://a.b:8080/x/y/z", "allow r"),
        ("allow", "{pattern: 'https://a.b/x/*'}", "https://a.b/x/y%2fz", "allow r"),
        ("allow", "{pattern: 'https://a.b/x/*/z'}", "https://a.b/x/y%2fz", "deny 1002"),
        ("allow", "{domains: [a.b], query: {required: [q]}}", "https://a.b/?p=1", "deny 1002"),
    ],
)
def test_urls(action: str, want: str, url: str, expected: str) -> None:
    assert answer(only(action, "http.get", f"{{url: {want}}}"), "http.get", {"url": url}) == expected


@pytest.mark.parametrize(
    ("action", "want", "command", "expected"),
    [
        ("allow", "{pattern: 'git log *'}", "git log a/b", "allow r"),
        ("allow", "{pattern: 'git log *'}", "git log --output=x", "deny 1003"),
        ("allow", "{pattern: 'git log -*'}", "git log --output=x", "allow r"),
        ("allow", "{pattern: 'git show -* -- *'}", "git show -p -- -x", "allow r"),
        ("allow", "{pattern: [ls, '**']}", "ls", "allow r"),
        ("allow", "{pattern: 'bin/x a'}", "./bin/x a", "allow r"),
        ("allow", "{pattern: '*'}", "./x", "deny 1003"),
        ("allow", "{executables: [rm], deny_tokens: ['-rf']}", "rm -rf", "deny 1004"),
        ("deny", "{pattern: 'git push'}", "git push -f", "deny 1003 r"),
        ("deny", "{pattern: 'git push'}", "./bin/git push", "deny 1003 r"),
        ("deny", "{pattern: '* --force'}", "ls --force", "deny 1003 r"),
    ],
)
def test_commands(action: str, want: str, command: str, expected: str) -> None:
    args = {"command": command.split(" ")}
    assert answer(only(action, "shell.run", f"{{command: {want}}}"), "shell.run", args) == expected


KEYED = """
rules:
  - id: r
    action: allow
    tool: http.get
    secrets: [TOKEN]
    constraints: {url: {domains: [a.b]}, headers: {properties: {X-Key: {type: string}}}}
"""
FROM_AGENT = KEYED.replace("secrets:", "when: {source: [agent]}\n    secrets:")
SECRET = {"url": "https://a.b/", "headers": {"X-Key": "secret:TOKEN"}}
READ, A = "{path: {pattern: '**'}}", {"path": "a"}
USED = LayerState(rules={"r": RuleCount(total=2, recent_ms=(NOW - 60_000, NOW - 1))})


@pytest.mark.parametrize(
    ("policy", "tool", "args", "run", "expected"),
    [
        ("{}", "fs.read", A, {}, "deny 1000"),
        ("{default_action: ask, rules: []}", "fs.read", A, {}, "deny 1000"),
        ("default_action: ask\n" + only("deny", "fs.list"), "fs.read", A, {}, "deny 1000"),
        ("default_action: ask\n" + only("ask", "fs.list"), "fs.read", A, {}, "ask"),
        ("default_action: ask\n" + only("ask", "fs.list"), "fs.read", {"path": "~/.capsule/key"}, {}, "deny 1001"),
        (only("allow", "fs.read", READ), "fs.read", A, {"marker": True}, "deny 1009"),
        (only("allow", "fs.*", READ), "fs.list", A, {}, "allow r"),
        (only("deny", "fs.*"), "fs.read", A, {}, "deny 1000 r"),
        (only("deny", "'*'", more=", when: {tainted: true}"), "fs.read", A, {"tainted": True}, "deny 1008 r"),
        (only("allow", "fs.read", READ, ", when: {source: [plan]}"), "fs.read", A, {}, "deny 1000"),
        (
            only("allow", "fs.read", READ[:-1] + ", offset: {maximum: 3}}"),
            "fs.read",
            A | {"offset": 4},
            {},
            "deny 1009",
        ),
        (only("allow", "fs.read", READ[:-1] + ", max_calls: 2}"), "fs.read", A, {"state": USED}, "deny 1006 r"),
        (only("allow", "fs.read", READ[:-1] + ", max_calls: 3}"), "fs.read", A, {"state": USED}, "allow r"),
        (EXAMPLE, "fs.read", {"path": "docs/a"}, {"state": LayerState(calls=500)}, "deny 1006"),
        (EXAMPLE, "fs.write", {"path": "out/a", "content": ""}, {"tainted": True}, "ask tainted"),
        (EXAMPLE, "fs.write", {"path": "a", "content": ""}, {"tainted": True}, "deny 1001"),
        (KEYED, "http.get", SECRET, {}, "allow r"),
        (KEYED, "http.get", SECRET, {"source": Source.AGENT}, "deny 1009"),
        (FROM_AGENT, "http.get", SECRET, {"source": Source.AGENT}, "allow r"),
        (KEYED, "http.get", SECRET | {"headers": {"X-Key": "Bearer secret:TOKEN"}}, {}, "deny 1009"),
        (KEYED, "http.get", SECRET | {"headers": {"X-Other": "secret:TOKEN"}}, {}, "deny 1009"),
        (KEYED, "http.get", {"url": "https://a.b/secret:TOKEN"}, {}, "deny 1009"),
    ],
)
def test_runs(policy: str, tool: str, args: dict[str, Any], run: dict[str, Any], expected: str) -> None:
    assert answer(policy, tool, args, **run) == expected


@pytest.mark.parametrize(("pattern", "allowed"), [("./docs/**", "deny 1001"), ("./src/**", "allow r")])
def test_a_link_is_allowed_by_what_it_stands_for_and_denied_by_either_name(pattern: str, allowed: str) -> None:
    written, real = ("workdir", "docs", "l"), ("workdir", "src", "a")
    link = ConcretePath(argument="path", access=Access.READ, text="docs/l", written=written, real=real)
    want = f"{{path: {{pattern: '{pattern}'}}}}"
    assert answer(only("allow", "fs.read", want), "fs.read", {"path": "docs/l"}, paths=(link,)) == allowed
    assert answer(only("deny", "fs.read", want), "fs.read", {"path": "docs/l"}, paths=(link,)) == "deny 1001 r"


BOXED = """
rules:
  - {id: a, action: allow, tool: shell.run, redact: 'off', sandbox_level: any, constraints:
      {command: {executables: [ls]}, timeout: 5s, sandbox: {read: [.], write: [out], network: allow}}}
  - {id: b, action: allow, tool: shell.run, sandbox_level: landlock, constraints:
      {command: {executables: [ls]}, max_output_bytes: 1KiB, sandbox: {read: [docs, ~/x], write: [out]}}}
  - {id: c, action: limit, tool: "*", constraints: {timeout: 500ms}}
"""


def test_the_smallest_limits_and_the_common_sandbox_hold() -> None:
    said = verdict(BOXED, "shell.run", {"command": ["ls"]})
    sandbox = {"read": ("/workdir/docs",), "write": ("/workdir/out",), "network": False, "protected": False}
    assert said.grant == {
        "timeout": 500,
        "max_bytes": inf,
        "max_output_bytes": 1024,
        "redact": "off",
        "secrets": (),
        "later": [],
        "hosts": [],
        "sandbox_level": "landlock",
        "sandbox": sandbox,
    }
    assert said.rule == "a"


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([], ("deny", 1000, None)),
        ([only("allow", "fs.read", READ), only("ask", "fs.read", READ)], ("ask", None, "r")),
        ([only("allow", "fs.read", READ), "{}"], ("deny", 1000, None)),
    ],
)
def test_layers_never_widen(layers: list[str], expected: tuple[str, int | None, str | None]) -> None:
    said = strictest_of(verdict(layer, "fs.read", A) for layer in layers)
    assert (said.effect, said.code, said.rule) == expected


@given(samples(), st.randoms(use_true_random=False))
def test_order_never_decides_anything(sample: Sample, rng: Random) -> None:
    case, rules = Case(*sample), [*sample[0]["rules"]]
    rng.shuffle(rules)
    assert case.decide() == case._replace(document=sample[0] | {"rules": rules}).decide()


@given(samples())
def test_one_deny_more_never_allows_more(sample: Sample) -> None:
    case, rules = Case(*sample), [rule for rule in sample[0]["rules"] if rule["action"] != "deny"]
    one, other = case.decide(), case._replace(document=sample[0] | {"rules": rules}).decide()
    assert EFFECTS.index(one.effect) <= EFFECTS.index(other.effect) or not rules
