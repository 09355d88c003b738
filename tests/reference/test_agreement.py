"""The compiled policy against the naive evaluator that was written from the specification alone."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from random import Random  # noqa: TID251 - seeded, so that a difference can be seen again
from typing import Any

import pytest
from hypothesis import given, settings

from capsule.calls import BUILTIN, Decision, RunState
from capsule.canon import canonical
from capsule.documents import load_text
from capsule.policy import Layer, OnPaper, decide
from capsule.policy.document import read_policy
from reference import evaluator
from reference.strategies import Sample, sample, samples

SAMPLES = 100_000 if os.environ.get("CI") else 10_000
SHARDS = 8


@dataclass(frozen=True)
class Answer:
    """What both sides say, side by side."""

    effect: str
    code: int | None
    rule: str | None
    grant: Any = None


def compiled_answer(case: Sample) -> Answer:
    document, call, counters, now_ms, tainted, places = case
    rules = read_policy(load_text(canonical(document).decode(), kind="policy", format="json"), BUILTIN)
    state = RunState(now_ms=now_ms, tainted=tainted, layers=(counters,))
    decision = decide((Layer(rules, OnPaper(places)),), call, state)
    return Answer(decision.effect.value, decision.code, decision.rule, _granted(decision))


def _granted(decision: Decision) -> Any:
    grant = decision.grant
    if grant is None:
        return None
    [command] = grant.commands or (None,)
    return {
        "limits": grant.limits,
        "redact": grant.redact,
        "secrets": grant.secrets,
        "later": [(file.argument, file.runs_later) for file in grant.files],
        "hosts": [(url.argument, url.host, url.port) for url in grant.urls],
        "level": command.level if command else None,
        "sandbox": command.sandbox if command else None,
    }


def reference_answer(case: Sample) -> Answer:
    document, call, counters, now_ms, tainted, places = case
    verdict = evaluator.decide(document, call, counters, now_ms=now_ms, tainted=tainted, places=places)
    if verdict.limits is None:
        return Answer(verdict.effect.value, verdict.code, verdict.rule)
    granted = {
        "limits": verdict.limits,
        "redact": verdict.redact,
        "secrets": verdict.secrets,
        "later": [(argument, later) for argument, _, later in verdict.paths],
        "hosts": list(verdict.hosts),
        "level": verdict.level,
        "sandbox": verdict.sandbox if call.commands else None,
    }
    return Answer(verdict.effect.value, verdict.code, verdict.rule, granted)


def shown(case: Sample) -> str:
    return json.dumps(case[0], indent=1) + f"\n{case[1]}\n{case[2:]}"


@pytest.mark.parametrize("shard", range(SHARDS))
def test_both_agree_on_random_policies_calls_and_run_states(shard: int) -> None:
    for seed in range(shard, SAMPLES, SHARDS):
        case = sample(Random(seed))
        assert compiled_answer(case) == reference_answer(case), f"seed {seed}\n{shown(case)}"


@settings(max_examples=100)
@given(samples())
def test_both_agree_where_hypothesis_looks(case: Sample) -> None:
    assert compiled_answer(case) == reference_answer(case), shown(case)
