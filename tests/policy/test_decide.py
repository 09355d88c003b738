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

from capsule.calls import BUILTIN, ConcreteCall, Decision, Effect, Grant, LayerState, Places, RunState, ToolCall
from capsule.canon import canonical
from capsule.documents import load_text
from capsule.policy import Layer, OnPaper, Policy, advance, decide
from capsule.policy.document import read_policy
from capsule.policy.grants import _REDACT_ORDER

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
