"""`decide` on calls that are concrete already, under policies of ten, a hundred and ten thousand rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bench.place import Place
from bench.rows import Row
from bench.timing import Effort, in_turns, shown
from capsule.calls import ConcreteCall, Effect, LayerState, RunState, ToolCall
from capsule.canon import Json
from capsule.policy import Layer, Policy, decide, on_paper

FEW, SOME, MANY = 10, 100, 10_000
_SECONDS = 1.5
_BATCH = 50
_STATE = RunState(layers=(LayerState(),))


def path_rule(number: int) -> str:
    """Of ten rules one is a deny anywhere, two are allows that begin with a wildcard."""
    if number % 10 == 3:
        return f'- {{action: deny, tool: "*", constraints: {{paths: {{pattern: "**/private{number}"}}}}}}\n'
    pattern = f"./**/*.kind{number}" if number % 10 in (5, 7) else f"./dir{number}/**"
    return f"- {{action: allow, tool: fs.read, constraints: {{path: {{pattern: {pattern}}}}}}}\n"


def host_rule(number: int) -> str:
    if number % 10 == 3:
        return f'- {{action: deny, tool: http.get, constraints: {{url: {{domains: ["*.bad{number}.org"]}}}}}}\n'
    name = f'"*.wild{number}.org"' if number % 10 in (5, 7) else f"api{number}.org"
    return f"- {{action: allow, tool: http.get, constraints: {{url: {{domains: [{name}]}}}}}}\n"


def command_rule(number: int) -> str:
    if number % 10 == 3:
        return f'- {{action: deny, tool: shell.run, constraints: {{command: {{pattern: "bad{number}"}}}}}}\n'
    pattern = f"git *{number} **" if number % 10 in (5, 7) else f"git show{number} **"
    return f'- {{action: allow, tool: shell.run, constraints: {{command: {{pattern: "{pattern}"}}}}}}\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of resource; the rules that its calls meet are among the first ten, or nowhere."""

    name: str
    tool: str
    rule: Callable[[int], str]
    allowed: Sequence[Mapping[str, Json]]
    refused: Sequence[Mapping[str, Json]]

    def calls(self, arguments: Sequence[Mapping[str, Json]]) -> list[ConcreteCall]:
        policy, world = Policy.parse("rules: []"), on_paper(None)
        return [policy.concrete(ToolCall(tool=self.tool, args=args), world) for args in arguments]


KINDS = (
    Kind(
        name="paths",
        tool="fs.read",
        rule=path_rule,
        allowed=[{"path": path} for path in ("dir0/a.md", "dir2/b/c/d.md", "docs/x/y.kind5", "src/z.kind7")],
        refused=[{"path": path} for path in ("dir0/private3/k", "elsewhere/a.md", "/etc/passwd", "docs/.hidden")],
    ),
    Kind(
        name="hosts",
        tool="http.get",
        rule=host_rule,
        allowed=[{"url": url} for url in ("https://api0.org/v1/users", "https://a.b.wild5.org/", "https://api8.org/x")],
        refused=[{"url": url} for url in ("https://www.bad3.org/", "https://nowhere.org/a")],
    ),
    Kind(
        name="commands",
        tool="shell.run",
        rule=command_rule,
        allowed=[{"command": ["git", "show0", "-p"]}, {"command": ["git", "log5", "HEAD"]}],
        refused=[{"command": ["bad3", "x"]}, {"command": ["git", "push"]}],
    ),
)


def policy_text(rules: int, *kinds: Kind) -> str:
    """YAML; the kinds take turns."""
    return "rules:\n" + "".join(kinds[number % len(kinds)].rule(number // len(kinds)) for number in range(rules))


def decision(effort: Effort, place: Place) -> Iterator[Row]:
    many = effort.count(MANY)
    seconds = effort.seconds(_SECONDS)
    for kind in KINDS:
        few_rules, many_rules = _layer(policy_text(FEW, kind)), _layer(policy_text(many, kind))
        for arguments, effect in ((kind.allowed, Effect.ALLOW), (kind.refused, Effect.DENY)):
            calls = kind.calls(arguments)
            _expect(few_rules, many_rules, calls, effect)
            what = f"decide, {kind.name}, {effect}: {many:,} ÷ {FEW} rules"
            yield _growth(what, few_rules, many_rules, calls, seconds)
    yield _one(seconds)


def _layer(text: str) -> Layer:
    return Policy.parse(text).bind(on_paper(None))


def _expect(few: Layer, many: Layer, calls: Sequence[ConcreteCall], effect: Effect) -> None:
    """Both sides must do the same work."""
    for layer in (few, many):
        assert {decide((layer,), call, _STATE).effect for call in calls} == {effect}


def _decide_all(layer: Layer, calls: Sequence[ConcreteCall], times: int) -> None:
    layers = (layer,)
    for _ in range(times):
        for call in calls:
            decide(layers, call, _STATE)


def _growth(what: str, few: Layer, many: Layer, calls: Sequence[ConcreteCall], seconds: float) -> Row:
    sides = {"few": partial(_decide_all, few, calls, _BATCH), "many": partial(_decide_all, many, calls, _BATCH)}
    taken = in_turns(sides, seconds=seconds)
    each = {name: time / (_BATCH * len(calls)) for name, time in taken.items()}
    how = f"{shown(each['many'])} ÷ {shown(each['few'])}; 30 % denies or wildcards in front"
    return Row(what=what, measured=taken["many"] / taken["few"], goal=2, how=how)


def _nothing(layers: Sequence[Layer], call: ConcreteCall, state: RunState) -> None:
    """The same arguments, and no work."""


def _call_nothing(layer: Layer, calls: Sequence[ConcreteCall], times: int) -> None:
    layers = (layer,)
    for _ in range(times):
        for call in calls:
            _nothing(layers, call, _STATE)


def _one(seconds: float) -> Row:
    layer = _layer(policy_text(SOME, *KINDS))
    calls = [call for kind in KINDS for call in kind.calls([*kind.allowed, *kind.refused])]
    sides = {
        "decide": partial(_decide_all, layer, calls, _BATCH),
        "empty": partial(_call_nothing, layer, calls, _BATCH),
    }
    taken = in_turns(sides, seconds=seconds, of=min)  # a time that stands alone: what else runs here only adds to it
    each = taken["decide"] / (_BATCH * len(calls))
    how = f"{taken['decide'] / taken['empty']:,.0f} × a call of an empty function; path, argv and host mixed"
    return Row(what=f"one decide at {SOME} rules", measured=each * 1e6, unit="µs", goal=25, how=how)
