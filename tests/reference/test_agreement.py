"""The compiled policy against the naive evaluator that was written from the specification alone."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from math import inf
from random import Random  # noqa: TID251 - seeded, so that a difference can be seen again
from typing import Any

import pytest
from hypothesis import given, settings

from capsule.calls import BUILTIN, Decision, RunState
from capsule.canon import canonical
from capsule.documents import load_text
from capsule.policy import Layer, OnPaper, decide
from capsule.policy.document import read_policy
from reference.alphabet import Document
from reference.cases import Answer
from reference.evaluator import Case, strictest_of
from reference.random_policies import document
from reference.strategies import Sample, sample, samples, state

SAMPLES = 100_000 if os.environ.get("CI") else 10_000
SHARDS = 16


def compiled_rules(policy: Document) -> Any:
    return read_policy(load_text(canonical(policy).decode(), kind="policy", format="json"), BUILTIN)


def compiled_answer(case: Sample) -> Answer:
    policy, call, counters, now_ms, tainted, places = case
    run = RunState(now_ms=now_ms, tainted=tainted, layers=(counters,))
    decision = decide((Layer(compiled_rules(policy), OnPaper(places)),), call, run)
    return Answer(decision.effect, decision.code, decision.rule, _granted(decision))


def _granted(decision: Decision) -> Any:
    grant = decision.grant
    if grant is None:
        return None
    [command] = grant.commands or (None,)
    return {
        "timeout": grant.limits.timeout_ms,
        "max_bytes": inf if grant.limits.max_bytes is None else grant.limits.max_bytes,
        "max_output_bytes": inf if grant.limits.max_output_bytes is None else grant.limits.max_output_bytes,
        "redact": grant.redact,
        "secrets": grant.secrets,
        "later": [(file.argument, file.runs_later) for file in grant.files],
        "hosts": [(url.argument, url.host, url.port) for url in grant.urls],
        "sandbox_level": command.level if command else None,
        "sandbox": asdict(command.sandbox) if command else None,
    }


def shown(case: Sample) -> str:
    return json.dumps(case[0], indent=1) + f"\n{case[1]}\n{case[2:]}"


@pytest.mark.parametrize("shard", range(SHARDS))
def test_both_agree_on_random_policies_calls_and_run_states(shard: int) -> None:
    for seed in range(shard, SAMPLES, SHARDS):
        case = sample(Random(seed))
        assert compiled_answer(case) == Case(*case).decide(), f"seed {seed}\n{shown(case)}"


@settings(max_examples=100)
@given(samples())
def test_both_agree_where_hypothesis_looks(case: Sample) -> None:
    assert compiled_answer(case) == Case(*case).decide(), shown(case)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_both_agree_on_what_several_layers_say(shard: int) -> None:
    for seed in range(shard, SAMPLES // 10, SHARDS):
        rng = Random(seed)
        first, call, counters, now_ms, tainted, places = sample(rng)
        other = document(rng, call.tool, places)
        layers = [(first, counters), (other, state(rng))]
        said = strictest_of(Case(policy, call, counts, now_ms, tainted, places).decide() for policy, counts in layers)
        run = RunState(now_ms=now_ms, tainted=tainted, layers=tuple(counts for _, counts in layers))
        compiled = decide(tuple(Layer(compiled_rules(policy), OnPaper(places)) for policy, _ in layers), call, run)
        told = (compiled.effect, compiled.code, compiled.rule)
        assert told == (said.effect, said.code, said.rule), f"seed {seed}\n{layers}\n{call}"
