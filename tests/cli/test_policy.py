"""`capsule policy check | explain | decide | test`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typed import Typed

SECRETIVE = """\
rules:
  - {id: all, action: allow, tool: fs.read, constraints: {path: {pattern: "/**", hidden: allow}, max_bytes: 2MB}}
  - {id: small, action: limit, tool: fs.read, constraints: {max_bytes: 1MB, timeout: 5s}}
  - {id: none, action: deny, tool: "*", constraints: {paths: {pattern: "**/secrets"}}, why: They are secret.}
"""

EXAMPLES = """\
rules:
  - id: docs
    action: allow
    tool: fs.read
    constraints: {path: {pattern: "./docs/**"}}
    examples: {match: [{path: docs/a}], no_match: [{path: docs/b}]}
tests:
  - {tool: fs.read, args: {path: docs/a}, expect: allow}
  - {tool: fs.read, args: {path: out/a}, expect: deny, code: 1002}
"""


@pytest.fixture
def secretive(project: Path) -> str:
    (project / "secretive.yaml").write_text(SECRETIVE)
    return "secretive.yaml"


def test_check_remarks_on_what_is_dangerous(capsule: Typed, secretive: str) -> None:
    ran = capsule("policy", "check", secretive)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "danger: all: /** grants more than any one job needs; name the directories",
        "danger: all: hidden: allow on /** reaches .env, .ssh and the like",
        "note: all: its max_bytes is never reached: small holds a smaller one for every call",
        "secretive.yaml: valid, 3 rules, 3 remarks",
    ]
    as_json = capsule("policy", "check", secretive, "--json").json
    assert (as_json["valid"], as_json["rules"]) == (True, 3)
    assert [remark["level"] for remark in as_json["remarks"]] == ["danger", "danger", "note"]


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["fs.read", "path=docs/a.md"], "allow: rule read allows it"),
        (["fs.read", 'path:="docs/a.md"', "offset:=3"], "allow: rule read allows it"),
        (["fs.read", "path=docs/a=b.md"], "allow: rule read allows it"),
        (["fs.read", "path=/etc/passwd"], "deny 1001: no rule allows /etc/passwd"),
        (["fs.read", "path=docs/../.env"], "deny 1001: no rule allows ./.env"),
        (["fs.write", "path=desk/a", "content=x"], "ask: rule sign asks"),
        (["shell.run", "--", "git", "log", "--oneline", "a=b", "--", "docs"], "allow: rule git allows it"),
        (["shell.run", "--", "git", "push"], 'deny 1003: no rule allows ["git", "push"]'),
        (["shell.run", "cwd=.", "--", "git", "log"], "deny 1001: no rule allows ."),
        (["shell.run", "--", "--version"], 'deny 1003: no rule allows ["--version"]'),
        (["http.get", "url=https://example.com/"], "deny 1000: no rule names http.get"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_explain_answers_as_the_gate_would(capsule: Typed, words: list[str], first: str) -> None:
    for command in (["policy", "explain", "--policy", "policy.yaml", *words], _policy_last(words)):
        ran = capsule(*command)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.splitlines()[0] == first


def _policy_last(words: list[str]) -> list[str]:
    """Options may stand anywhere before the `--`."""
    end = words.index("--") if "--" in words else len(words)
    return ["policy", "explain", *words[:end], "--policy", "policy.yaml", *words[end:]]


def test_explain_tells_of_every_rule_and_of_limits(capsule: Typed, secretive: str) -> None:
    ran = capsule("policy", "explain", "--policy", secretive, "fs.read", "path=a.md")
    assert ran.out.splitlines() == [
        "allow: rule all allows it",
        "  max_bytes 1000000 bytes from small",
        "  timeout 5000 ms from small",
        "  ✓ all (allow): it matches",
        "  ✓ small (limit): it matches",
        "  – none (deny): paths: 'a.md' is not covered",
    ]


def test_explain_offers_the_edit_that_allows(capsule: Typed, project: Path) -> None:
    (project / "none.yaml").write_text("rules: []\n")
    call = ["fs.read", "path=docs/a [1].md"]
    ran = capsule("policy", "explain", "--policy", "none.yaml", *call)
    offered = ran.out.splitlines()[1].removeprefix("  to allow: add the rule ")
    (project / "some.yaml").write_text(f"rules:\n  - {offered}\n")
    assert capsule("policy", "explain", "--policy", "some.yaml", *call).out.startswith("allow: ")
    assert capsule("policy", "explain", "--policy", "some.yaml", "fs.read", "path=docs/a 1.md").out.startswith("deny ")


@pytest.mark.parametrize(
    ("options", "effect"),
    [([], "allow"), (["--tainted"], "deny"), (["--source", "agent"], "ask"), (["--workdir", "/else"], "allow")],
)
def test_explain_takes_what_a_decision_depends_on(
    capsule: Typed, project: Path, options: list[str], effect: str
) -> None:
    (project / "when.yaml").write_text(
        'rules:\n  - {action: allow, tool: fs.read, constraints: {path: {pattern: "./**"}}}\n'
        "  - {action: deny, tool: fs.read, when: {tainted: true}}\n"
        "  - {action: ask, tool: fs.read, when: {source: agent}}\n"
    )
    ran = capsule("policy", "explain", "--policy", "when.yaml", "fs.read", "path=a", "--json", *options)
    assert ran.json["effect"] == effect


def test_explain_on_disk_follows_links(capsule: Typed, project: Path) -> None:
    (project / "docs" / "link.md").symlink_to("/etc/hostname")
    words = ["policy", "explain", "--policy", "policy.yaml", "fs.read", "path=docs/link.md", "--json"]
    assert capsule(*words).json["effect"] == "allow"
    on_disk = capsule(*words, "--on-disk").json
    assert (on_disk["effect"], on_disk["resolved"]) == ("deny", "disk")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fs.read", "docs/a.md"], "found 'docs/a.md', allowed: NAME=TEXT or NAME:=JSON [2002]"),
        (["fs.read", "path:=docs"], "path:1:1: not valid JSON"),
        (["fs.read", "path:=7"], "fs.read: path: found 7, allowed: text [2002]"),
        (["fs.read", "pth=a"], "did you mean 'path'?"),
        (["fs.read"], "fs.read: missing key 'path' [2002]"),
        (["fs.read", "--", "ls"], "unknown key 'command'"),
        (["fs.reed", "path=a"], "no tool is called 'fs.reed' [2001]"),
        (["fs.read", "path=a", "--source", "me"], "'me' is not one of 'api', 'plan'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_call_that_is_none_is_exit_2(capsule: Typed, words: list[str], message: str) -> None:
    ran = capsule("policy", "explain", "--policy", "policy.yaml", *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err.splitlines()[0]


@pytest.mark.parametrize(("path", "code"), [("docs/a.md", 0), (".env", 3)])
def test_exit_code_is_asked_for(capsule: Typed, project: Path, path: str, code: int) -> None:
    explain = ["policy", "explain", "--policy", "policy.yaml", "fs.read", f"path={path}"]
    (project / "calls.jsonl").write_text(json.dumps({"tool": "fs.read", "args": {"path": path}}))
    decide = ["policy", "decide", "--policy", "policy.yaml", "--calls", "calls.jsonl"]
    for words in (explain, decide):
        assert capsule(*words).code == 0
        assert capsule(*words, "--exit-code").code == code


def test_decide_is_one_run_with_one_answer_a_line(capsule: Typed, project: Path) -> None:
    (project / "few.yaml").write_text(
        'rules:\n  - {id: few, action: allow, tool: fs.read, constraints: {path: {pattern: "./**"}, max_calls: 1}}\n'
    )
    calls = [{"tool": "fs.read", "args": {"path": "a"}}] * 2 + [{"tool": "fs.reed"}, {"tool": "fs.read", "args": {}}]
    (project / "calls.jsonl").write_text("\n\n".join(map(json.dumps, calls)))
    ran = capsule("policy", "decide", "--policy", "few.yaml", "--calls", "calls.jsonl")
    decisions = [json.loads(line) for line in ran.out.splitlines()]
    assert [decision["code"] for decision in decisions] == [None, 1006, 2001, 2002]
    assert [sorted(decision) for decision in decisions] == [
        ["code", "effect", "flags", "kind", "reason", "resolved", "rule", "suggestion"]
    ] * 4


def test_decide_reads_standard_input(process: Typed) -> None:
    call = '{"tool": "fs.read", "args": {"path": "docs/a.md"}}\n'
    ran = process("policy", "decide", "--policy", "policy.yaml", "--calls", "-", stdin=call)
    assert (ran.code, ran.json["effect"], ran.json["rule"]) == (0, "allow", "read")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('\n{"tool": "fs.read",', "calls.jsonl:2:20: not valid JSON"),
        ('{"tool": "fs.read", "arg": {}}', "calls.jsonl:1:21: unknown key 'arg'; did you mean 'args'?"),
        ('\n\n{"tool": 7}', "calls.jsonl:3:10: tool: found 7, allowed: text"),
        ("[]", "calls.jsonl:1:1: found a list, allowed: a mapping"),
        ("{}", "missing key 'tool'"),
        ("\ud800", "calls.jsonl: cannot be read: it is not UTF-8"),
    ],
)
def test_a_line_that_is_no_call_is_named(capsule: Typed, project: Path, text: str, message: str) -> None:
    (project / "calls.jsonl").write_text(text, errors="surrogatepass")
    ran = capsule("policy", "decide", "--policy", "policy.yaml", "--calls", "calls.jsonl")
    assert ran.code == 2
    assert message in ran.err


def test_test_shows_each_sample_and_fails_for_one(capsule: Typed, project: Path) -> None:
    (project / "examples.yaml").write_text(EXAMPLES)
    ran = capsule("policy", "test", "examples.yaml")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "✓ docs: examples.match[0]",
        "✗ docs: examples.no_match[0]: the rule matches it",
        "✓ tests[0]",
        "✗ tests[1]: expected code 1002, found 1001: no rule allows ./out/a",
        "2 held, 2 did not",
    ]
    as_json = capsule("policy", "test", "examples.yaml", "--json")
    assert (as_json.code, as_json.json["passed"], as_json.json["failed"]) == (1, 2, 2)
    assert [sample["held"] for sample in as_json.json["samples"]] == [True, False, True, False]


def test_a_policy_that_contradicts_its_samples_is_refused_elsewhere(capsule: Typed, project: Path) -> None:
    (project / "examples.yaml").write_text(EXAMPLES)
    for words in (["check", "examples.yaml"], ["explain", "--policy", "examples.yaml", "fs.read", "path=a"]):
        ran = capsule("policy", *words)
        assert ran.code == 2
        assert "examples.yaml:6:52: docs: examples.no_match[0]: the rule matches it [3001]" in ran.err
