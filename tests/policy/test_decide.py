"""Properties of deciding, over random policies, calls and run states."""

from __future__ import annotations

from dataclasses import replace
from random import Random  # noqa: TID251 - a type, and a seeded source of permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.random_policies import TOOLS
from reference.random_policies import document as random_document
from reference.strategies import Sample, samples

from capsule.calls import (
    BUILTIN,
    Components,
    ConcreteCall,
    Decision,
    Effect,
    Grant,
    LayerState,
    Places,
    RunState,
    ToolCall,
)
from capsule.canon import canonical
from capsule.documents import load_text
from capsule.errors import PlanError
from capsule.policy import Layer, OnPaper, Policy, advance, decide, visible_entries
from capsule.policy.document import read_policy
from capsule.policy.grants import _REDACT_ORDER
from capsule.policy.values import ValueConstraint

STRICTNESS = {Effect.ALLOW: 0, Effect.ASK: 1, Effect.DENY: 2}


def layer_of(document: Any, places: Places) -> Layer:
    text = canonical(document).decode()
    return Layer(read_policy(load_text(text, kind="policy", format="json"), BUILTIN), OnPaper(places))


def answer(document: Any, case: Sample) -> Decision:
    _, call, counters, now_ms, tainted, places = case
    state = RunState(now_ms=now_ms, tainted=tainted, layers=(counters,))
    return decide((layer_of(document, places),), call, state)


def is_within(narrow: Grant | None, wide: Grant | None) -> bool:
    """Whether a grant gives nothing that the other does not."""
    if narrow is None or wide is None:
        return narrow is None
    pairs = [
        (narrow.limits.timeout_ms, wide.limits.timeout_ms),
        (narrow.limits.max_bytes, wide.limits.max_bytes),
        (narrow.limits.max_output_bytes, wide.limits.max_output_bytes),
    ]
    if any(mine is None or mine > theirs for mine, theirs in pairs if theirs is not None):
        return False
    if _REDACT_ORDER.index(narrow.redact) < _REDACT_ORDER.index(wide.redact):
        return False
    for mine, theirs in zip(narrow.commands, wide.commands, strict=True):
        for tree in (*mine.sandbox.read, *mine.sandbox.write):
            trees = theirs.sandbox.read + theirs.sandbox.write
            if not any(f"{tree}/".startswith(f"{other}/") for other in trees):
                return False
        if mine.sandbox.network > theirs.sandbox.network or mine.sandbox.protected > theirs.sandbox.protected:
            return False
    return narrow.files == wide.files and {url.host for url in narrow.urls} <= {url.host for url in wide.urls}


def allows_no_more(after: Decision, before: Decision) -> bool:
    return STRICTNESS[after.effect] >= STRICTNESS[before.effect] and is_within(after.grant, before.grant)


@given(samples(), st.randoms(use_true_random=False))
def test_a_deny_or_a_limit_that_is_added_never_allows_more(case: Sample, rng: Random) -> None:
    donor = random_document(rng, rng.choice(TOOLS), case[-1])
    added = [rule for rule in donor.get("rules", []) if rule["action"] in ("deny", "limit")]
    added = [{**rule, "id": f"added-{number}"} for number, rule in enumerate(added)]
    more = {**case[0], "rules": [*case[0].get("rules", []), *added]}
    assert allows_no_more(answer(more, case), answer(case[0], case))


@given(samples(), st.randoms(use_true_random=False))
def test_the_order_of_rules_decides_nothing(case: Sample, rng: Random) -> None:
    rules = list(case[0].get("rules", []))
    rng.shuffle(rules)
    assert answer({**case[0], "rules": rules}, case) == answer(case[0], case)


@given(samples(), st.randoms(use_true_random=False))
def test_a_layer_never_widens(case: Sample, rng: Random) -> None:
    document, call, counters, now_ms, tainted, places = case
    other = layer_of(random_document(rng, call.tool, places), places)
    state = RunState(now_ms=now_ms, tainted=tainted, layers=(counters, LayerState()))
    assert allows_no_more(decide((layer_of(document, places), other), call, state), answer(document, case))


@given(samples())
def test_without_a_layer_everything_is_denied(case: Sample) -> None:
    found = decide((), case[1], RunState(layers=()))
    assert (found.effect, found.code, found.grant) == (Effect.DENY, 1000, None)


@given(samples())
def test_a_marker_denies_whatever_the_rules_say(case: Sample) -> None:
    found = decide((layer_of(case[0], case[-1]),), replace(case[1], marker=True), RunState())
    assert (found.effect, found.code) == (Effect.DENY, 1009)


class Exploding:
    """A path that is not what it says: whoever looks at it raises."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError("boom")


def test_an_exception_anywhere_inside_is_a_deny() -> None:
    policy = Policy.parse("rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: ./**}}}]")
    call = policy.concrete(ToolCall(tool="fs.read", args={"path": "a"}), OnPaper())
    broken = replace(call, paths=(Exploding(),))  # type: ignore[arg-type]
    found = decide((policy.bind(OnPaper()),), broken, RunState())
    assert (found.effect, found.code, found.grant) == (Effect.DENY, 1000, None)
    assert "boom" in found.reason


COUNTED = """
rules:
  - {id: a, action: allow, tool: fs.read, constraints: {path: {pattern: ./**}, rate_limit: {requests_per_minute: 2}}}
  - {id: l, action: limit, tool: fs.read, constraints: {max_calls: 3}}
limits: {calls: 5}
"""


def concrete(policy: Policy, tool: str, **args: Any) -> ConcreteCall:
    return policy.concrete(ToolCall(tool=tool, args=args), OnPaper())


def test_counters_go_up_with_what_is_let_through_and_a_rate_recovers() -> None:
    policy = Policy.parse(COUNTED)
    layers = (policy.bind(OnPaper()),)
    call = concrete(policy, "fs.read", path="a")
    state, seen = RunState(), []
    for now_ms in (0, 10, 20, 60_000, 120_001):
        state = replace(state, now_ms=now_ms)
        found = decide(layers, call, state)
        seen.append((found.effect.value, found.code, found.rule, found.retry_after_ms))
        if found.effect is Effect.ALLOW:
            state = advance(state, found, now_ms=now_ms)
    assert seen == [
        ("allow", None, "a", None),
        ("allow", None, "a", None),
        ("deny", 1006, "a", 59_980),
        ("allow", None, "a", None),
        ("deny", 1006, "l", None),
    ]
    assert state.layers[0].calls == 3


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        (["allow ./docs/**", "allow ./**"], ("allow", None)),
        (["allow ./docs/**", "allow ./out/**"], ("deny", 1001)),
        (["allow ./docs/**", "ask ./docs/**"], ("ask", None)),
        (["ask ./docs/**", "ask ./docs/**"], ("ask", None)),
        (["allow ./docs/**", "nothing"], ("deny", 1000)),
    ],
)
def test_layers_decide_alone_and_the_strictest_holds(layers: list[str], expected: tuple[str, int | None]) -> None:
    def policy(text: str) -> Policy:
        action, _, pattern = text.partition(" ")
        rule = f"{{action: {action}, tool: fs.read, constraints: {{path: {{pattern: {pattern}}}}}}}" if pattern else ""
        return Policy.parse(f"rules: [{rule}]")

    policies = [policy(text) for text in layers]
    call = concrete(policies[0], "fs.read", path="docs/a.md")
    state = RunState(layers=tuple(LayerState() for _ in policies))
    found = decide([each.bind(OnPaper()) for each in policies], call, state)
    assert (found.effect.value, found.code) == expected


def test_limits_of_layers_are_each_with_its_default_and_the_smallest_holds() -> None:
    wide = Policy.parse(
        "rules: [{id: w, action: allow, tool: fs.read, constraints: {path: {pattern: ./**}, max_bytes: 90MB}}]"
    )
    silent = Policy.parse("rules: [{id: s, action: allow, tool: fs.read, constraints: {path: {pattern: ./**}}}]")
    call = concrete(wide, "fs.read", path="a")
    state = RunState(layers=(LayerState(), LayerState()))
    alone = decide((wide.bind(OnPaper()),), call, RunState())
    both = decide((wide.bind(OnPaper()), silent.bind(OnPaper())), call, state)
    assert alone.grant is not None
    assert both.grant is not None
    assert (alone.grant.limits.max_bytes, alone.limit_rules) == (90_000_000, {"max_bytes": "w"})
    assert (both.grant.limits.max_bytes, both.limit_rules) == (10 * 1024 * 1024, {})


def _by_layers(tool: str, args: dict[str, Any], *rules: str) -> Decision:
    policies = [Policy.parse(f"rules: [{rule}]") for rule in rules]
    call = concrete(policies[0], tool, **args)
    state = RunState(layers=tuple(LayerState() for _ in policies))
    return decide([policy.bind(OnPaper()) for policy in policies], call, state)


def test_what_loosens_needs_every_layer() -> None:
    off = "{action: allow, tool: fs.read, constraints: {path: {pattern: a}}, redact: off}"
    silent = off.replace(", redact: off", "")
    for rules, redact in (((off,), "off"), ((off, off), "off"), ((off, silent), "secrets"), ((silent, off), "secrets")):
        grant = _by_layers("fs.read", {"path": "a"}, *rules).grant
        assert grant is not None
        assert grant.redact == redact
    private = "{action: allow, tool: http.get, constraints: {url: {domains: [box.example], private_networks: allow}}}"
    public = private.replace(", private_networks: allow", "")
    for rules, reached in (((private,), True), ((private, private), True), ((private, public), False)):
        grant = _by_layers("http.get", {"url": "https://box.example/"}, *rules).grant
        assert grant is not None
        assert grant.urls[0].private_networks is reached


def test_on_a_volume_that_folds_a_deny_sees_every_spelling() -> None:
    policy = Policy.parse(
        """rules:
        - {action: allow, tool: "fs.*", constraints: {paths: {pattern: "./**"}}}
        - {action: deny, tool: "*", constraints: {paths: {pattern: ./secrets}}}"""
    )
    layer = policy.bind(OnPaper())
    for folded, effect in ((False, Effect.ALLOW), (True, Effect.DENY)):
        call = concrete(policy, "fs.read", path="SECRETS/k")
        call = replace(call, paths=(replace(call.paths[0], folded=folded),))
        assert decide((layer,), call, RunState()).effect is effect


class _Folding(OnPaper):
    def folds(self, real: Components) -> bool:
        return True


def test_a_listing_on_such_a_volume_hides_every_spelling() -> None:
    policy = Policy.parse(
        """rules:
        - {action: allow, tool: fs.list, constraints: {path: {pattern: "./**"}}}
        - {action: deny, tool: "*", constraints: {paths: {pattern: ./secrets}}}"""
    )
    for world, shown in ((OnPaper(), True), (_Folding(), False)):
        visible = visible_entries((policy.bind(world),), concrete(policy, "fs.list", path="."), RunState(), world)
        assert visible(("workdir", "Secrets")) is shown
        assert visible(("workdir", "docs"))


def test_a_rule_for_another_source_is_not_said_to_be_missing() -> None:
    rule = "{action: allow, tool: fs.read, when: {source: [plan]}, constraints: {path: {pattern: a}}}"
    assert _by_layers("fs.read", {"path": "a"}, rule).code == 1000
    said = Policy.parse(f"rules: [{rule}]").decide(ToolCall(tool="fs.read", args={"path": "a"}))
    assert said.reason == "no rule names fs.read for source api"


@pytest.mark.parametrize("name", ["fs.rea?", "fs.[r]ead", "{fs.read,fs.write}", "fs.read ", "", "fs.réad"])
@pytest.mark.parametrize("action", ["deny", "allow", "ask"])
def test_f5_a_name_that_no_tool_can_have_is_refused(name: str, action: str) -> None:
    constraints = "" if action == "deny" else ", constraints: {path: {pattern: a}}"
    with pytest.raises(PlanError, match=r"\* as the only wildcard|at least 1"):
        Policy.parse(f"rules: [{{action: {action}, tool: '{name}'{constraints}}}]")


@pytest.mark.parametrize("tool", ["[]", "mcp.other.*", "FS.READ"])
def test_rules_for_tools_that_are_not_there_load_and_grant_nothing(tool: str) -> None:
    rules = f"[{{action: allow, tool: {tool}, constraints: {{path: {{pattern: ./**}}}}}}]"
    assert Policy.parse(f"rules: {rules}").decide(ToolCall(tool="fs.read", args={"path": "a"})).code == 1000


def test_f5_an_argument_that_is_named_twice_is_refused() -> None:
    twice = "{path: {pattern: './secrets/**'}, args.path: {pattern: './**'}}"
    with pytest.raises(PlanError, match="path says the same argument already"):
        Policy.parse(f"rules: [{{action: deny, tool: fs.read, constraints: {twice}}}]")


@pytest.mark.parametrize(("action", "answer"), [("deny", 1009), ("ask", None), ("limit", None)])
def test_f4_what_takes_too_long_to_check_is_denied(action: str, answer: int | None) -> None:
    """However large a caller makes a value, no rule is got past by it."""
    words = [f"w{number}" for number in range(40)]
    limits = ", max_calls: 1" if action == "limit" else ""
    policy = Policy.parse(
        f"""rules:
        - {{action: allow, tool: http.get, constraints: {{url: {{domains: [example.com]}}}}}}
        - action: {action}
          tool: http.get
          constraints: {{headers: {{required: [x-debug], additionalProperties: {{enum: {words}}}}}{limits}}}"""
    )

    def decided(headers: dict[str, str]) -> Decision:
        return policy.decide(ToolCall(tool="http.get", args={"url": "https://example.com/", "headers": headers}))

    assert decided({"x-debug": "w39"}).code == answer
    assert decided({"x-debug": "w39"} | {f"x{number}": "w39" for number in range(60_000)}).code == 1000


@pytest.mark.parametrize("argument", ["a\0b", "a\ud800"])
def test_an_argument_that_no_program_can_be_given_is_denied_on_paper_too(argument: str) -> None:
    allow = "{action: allow, tool: shell.run, constraints: {command: {pattern: 'git log *'}}}"
    call = concrete(Policy.parse("rules: []"), "shell.run", command=["git", "log", "a"])
    world = OnPaper()
    command = world.command(("git", "log", argument), argument="command", search=())
    decision = decide((Policy.parse(f"rules: [{allow}]").bind(world),), replace(call, commands=(command,)), RunState())
    assert decision.code == 1003


def test_a_decision_on_paper_that_fails_says_it_was_on_paper() -> None:
    call = ToolCall(tool="fs.read", args={"path": "a"}, source="nobody")  # type: ignore[arg-type]
    decision = Policy.parse("rules: []").decide(call)
    assert (decision.code, decision.resolved) == (1000, "paper")


@pytest.mark.parametrize(("action", "held"), [("allow", 1), ("deny", 0)])
def test_a_rule_for_tools_that_are_not_there_grants_nothing_and_bars_all(action: str, held: int) -> None:
    rule = f"{{action: {action}, tool: x.y, constraints: {{mode: {{enum: [x]}}}}}}"
    [read] = Policy.parse(f"rules: [{rule}]").rules.rules
    constraints = [constraint for _, constraint in (*read.grants, *read.bars)]
    assert len(constraints) == held
    assert all(isinstance(each, ValueConstraint) and each.mismatch("x") is not None for each in constraints)
