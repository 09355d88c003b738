"""`capsule policy check | explain | decide | test`: ask a policy before anything runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from capsule.calls import Effect, LayerState, RunState, Source, ToolCall, World
from capsule.canon import Json
from capsule.cli.options import AsJson, Workdir, settings
from capsule.cli.outermost import EXIT_DENIED, EXIT_FAILED
from capsule.cli.output import coloured, print_json, print_line
from capsule.cli.words import call_arguments
from capsule.documents import load_text
from capsule.errors import PlanError, ToolError
from capsule.gate import disk_world
from capsule.policy import Explanation, Policy, advance, check_policy, decide, explain, on_paper
from capsule.screen import printable

_EFFECT_COLOURS = {Effect.ALLOW: "green", Effect.ASK: "blue", Effect.DENY: "red"}

app = typer.Typer(
    name="policy", help="Check a policy, ask it, and test it.", no_args_is_help=True, rich_markup_mode=None
)

File = Annotated[Path, typer.Argument(metavar="POLICY", help="The policy (YAML or JSON).")]
PolicyOption = Annotated[Path, typer.Option("--policy", metavar="FILE", help="The policy (YAML or JSON).")]
OnDisk = Annotated[bool, typer.Option("--on-disk", help="Follow links and find programs on this machine.")]
ExitCode = Annotated[bool, typer.Option("--exit-code", help="Exit 3 when something is denied.")]
Tainted = Annotated[bool, typer.Option("--tainted", help="Decide as after a result from outside.")]
SourceOption = Annotated[Source, typer.Option("--source", help="Who asks.")]


def add_to(parent: typer.Typer) -> None:
    parent.add_typer(app)


@app.command()
def check(policy: File, *, as_json: AsJson = False) -> None:
    """Is the file valid, and what in it is dangerous or without effect?

    Example: capsule policy check policy.yaml
    """
    loaded = Policy.load(policy)
    remarks = check_policy(loaded)
    if as_json:
        print_json(
            {"valid": True, "rules": len(loaded.rules.rules), "remarks": [remark.as_json() for remark in remarks]}
        )
        return
    for remark in remarks:
        print_line(f"{coloured(remark.level, 'yellow')}: {printable(remark.rule)}: {printable(remark.message)}")
    print_line(f"{printable(str(policy))}: valid, {len(loaded.rules.rules)} rules, {len(remarks)} remarks")


@app.command(name="explain")
def explain_call(
    tool: Annotated[str, typer.Argument(help="The tool, as in fs.read.")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[k=v | k:=JSON …] [-- ARGV …]", help="The arguments of the call.")
    ] = None,
    *,
    policy: PolicyOption,
    workdir: Workdir = Path(),
    on_disk: OnDisk = False,
    tainted: Tainted = False,
    source: SourceOption = Source.API,
    exit_code: ExitCode = False,
    as_json: AsJson = False,
) -> None:
    """The enforcer's own answer, rule by rule, and the smallest edit that would allow the call.

    Example: capsule policy explain --policy policy.yaml fs.read path=./docs/a.md
    """
    loaded = Policy.load(policy)
    call = ToolCall(tool=tool, args=call_arguments(tool, words or []), source=source)
    with _world(loaded, workdir, on_disk=on_disk) as world:
        state = RunState(tainted=tainted, layers=(LayerState(),))
        explanation = explain((loaded.bind(world),), loaded.concrete(call, world), state)
    if as_json:
        print_json(explanation.as_json())
    else:
        _print_explanation(explanation)
    if exit_code and explanation.decision.effect is Effect.DENY:
        raise typer.Exit(EXIT_DENIED)


@contextmanager
def _world(policy: Policy, workdir: Path, *, on_disk: bool) -> Iterator[World]:
    """On paper, unless the disk is asked for; a workdir that is not named is `/workdir` there."""
    if not on_disk:
        yield on_paper(workdir.absolute() if workdir != Path() else None)
        return
    with disk_world(settings(), workdir, in_use=(policy.file,) if policy.file else ()) as (world, _):
        yield world


def _print_explanation(explanation: Explanation) -> None:
    decision = explanation.decision
    code = f" {decision.code}" if decision.code is not None else ""
    effect = coloured(f"{decision.effect.value}{code}", _EFFECT_COLOURS[decision.effect])
    print_line(f"{effect}: {printable(decision.reason)}")
    if decision.suggestion:
        print_line(f"  to allow: {printable(decision.suggestion)}")
    for limit, rule in decision.limit_rules.items():
        print_line(f"  {limit} comes from {printable(rule)}")
    for story in explanation.stories:
        icon = coloured("✓", "green") if story.matched else coloured("–", "dim")
        print_line(f"  {icon} {printable(story.rule)} ({story.action}): {printable(story.because)}")


@app.command(name="decide")
def decide_calls(
    *,
    policy: PolicyOption,
    calls: Annotated[
        Path, typer.Option("--calls", metavar="FILE", help="One call a line as JSON; - for standard input.")
    ],
    workdir: Workdir = Path(),
    on_disk: OnDisk = False,
    source: SourceOption = Source.API,
    exit_code: ExitCode = False,
) -> None:
    """Decide calls in order, as one run: one decision a line.

    Example: capsule policy decide --policy policy.yaml --calls calls.jsonl
    """
    loaded = Policy.load(policy)
    asked = (_call(text, f"{calls}:{line}", source) for line, text in enumerate(_lines(calls), start=1))
    denied = 0
    with _world(loaded, workdir, on_disk=on_disk) as world:
        for decision in _decisions(loaded, world, asked):
            denied += decision["effect"] == Effect.DENY.value
            sys.stdout.write(json.dumps(decision, ensure_ascii=False) + "\n")
    if exit_code and denied:
        raise typer.Exit(EXIT_DENIED)


def _decisions(policy: Policy, world: World, calls: Iterable[ToolCall]) -> Iterator[dict[str, Json]]:
    """What an ask would let through counts as let through."""
    layer = policy.bind(world)
    state = RunState(layers=(LayerState(),))
    for call in calls:
        try:
            concrete = policy.concrete(call, world)
        except ToolError as error:
            yield {"effect": "deny", "code": error.code, "kind": error.kind, "rule": None, "reason": error.message}
            continue
        decision = decide((layer,), concrete, state)
        if decision.effect is not Effect.DENY:
            state = advance(state, decision, now_ms=state.now_ms)
        yield decision.as_json()


def _lines(file: Path) -> Iterator[str]:
    if str(file) == "-":
        yield from (line for line in sys.stdin if line.strip())
        return
    try:
        with file.open(encoding="utf-8") as stream:
            yield from (line for line in stream if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(
            3001, f"{file}: cannot be read: {error}", hint="give a file with one JSON call a line"
        ) from error


def _call(text: str, name: str, source: Source) -> ToolCall:
    document = load_text(text, name=name, kind="call", format="json")
    value = document.value
    if not isinstance(value, dict) or not isinstance(value.get("tool"), str) or set(value) - {"tool", "args"}:
        raise document.error((), 'a call is {"tool": NAME, "args": {…}}')
    return ToolCall(tool=value["tool"], args=value.get("args", {}), source=source)


@app.command()
def test(policy: File, *, as_json: AsJson = False) -> None:
    """Decide the policy's own examples and tests on paper; exit 1 when one does not hold.

    Example: capsule policy test policy.yaml
    """
    samples = Policy.unproven(policy).samples()
    wrong = [sample for sample in samples if sample.problem is not None]
    if as_json:
        print_json(
            {
                "samples": [sample.as_json() for sample in samples],
                "passed": len(samples) - len(wrong),
                "failed": len(wrong),
            }
        )
    else:
        for sample in samples:
            icon = coloured("✗", "red") if sample.problem else coloured("✓", "green")
            print_line(f"{icon} {printable(sample.name)}{': ' + printable(sample.problem) if sample.problem else ''}")
        print_line(f"{len(samples) - len(wrong)} held, {len(wrong)} did not")
    if wrong:
        raise typer.Exit(EXIT_FAILED)
