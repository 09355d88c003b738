"""Policies as their users hold them: loading, errors with places, examples and tests, explain and check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsule.calls import LayerState, RunState, Source, ToolCall
from capsule.documents import spell
from capsule.errors import PlanError, ToolError
from capsule.policy import OnPaper, Policy, check_policy, explain, resolve_and_decide

B_COM = "https://b.com/x"

SPEC_POLICY = """\
version: 1
name: docs-and-notes
default_action: deny
rules:
  - id: read-docs
    action: allow
    tool: [fs.read, fs.list]
    constraints:
      path: {patterns: ["./docs/**", "~/notes/*.md"]}
      max_bytes: 1MB
    why: The docs are public.
    examples: {match: [{path: ./docs/a/b.md}], no_match: [{path: ./.env}]}
  - {action: deny, tool: "*", constraints: {paths: {pattern: "**/secrets"}}}
  - action: allow
    tool: http.get
    constraints:
      url: {domains: [api.github.com, "*.python.org"]}
      rate_limit: {requests_per_minute: 30}
      timeout: 20s
  - action: allow
    tool: shell.run
    constraints: {command: {patterns: ["git status", "git log **"]}, timeout: 10s, sandbox: {read: ["."]}}
  - {action: allow, tool: fs.write, constraints: {path: {pattern: "./out/**"}}}
  - {action: ask, tool: fs.write, when: {tainted: true}}
  - {action: limit, tool: "*", constraints: {max_calls: 200}}
limits: {calls: 500, wall_time: 10m}
tests:
  - {tool: fs.read, args: {path: ./docs/a.md}, expect: allow}
  - {tool: fs.read, args: {path: ./docs/secrets/k}, expect: deny, code: 1001}
"""


@pytest.mark.parametrize(
    ("tool", "args", "tainted", "expected"),
    [
        ("fs.read", {"path": "docs/a.md"}, False, "allow"),
        ("fs.read", {"path": "~/notes/a.md"}, False, "allow"),
        ("fs.read", {"path": "docs/.env"}, False, "deny 1001"),
        ("fs.read", {"path": "docs/../.env"}, False, "deny 1001"),
        ("fs.read", {"path": "/etc/passwd"}, False, "deny 1001"),
        ("fs.list", {"path": "docs"}, False, "allow"),
        ("fs.read", {"path": "docs"}, False, "deny 1001"),
        ("fs.write", {"path": "out/x", "content": ""}, False, "allow"),
        ("fs.write", {"path": "out/x", "content": ""}, True, "ask"),
        ("fs.write", {"path": "docs/x", "content": ""}, True, "deny 1001"),
        ("fs.write", {"path": "out/.git/hooks/x", "content": ""}, False, "deny 1001"),
        ("fs.write", {"path": "out/Makefile", "content": ""}, False, "deny 1001"),
        ("http.get", {"url": "https://docs.python.org/3/"}, False, "allow"),
        ("http.get", {"url": "https://python.org/"}, False, "deny 1002"),
        ("http.get", {"url": "http://192.168.1.1"}, False, "deny 1002"),
        ("http.get", {"url": "https://api.github.com/", "headers": {"Authorization": "x"}}, False, "deny 1009"),
        ("shell.run", {"command": ["git", "log", "-p"]}, False, "allow"),
        ("shell.run", {"command": ["git", "push"]}, False, "deny 1003"),
        ("shell.run", {"command": ["git", "status"], "cwd": "."}, False, "deny 1001"),
        ("shell.run", {"command": ["git", "status"], "env": {"A": "b"}}, False, "deny 1009"),
    ],
)
def test_the_policy_of_the_specification(tool: str, args: dict[str, Any], tainted: bool, expected: str) -> None:
    found = Policy.parse(SPEC_POLICY).decide(ToolCall(tool=tool, args=args), tainted=tainted)
    assert " ".join([found.effect.value, *([str(found.code)] if found.code else [])]) == expected


@pytest.mark.parametrize(
    ("rules", "place", "words"),
    [
        ("- {action: permit, tool: fs.read}", "2:13", ["permit", "allow, ask, deny, limit"]),
        ("- {acton: allow, tool: fs.read}", "2:5", ["acton", "did you mean 'action'"]),
        ("- {action: allow, tool: fs.read}", "2:4", ["which path"]),
        ("- {action: allow, tool: fs.read, constraints: {pth: {pattern: a}}}", "2:49", ["pth", "did you mean path"]),
        ("- {action: allow, tool: fs.read, constraints: {path: {patern: a}}}", "2:56", ["patern", "pattern"]),
        ("- {action: allow, tool: fs.read, constraints: {path: {pattern: 'a['}}}", "2:65", ["not closed"]),
        ("- {action: allow, tool: fs.read, constraints: {path: {pattern: '../x'}}}", "2:65", [".."]),
        ("- {action: allow, tool: fs.read, constraints: {path: {pattern: a}, max_bytes: 1XB}}", "2:80", ["1XB"]),
        ("- {action: allow, tool: fs.read, constraints: {path: {pattern: a}, timeout: 20}}", "2:78", ["20s or 20ms"]),
        ("- {action: deny, tool: fs.read, constraints: {max_calls: 1}}", "2:59", ["a deny has no limits"]),
        ("- {action: limit, tool: fs.read}", "2:4", ["names no limit"]),
        (
            "- {action: allow, tool: fs.read, when: {tainted: true}, constraints: {path: {pattern: a}}}",
            "2:51",
            ["tainted"],
        ),
        ("- {action: allow, tool: http.get, constraints: {url: {schemes: [https]}}}", "2:", ["which hosts"]),
        ("- {action: allow, tool: shell.run, constraints: {command: {pattern: 'a ** b'}}}", "2:", ["**"]),
        (
            "- {action: allow, tool: [fs.read, http.get], constraints: {urls: {domains: [a.b]}, colour: {const: 1}}}",
            "2:",
            ["colour"],
        ),
        ("- {action: allow, tool: fs.read, constraints: {path: {pattern: a}, length: {maxmum: 1}}}", "2:", ["maxmum"]),
        ("- {action: limit, tool: shell.run, constraints: {sandbox: {read: ['.']}}}", "2:", ["grants nothing"]),
        (
            "- {action: allow, tool: shell.run, constraints: {command: {pattern: a}, sandbox: {read: ['*']}}}",
            "2:",
            ["literal"],
        ),
        ("- {id: a, action: deny, tool: x}\n - {id: a, action: deny, tool: y}", "3:", ["taken"]),
    ],
)
def test_what_is_wrong_is_named_with_its_place(rules: str, place: str, words: list[str]) -> None:
    with pytest.raises(PlanError) as caught:
        Policy.parse(f"rules:\n {rules}\n", name="policy.yaml")
    error = caught.value
    assert error.code == 3001
    assert f"policy.yaml:{place}" in error.message
    assert [word for word in words if word not in error.message + (error.hint or "")] == []


LISTS = "{a,b}" * 8  # 256 patterns in one


@pytest.mark.parametrize(
    ("place", "tool", "argument", "pattern"),
    [
        ("path.patterns[", "fs.read", "path", f"./%d{LISTS}"),
        ("path.patterns[", "fs.read", "path", "./%d" + "/a" * 2000),
        ("path.patterns[", "fs.read", "path", "./%d{a,b,c,d}" + "x" * 4000),
        ("path.patterns[", "fs.read", "path", "./%d{a,b,c,d,e,f,g}" + f"[{'ab' * 1000}]"),
        ("url", "http.get", "url", f"https://a.com/%d{LISTS}"),
        ("url", "http.get", "url", "https://*.a.com/%d/{a,b}" + "/a" * 1000),
    ],
)
def test_the_patterns_of_a_policy_are_bounded_together(place: str, tool: str, argument: str, pattern: str) -> None:
    patterns = [pattern.replace("%d", str(number)) for number in range(250)]
    rules = [
        {"action": "allow", "tool": tool, "constraints": {argument: {"patterns": half}}}
        for half in (patterns[:20], patterns[20:])
    ]
    with pytest.raises(PlanError, match="more than one policy can hold") as caught:
        Policy.parse(json.dumps({"rules": rules}))
    assert caught.value.code == 3001
    path = caught.value.context["path"]
    assert isinstance(path, tuple)
    assert spell(path).startswith(f"rules[1].constraints.{place}")


def test_trusted_paths_are_bounded_with_the_rules() -> None:
    rules = [{"action": "allow", "tool": "fs.read", "constraints": {"path": {"patterns": [f"./{LISTS}"] * 140}}}]
    trusted = [f"./{LISTS}"] * 120
    Policy.parse(json.dumps({"rules": rules}))
    Policy.parse(json.dumps({"trusted_paths": trusted}))
    with pytest.raises(PlanError, match=r"trusted_paths\[[0-9]+\]: the patterns up to here"):
        Policy.parse(json.dumps({"rules": rules, "trusted_paths": trusted}))


@pytest.mark.parametrize(
    ("tail", "words"),
    [
        ("tests: [{tool: fs.read, args: {path: a}, expect: deny}]", "expected deny, found allow"),
        ("tests: [{tool: fs.read, args: {path: /b}, expect: deny, code: 1002}]", "expected code 1002, found 1001"),
        ("tests: [{tool: fs.red, args: {}, expect: deny}]", "did you mean fs.read"),
    ],
)
def test_a_policy_that_contradicts_its_tests_is_refused(tail: str, words: str) -> None:
    rules = "rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: ./**}}}]"
    with pytest.raises(PlanError, match=words):
        Policy.parse(f"{rules}\n{tail}")


@pytest.mark.parametrize(
    ("examples", "words"),
    [
        ("{match: [{path: /etc/x}]}", "does not match"),
        ("{no_match: [{path: a}]}", "matches it"),
        ("{match: [{colour: a}]}", "no tool of this rule takes"),
    ],
)
def test_a_rule_that_contradicts_its_examples_is_refused(examples: str, words: str) -> None:
    rule = f"{{action: allow, tool: fs.read, constraints: {{path: {{pattern: ./**}}}}, examples: {examples}}}"
    with pytest.raises(PlanError, match=words) as caught:
        Policy.parse(f"rules: [{rule}]", name="p.yaml")
    assert caught.value.message.startswith("p.yaml:1:")


def test_a_file_and_a_text_give_the_same_policy(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(SPEC_POLICY)
    loaded = Policy.load(file)
    assert loaded.digest == Policy.parse(SPEC_POLICY).digest
    assert loaded.file == file


def test_a_rule_that_is_there_twice_is_one_rule() -> None:
    assert len(Policy.parse("rules: [{action: deny, tool: x}, {action: deny, tool: x}]").rules.rules) == 1


def test_ids_come_from_the_digest_and_do_not_depend_on_neighbours() -> None:
    [first, second] = Policy.parse("rules: [{action: deny, tool: x}, {action: deny, tool: y}]").rules.rules
    [alone] = Policy.parse("rules: [{action: deny, tool: y}]").rules.rules
    assert second.id == alone.id
    assert first.id.startswith("deny-x-")


@pytest.mark.parametrize(("call", "code"), [(ToolCall(tool="fs.red"), 2001), (ToolCall(tool="fs.read"), 2002)])
def test_unknown_tools_and_arguments_never_reach_the_policy(call: ToolCall, code: int) -> None:
    with pytest.raises(ToolError) as caught:
        Policy.parse(SPEC_POLICY).decide(call)
    assert caught.value.code == code


def explained(policy: str, tool: str, **args: Any) -> dict[str, Any]:
    loaded = Policy.parse(policy)
    call = loaded.concrete(ToolCall(tool=tool, args=args, source=Source.PLAN), OnPaper())
    found = explain((loaded.bind(OnPaper()),), call, RunState(layers=(LayerState(),)))
    return dict(found.as_json())


def test_explain_is_the_enforcers_answer_with_every_rules_story() -> None:
    found = explained(SPEC_POLICY, "fs.read", path="/etc/passwd")
    assert (found["effect"], found["code"]) == ("deny", 1001)
    assert found["suggestion"] == 'add "/etc/passwd" to the path of rule read-docs'
    stories = {story["rule"]: story["because"] for story in found["rules"]}
    assert stories["read-docs"] == "path: '/etc/passwd' is not covered"
    assert [because for because in stories.values() if because == "it does not name fs.read"] != []


def test_explain_names_the_rule_of_each_limit() -> None:
    assert explained(SPEC_POLICY, "fs.read", path="docs/a")["limits"] == {
        "max_bytes": "read-docs",
        "max_calls": "limit-*-9eb6",
    }
    counted = """[{id: a, action: allow, tool: fs.read, constraints: {path: {pattern: x}, max_calls: 5, timeout: 1s}},
        {id: b, action: limit, tool: "*", constraints: {max_calls: 2, rate_limit: {requests_per_minute: 3}}}]"""
    found = explained(f"{{rules: {counted}, limits: {{calls: 9}}}}", "fs.read", path="x")
    assert found["limits"] == {"timeout": "a", "max_calls": "b", "rate_limit": "b"}


@pytest.mark.parametrize(
    ("constraints", "tool", "args", "because"),
    [
        ("path: {pattern: x}, mode: {enum: [create]}", "fs.write", {"mode": "append"}, "mode: found 'append', allowed"),
        (
            "path: {pattern: x}, content: {maxLength: 0}",
            "fs.write",
            {},
            "content: found 1 characters, allowed: at most 0",
        ),
        ("path: {pattern: x}, length: {maximum: 5}", "fs.read", {}, "length: it is absent"),
        ("path: {pattern: y}", "fs.read", {}, "path: 'x' is not covered"),
        ("path: {pattern: '*'}", "fs.read", {"path": ".env"}, "covered: a name that begins with a dot must be spelled"),
        ("path: {pattern: '*'}", "fs.write", {"path": "Makefile"}, "covered: Makefile is run by the host later"),
    ],
)
def test_explain_says_what_does_not_fit(constraints: str, tool: str, args: dict[str, Any], because: str) -> None:
    policy = f"rules: [{{action: allow, tool: {tool}, constraints: {{{constraints}}}}}]"
    given = {"path": "x", **({"content": "c"} if tool == "fs.write" else {}), **args}
    (story,) = explained(policy, tool, **given)["rules"]
    assert because in story["because"]


def test_explain_does_not_quote_a_credential() -> None:
    rule = """{action: allow, tool: http.get, constraints: {url: {domains: [a.com]},
        headers: {properties: {cookie: {enum: [a=b]}}}}}"""
    (story,) = explained(f"rules: [{rule}]", "http.get", url="https://a.com/", headers={"Cookie": "hunter2"})["rules"]
    assert story["because"] == "headers: this credential does not fit"


def test_an_edit_never_lets_go_of_what_another_rule_holds_an_argument_to() -> None:
    rules = "[{id: a, action: allow, tool: fs.write, constraints: {path: {pattern: x}, content: {maxLength: 3}}}]"
    policy = Policy.parse(f"rules: {rules}")
    suggestion = policy.decide(ToolCall(tool="fs.write", args={"path": "x", "content": "long"})).suggestion
    assert suggestion is not None
    edited = Policy.parse(_edited(rules, suggestion))
    assert edited.decide(ToolCall(tool="fs.write", args={"path": "x", "content": "long"})).effect.value == "allow"
    assert edited.decide(ToolCall(tool="fs.write", args={"path": "x", "content": "other"})).effect.value == "deny"


def test_the_edit_for_a_listing_shows_what_is_there() -> None:
    suggestion = Policy.parse("rules: []").decide(ToolCall(tool="fs.list", args={"path": "docs"})).suggestion
    assert suggestion is not None
    assert '{"pattern": "./docs/**"}' in suggestion


def test_of_several_layers_the_edit_says_which() -> None:
    layers = [Policy.parse(f"{{name: {name}, rules: []}}").bind(OnPaper()) for name in ("pack", "user")]
    call = Policy.parse("rules: []").concrete(ToolCall(tool="fs.read", args={"path": "x"}), OnPaper())
    decision = resolve_and_decide(layers, lambda: call, RunState(layers=(LayerState(), LayerState())))[1]
    assert decision.suggestion is not None
    assert decision.suggestion.endswith(" (in the policy pack)")


@pytest.mark.parametrize(
    ("rules", "tool", "args"),
    [
        ("[]", "fs.read", {"path": "a b/[x]*.md"}),
        ("[]", "fs.list", {"path": "~/notes"}),
        ("[]", "fs.write", {"path": ".git/config", "content": ""}),
        ("[{id: a, action: allow, tool: fs.read, constraints: {path: {pattern: ./x}}}]", "fs.read", {"path": "/y"}),
        ("[{id: a, action: allow, tool: fs.read, constraints: {paths: {pattern: ./x}}}]", "fs.read", {"path": ".env"}),
        (
            "[{id: a, action: allow, tool: fs.read, constraints: {path: {pattern: x}, length: {maximum: 5}}}]",
            "fs.read",
            {"path": "y"},
        ),
        (
            "[{id: a, action: allow, tool: fs.write, constraints: {path: {pattern: x}, mode: {enum: [create]}}}]",
            "fs.write",
            {"path": "x", "content": "", "mode": "append"},
        ),
        (
            "[{id: a, action: allow, tool: fs.write, constraints: {path: {pattern: x}, mode: {enum: [create]}}}]",
            "fs.write",
            {"path": "Makefile", "content": "", "mode": "append"},
        ),
        (
            "[{id: a, action: allow, tool: http.get, constraints: {url: {domains: [a.com]}}}]",
            "http.get",
            {"url": B_COM},
        ),
        (
            "[{id: a, action: allow, tool: http.get, constraints: {url: {domains: [a.com], query: {a: b}}}}]",
            "http.get",
            {"url": f"{B_COM}?c=d"},
        ),
        (
            "[{id: a, action: allow, tool: http.get, constraints: {url: {pattern: https://a.io/x, schemes: [https]}}}]",
            "http.get",
            {"url": "http://a.io/x"},
        ),
        ("[]", "http.get", {"url": B_COM, "headers": {"Authorization": "x", "accept": "y"}}),
        ("[]", "http.get", {"url": "http://127.0.0.1/admin"}),
        ("[]", "shell.run", {"command": ["git", "status"], "cwd": ".", "env": {"A": "b"}}),
        ("[]", "http.get", {"url": "https://example.com/a?b=c"}),
        ("[]", "shell.run", {"command": ["git", "log", "*", "a b"]}),
        ("[]", "http.get", {"url": "https://[2a00:1450::1]:8443/a*b/%7e[x]?q=[1]"}),
        ("[]", "http.get", {"url": "http://[::1]/"}),
        (
            "[{id: a, action: allow, tool: http.get, constraints: {url: {pattern: https://a.io/x}}}]",
            "http.get",
            {"url": "https://[2a00:1450::1]/{a,b}"},
        ),
    ],
)
def test_the_suggested_edit_allows_the_call(rules: str, tool: str, args: dict[str, Any]) -> None:
    policy = Policy.parse(f"rules: {rules}")
    call = ToolCall(tool=tool, args=args)
    suggestion = policy.decide(call).suggestion
    assert suggestion is not None
    assert Policy.parse(_edited(rules, suggestion)).decide(call).effect.value == "allow"


@pytest.mark.parametrize(
    ("tool", "args", "code"),
    [
        ("http.get", {"url": "https://a.io:0/"}, 1002),
        ("http.get", {"url": "https://u:p@a.io/"}, 1002),
        ("fs.read", {"path": "/".join(["*" * 250] * 10)}, 1001),
        ("fs.read", {"path": "a\0"}, 1001),
        ("shell.run", {"command": [""]}, 1003),
    ],
)
def test_where_no_pattern_can_be_written_there_is_no_edit(tool: str, args: dict[str, Any], code: int) -> None:
    """And the answer is the same as without advice."""
    argument = next(iter(args))
    written = "https://none.org/" if tool == "http.get" else "none"
    rules = f"[{{id: a, action: allow, tool: {tool}, constraints: {{{argument}: {{pattern: {written}}}}}}}]"
    decision = Policy.parse(f"rules: {rules}").decide(ToolCall(tool=tool, args=args))
    assert (decision.code, decision.suggestion) == (code, None)


def _edited(rules: str, suggestion: str) -> str:
    """What somebody does who reads the advice: a rule more, or each value where it says."""
    document: dict[str, Any] = yaml.safe_load(f"rules: {rules}")
    if "add the rule " in suggestion:
        document["rules"].append(yaml.safe_load(suggestion.partition("add the rule ")[2]))
        return json.dumps(document)
    edits, _, rule_id = suggestion.removeprefix("add ").rpartition(" of rule ")
    (constraints,) = (rule["constraints"] for rule in document["rules"] if rule["id"] == rule_id)
    for edit in edits.split(" and "):
        value, _, where = edit.rpartition(" to the ")
        if where == "domains":
            constraints["url"]["domains"].append(json.loads(value))
        elif where.startswith("enum of "):
            constraints[where.removeprefix("enum of ")]["enum"].append(json.loads(value))
        else:
            found = constraints[where]
            found["patterns"] = [*found.get("patterns", ()), json.loads(value)]
    return json.dumps(document)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("[]", "denies everything"),
        ("[{action: allow, tool: fs.read, constraints: {path: {pattern: /**}}}]", "more than any one job"),
        ("[{action: allow, tool: fs.read, constraints: {path: {pattern: ./**, hidden: allow}}}]", "reaches .env"),
        (
            "[{action: allow, tool: fs.read, redact: off, constraints: {path: {pattern: ./a}}}]",
            "secrets into the journal",
        ),
        ("[{action: allow, tool: fs.write, constraints: {path: {pattern: ./*, protected: allow}}}]", "no effect"),
        ("[{action: allow, tool: http.get, constraints: {url: {pattern: '**'}}}]", "every public host"),
        ("[{action: deny, tool: shell.run, constraints: {command: {pattern: rm}}}]", "seat belt"),
        ("[{action: allow, tool: fs.read, constraints: {path: {pattern: './src/**.py'}}}]", "inside a name is a *"),
        ("[{action: deny, tool: fs.read, constraints: {path: {pattern: $HOME/x}}}]", "$HOME is a name and no variable"),
        ("[{action: allow, tool: fs.read, constraints: {path: {pattern: ~root/x}}}]", "only ~/ is a home"),
        (
            """[{action: allow, tool: fs.read, constraints: {path: {pattern: a}, max_bytes: 9}},
            {action: limit, tool: fs.*, constraints: {max_bytes: 15}}]""",
            "every rule that allows says a smaller one",
        ),
        (
            """[{id: a, action: limit, tool: [fs.read, fs.list], constraints: {max_bytes: 9}},
            {id: b, action: limit, tool: fs.read, constraints: {max_bytes: 10}}]""",
            "its max_bytes is never reached: a holds",
        ),
        ("[{action: deny, tool: fs.wirte}]", "no tool is called fs.wirte; did you mean fs.write?"),
        ("[{action: deny, tool: [fs.read, f.*]}]", "no tool is called f.*"),
        ("[{action: allow, tool: fs.read, constraints: {path: {pattern: '/*/**'}}}]", "more than any one job"),
        (
            "[{action: allow, tool: fs.write, constraints: {path: {pattern: .git/config, protected: allow}}}]",
            "be changed",
        ),
        (
            "[{action: allow, tool: http.get, constraints: {url: {domains: [10.0.0.1], private_networks: allow}}}]",
            "a cloud's metadata",
        ),
        ("[{action: allow, tool: shell.run, constraints: {command: {executables: [git, bash]}}}]", "bash runs other"),
        ("[{action: ask, tool: shell.run, constraints: {command: {pattern: '/bin/find **'}}}]", "find runs other"),
        ("[{action: allow, tool: shell.run, constraints: {command: {pattern: '**'}}}]", "every program there is"),
        (
            "[{action: allow, tool: shell.run, constraints: {command: {pattern: ls}, sandbox: {read: [/]}}}]",
            "sandbox.read: / holds more",
        ),
        (
            """[{action: allow, tool: shell.run, constraints: {command: {pattern: ls},
            sandbox: {read: [.], network: allow}}}]""",
            "send them anywhere",
        ),
        (
            """[{id: a, action: allow, tool: fs.read, constraints: {path: {pattern: a},
            rate_limit: {requests_per_minute: 50}}},
            {id: b, action: limit, tool: fs.*, constraints: {rate_limit: {requests_per_minute: 5}}}]""",
            "its rate_limit is never reached: b",
        ),
        ("[{action: allow, tool: fs.read, constraints: {path: {patterns: []}}}]", "matches nothing"),
        (
            """[{id: a, action: allow, tool: fs.read, constraints: {path: {pattern: a}, max_bytes: 9}},
            {id: b, action: limit, tool: fs.*, constraints: {max_bytes: 5}}]""",
            "never reached: b",
        ),
    ],
)
def test_check_remarks_what_is_dangerous_or_says_nothing(rules: str, words: str) -> None:
    remarks = check_policy(Policy.parse(f"rules: {rules}"))
    assert [remark for remark in remarks if words in remark.message] != []


def test_what_each_rule_counts_for_itself_adds_up() -> None:
    allow = "{{id: {0}, action: allow, tool: fs.read, constraints: {{path: {{pattern: {0}}}, max_calls: 60}}}}"
    limit = "{action: limit, tool: fs.read, constraints: {max_calls: 100}}"
    assert check_policy(Policy.parse(f"rules: [{allow.format('a')}, {allow.format('b')}, {limit}]")) == []


def test_check_has_nothing_to_say_of_a_plain_policy() -> None:
    plain = "rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: ./docs/**}}}]"
    assert check_policy(Policy.parse(plain)) == []
