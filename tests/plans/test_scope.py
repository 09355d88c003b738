"""What templates see while a plan runs, and what is let go of."""

from __future__ import annotations

import gc
import weakref
from collections import UserDict

import pytest

from capsule.calls import CallError, Status
from capsule.canon import Json
from capsule.errors import PlanError
from capsule.plans import Plan, Scope

RUN: dict[str, Json] = {"id": "r1", "workdir": "/w"}


def scope_of(text: str, **inputs: Json) -> tuple[Plan, Scope]:
    plan = Plan.parse(text)
    return plan, Scope(plan, plan.read_inputs(inputs), run=RUN)


def test_all_that_a_template_can_name() -> None:
    plan, scope = scope_of(
        """
        inputs: {owner: {type: string}, files: {type: array, default: [a, b]}}
        variables: {api: "https://x/{{ inputs.owner }}", all: ["{{ api }}/1", {n: "{{ files }}"}]}
        steps:
          - {tool: t, id: first, store_as: got, args: {run: "{{ run.id }}", dir: "{{ run.workdir }}"}}
          - tool: t
            id: each
            foreach: "{{ files }}"
            args: {p: "{{ item }}", o: "{{ owner }}", i: "{{ input.owner }}"}
          - tool: t
            args:
              api: "{{ all }}"
              tag: "{{ got.tags[0] }}"
              same: "{{ steps.first.output.tags.0 }}"
              status: "{{ steps.first.status }}-{{ steps.each.status }}"
              error: "{{ steps.first.error }}"
              each: "{{ steps.each.output }}"
        """,
        owner="me",
    )
    first, each, last = plan.steps
    assert scope.begin(first) is None
    assert scope.args(first) == {"run": "r1", "dir": "/w"}
    scope.keep(first, Status.SUCCESS, {"tags": ["v1"]})
    assert scope.begin(each) == ["a", "b"]
    assert scope.args(each, "a") == {"p": "a", "o": "me", "i": "me"}
    scope.keep(each, Status.SUCCESS, 1)
    scope.keep(each, Status.DENIED, None, CallError(code=1001, message="no"))
    assert scope.begin(last) is None
    assert scope.args(last) == {
        "api": ["https://x/me/1", {"n": ["a", "b"]}],
        "tag": "v1",
        "same": "v1",
        "status": "success-denied",
        "error": None,
        "each": [1, None],
    }


def test_an_input_that_looks_like_a_template_stays_text() -> None:
    plan, scope = scope_of(
        """
        inputs: {x: {type: string}}
        variables: {v: "{{ x }}"}
        steps: [{tool: t, args: {a: "{{ v }} {{ x }}", b: "{{ v }}"}}]
        """,
        x="{{ run.id }}{% if %}",
    )
    scope.begin(plan.steps[0])
    assert scope.args(plan.steps[0]) == {"a": "{{ run.id }}{% if %} {{ run.id }}{% if %}", "b": "{{ run.id }}{% if %}"}


def test_text_that_reads_like_a_list_is_no_list_to_go_over() -> None:
    plan, scope = scope_of(
        "inputs: {x: {type: string}}\nsteps: [{tool: t, foreach: '{{ x }}', args: {a: '{{ item }}'}}]", x="['a', 'b']"
    )
    with pytest.raises(PlanError, match=r"steps\[0\].foreach: the value is no list") as caught:
        scope.begin(plan.steps[0])
    assert caught.value.code == 3003


def test_a_literal_list_of_templates_is_gone_over() -> None:
    plan, scope = scope_of("variables: {v: 1}\nsteps: [{tool: t, foreach: ['{{ v }}', b], args: {a: '{{ item }}'}}]")
    assert scope.begin(plan.steps[0]) == [1, "b"]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("{tool: t, args: {u: ['{{ inputs.gone }}']}}", r"^steps\[0\]\.args\.u\[0\]: `inputs\.gone` is not defined"),
        ("{tool: t, args: {u: '{{ gone }}'}}", r"^steps\[0\]\.args\.u: `gone` is not defined"),
        ("{tool: t, foreach: '{{ gone }}'}", r"^steps\[0\]\.foreach: `gone` is not defined"),
        ("{tool: t, args: {u: '{{ run.id + 1 }}'}}", r"^steps\[0\]\.args\.u: `\+` cannot take text and a number"),
    ],
)
def test_what_cannot_be_rendered_names_its_place(steps: str, message: str) -> None:
    plan, scope = scope_of(f"inputs: {{gone: {{type: array}}}}\nsteps: [{steps}]")
    with pytest.raises(PlanError, match=message) as caught:
        _ = scope.begin(plan.steps[0]) or scope.args(plan.steps[0])
    assert caught.value.code == 3003


def test_a_variable_that_cannot_be_rendered_ends_it_before_the_first_step() -> None:
    with pytest.raises(PlanError, match=r"^<plan>:2:16: variables\.v\.a: `inputs\.x` is not defined") as caught:
        scope_of("inputs: {x: {type: string}}\nvariables: {v: {a: '{{ inputs.x }}'}}\nsteps: [{tool: t}]")
    assert caught.value.code == 3003
    assert caught.value.context["line"] == 2


def test_variables_are_bounded_together() -> None:
    plan = Plan.parse(
        """
        inputs: {x: {type: string}}
        variables:
          a: "{{ x }}{{ x }}{{ x }}"
          b: {same: "{{ a }}"}
          c: ["{{ a }}"]
        steps: [{tool: t}]
        """
    )
    Scope(plan, {"x": "x" * 1024 * 1024}, run=RUN)
    with pytest.raises(
        PlanError, match=r"^<plan>:6:14: variables\.c: the variables up to here are over 16 MiB"
    ) as caught:
        Scope(plan, {"x": "x" * 2 * 1024 * 1024}, run=RUN)
    assert caught.value.code == 3003


def test_a_failed_step_is_seen_as_failed() -> None:
    plan, scope = scope_of(
        """
        steps:
          - {tool: t, id: a, store_as: x, continue_on_error: true}
          - tool: t
            args: {s: "{{ steps.a.status }}", c: "{{ steps.a.error.code }}", x: "{{ x }}", d: "{{ x.y|default('d') }}"}
        """
    )
    scope.begin(plan.steps[0])
    scope.keep(plan.steps[0], Status.ERROR, None, CallError(code=2003, message="failed"))
    scope.begin(plan.steps[1])
    assert scope.args(plan.steps[1]) == {"s": "error", "c": 2003, "x": None, "d": "d"}


FOREACH = """
inputs: {l: {type: array}}
steps:
  - {tool: t, id: a, foreach: "{{ inputs.l }}", store_as: x, continue_on_error: true}
  - {tool: t, args: {x: "{{ x }}", s: "{{ steps.a.status }}"}}
"""


def test_a_foreach_over_nothing_stores_an_empty_list() -> None:
    plan, scope = scope_of(FOREACH, l=[])
    assert scope.begin(plan.steps[0]) == []
    scope.begin(plan.steps[1])
    assert scope.args(plan.steps[1]) == {"x": [], "s": "success"}


def test_a_foreach_without_a_list_has_no_elements_and_an_error() -> None:
    plan, scope = scope_of(FOREACH)
    with pytest.raises(PlanError):
        scope.begin(plan.steps[0])
    scope.keep(plan.steps[0], Status.ERROR, None, CallError(code=3003, message="no list"))
    scope.begin(plan.steps[1])
    assert scope.args(plan.steps[1]) == {"x": [], "s": "error"}


def test_a_step_that_never_ran_is_not_defined() -> None:
    plan, scope = scope_of(FOREACH, l=["a"])
    assert scope.begin(plan.steps[0]) == ["a"]
    scope.begin(plan.steps[1])
    with pytest.raises(PlanError, match="`x` is not defined"):
        scope.args(plan.steps[1])


class Output(UserDict[str, Json]):
    """A mapping that can be seen to go away."""


def test_a_result_is_held_only_while_a_later_template_names_it() -> None:
    plan, scope = scope_of(
        """
        steps:
          - {tool: t, id: unnamed, store_as: u}
          - {tool: t, id: named, store_as: n}
          - {tool: t, id: status_only}
          - {tool: t, args: {a: "{{ n.k }}"}}
          - {tool: t, args: {a: "{{ steps.named.output.k }}", b: "{{ steps.status_only.status }}"}}
          - {tool: t}
        """
    )
    alive = []
    for step in plan.steps[:3]:
        output = Output(k=1)
        alive.append(weakref.ref(output))
        scope.begin(step)
        scope.keep(step, Status.SUCCESS, output)
        del output
    gc.collect()
    assert [reference() is not None for reference in alive] == [False, True, False]
    for step in plan.steps[3:5]:
        scope.begin(step)
        assert scope.args(step)["a"] == 1
    scope.begin(plan.steps[5])
    gc.collect()
    assert alive[1]() is None
