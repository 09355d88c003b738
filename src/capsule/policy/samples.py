"""A policy's own examples and tests, decided on paper; a policy that contradicts them is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capsule.calls import ConcreteCall, Decision, LayerState, RunState, ToolCall, ToolDefinition
from capsule.canon import Json
from capsule.errors import ToolError
from capsule.policy.decide import decide
from capsule.policy.explain import story_of
from capsule.policy.layer import Layer
from capsule.policy.paper import OnPaper
from capsule.policy.resolve import definition_of, resolve
from capsule.policy.rules import DocumentPath, PolicyRules, PolicyTest, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One example or test and how it came out; `problem` is None where it holds."""

    name: str
    place: DocumentPath
    problem: str | None = None

    def as_json(self) -> dict[str, Json]:
        return {"name": self.name, "held": self.problem is None, "problem": self.problem}


def samples(rules: PolicyRules, definitions: Mapping[str, ToolDefinition]) -> list[Sample]:
    """Every example and test of the policy, decided."""
    world = OnPaper()
    layer = Layer(rules, world)
    found = [sample for rule in rules.rules for sample in _examples(rule, layer, world, definitions)]
    return found + [_test(test, layer, world, definitions) for test in rules.tests]


def _examples(rule: Rule, layer: Layer, world: OnPaper, definitions: Mapping[str, ToolDefinition]) -> list[Sample]:
    found = []
    for key, wanted in (("match", True), ("no_match", False)):
        listed: Sequence[Mapping[str, Json]] = rule.examples.match if wanted else rule.examples.no_match
        for index, args in enumerate(listed):
            place = (*rule.place, "examples", key, index)
            problem = _example_problem(rule, args, layer, world, definitions, wanted=wanted)
            found.append(Sample(name=f"{rule.id}: examples.{key}[{index}]", place=place, problem=problem))
    return found


def _example_problem(
    rule: Rule,
    args: Mapping[str, Json],
    layer: Layer,
    world: OnPaper,
    definitions: Mapping[str, ToolDefinition],
    *,
    wanted: bool,
) -> str | None:
    """An example may leave out what the rule does not speak of, so each tool is tried that takes its arguments."""
    tools = [definition for definition in definitions.values() if rule.names(definition.name)]
    fitting = [call for definition in tools if (call := _concrete(args, definition, world, layer.rules.search))]
    if not fitting:
        return "no tool of this rule takes these arguments"
    matched = any(layer.rule_matches(rule, call) for call in fitting)
    if matched is wanted:
        return None
    if not wanted:
        return "the rule matches it"
    return f"the rule does not match it: {story_of(layer, rule, fitting[0], tainted=True).because}"


_FILLED: Mapping[str, Json] = {"content": "", "command": ["true"], "path": "x", "url": "https://example.com/"}


def _concrete(
    args: Mapping[str, Json], definition: ToolDefinition, world: OnPaper, search: tuple[str, ...]
) -> ConcreteCall | None:
    required = definition.args_schema.get("required", ())
    assert isinstance(required, Sequence)
    filled = {str(name): _FILLED[str(name)] for name in required if name in _FILLED and name not in args}
    if any(name in definition.guards for name in filled):
        return None  # what a rule guards must be in its example
    try:
        return resolve(ToolCall(tool=definition.name, args={**filled, **args}), definition, world, search=search)
    except ToolError:
        return None


def _test(test: PolicyTest, layer: Layer, world: OnPaper, definitions: Mapping[str, ToolDefinition]) -> Sample:
    call = ToolCall(tool=test.tool, args=test.args, source=test.source)
    name = f"tests[{test.place[-1]}]"
    try:
        concrete = resolve(call, definition_of(test.tool, definitions), world, search=layer.rules.search)
    except ToolError as error:
        hint = f"; {error.hint}" if error.hint else ""
        return Sample(name=name, place=test.place, problem=f"{error.message}{hint}")
    state = RunState(tainted=test.tainted, layers=(LayerState(),))
    return Sample(name=name, place=test.place, problem=_difference(test, decide((layer,), concrete, state)))


def _difference(test: PolicyTest, decision: Decision) -> str | None:
    if decision.effect.value != test.expect:
        code = f" {decision.code}" if decision.code is not None else ""
        return f"expected {test.expect}, found {decision.effect.value}{code}: {decision.reason}"
    if test.code is not None and test.code != decision.code:
        return f"expected code {test.code}, found {decision.code}: {decision.reason}"
    return None
