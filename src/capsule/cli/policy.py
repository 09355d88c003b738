"""`capsule policy check | explain | decide | test`: ask a policy before anything runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, cast

import typer

from capsule.calls import Decision, Effect, LayerState, RunState, Source, ToolCall, World
from capsule.canon import Json
from capsule.cli.options import AsJson, PolicyOption, here, settings
from capsule.cli.outermost import EXIT_DENIED, EXIT_FAILED
from capsule.cli.output import coloured, counted, json_text, print_json, print_line
from capsule.cli.words import TakesArgv, call_arguments
from capsule.documents import check as check_document
from capsule.documents import load_text
from capsule.errors import PlanError, ToolError
from capsule.gate import disk_world
from capsule.policy import Explanation, Policy, advance, check_policy, decide, explain, on_paper
from capsule.screen import printable

_EFFECT_COLOURS = {Effect.ALLOW: "green", Effect.ASK: "blue", Effect.DENY: "red"}

app = typer.Typer(
    name="policy", help="Check a policy, ask it, and test it.", no_args_is_help=True, rich_markup_mode=None
)

_CALL_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"tool": {"type": "string"}, "args": {"type": "object"}},
    "required": ["tool"],
    "additionalProperties": False,
}

File = Annotated[Path, typer.Argument(metavar="POLICY", help="The policy (YAML or JSON).")]
PaperWorkdir = Annotated[
    Path | None,
    typer.Option("--workdir", metavar="DIR", help="Where relative paths hang from. [default: /workdir; on disk, .]"),
]
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
    rules, remarked = counted(len(loaded.rules.rules), "rule"), counted(len(remarks), "remark")
    print_line(f"{printable(str(policy))}: valid, {rules}, {remarked}")


@app.command(name="explain", cls=TakesArgv)
def explain_call(  # noqa: PLR0913 - each is an option of the contract
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool, as in fs.read.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="K=V", help="Arguments of the call: NAME=TEXT or NAME:=JSON; behind --, a command."),
    ] = None,
    *,
    policy: PolicyOption,
    workdir: PaperWorkdir = None,
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
def _world(policy: Policy, workdir: Path | None, *, on_disk: bool) -> Iterator[World]:
    """On paper, unless the disk is asked for."""
    if not on_disk:
        yield on_paper(here(workdir) if workdir else None)
        return
    with disk_world(settings(), here(workdir or Path()), in_use=(policy.file,) if policy.file else ()) as (
        world,
        _,
    ):
        yield world


def _print_explanation(explanation: Explanation) -> None:
    decision = explanation.decision
    code = f" {decision.code}" if decision.code is not None else ""
    effect = coloured(f"{decision.effect.value}{code}", _EFFECT_COLOURS[decision.effect])
    print_line(f"{effect}: {printable(decision.reason)}")
    if decision.suggestion:
        print_line(f"  to allow: {printable(decision.suggestion)}")
    for limit, rule in decision.limit_rules.items():
        print_line(f"  {limit} {_limit(decision, limit)} from {printable(rule)}")
    for story in explanation.stories:
        icon = coloured("✓", "green") if story.matched else coloured("–", "dim")
        print_line(f"  {icon} {printable(story.rule)} ({story.action}): {printable(story.because)}")


def _limit(decision: Decision, name: str) -> str:
    assert decision.grant is not None, "a limit is part of a grant"
    limits = decision.grant.limits
    if name == "timeout":
        return f"{limits.timeout_ms} ms"
    return f"{limits.max_bytes if name == 'max_bytes' else limits.max_output_bytes} bytes"


@app.command(name="decide")
def decide_calls(
    *,
    policy: PolicyOption,
    calls: Annotated[
        Path, typer.Option("--calls", metavar="FILE", help="One call a line as JSON; - for standard input.")
    ],
    workdir: PaperWorkdir = None,
    on_disk: OnDisk = False,
    source: SourceOption = Source.API,
    exit_code: ExitCode = False,
) -> None:
    """Decide calls in order, as one run: one decision a line.

    Example: capsule policy decide --policy policy.yaml --calls calls.jsonl
    """
    loaded = Policy.load(policy)
    asked = (_call(text, calls, line, source) for line, text in _lines(calls))
    denied = 0
    with _world(loaded, workdir, on_disk=on_disk) as world:
        for decision in _decisions(loaded, world, asked):
            denied += decision["effect"] == Effect.DENY.value
            sys.stdout.write(json_text(decision) + "\n")
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
            refused = Decision(
                effect=Effect.DENY,
                code=error.code,
                reason=error.message,
                suggestion=error.hint,
                resolved=world.resolved,
            )
            yield refused.as_json()
            continue
        decision = decide((layer,), concrete, state)
        if decision.effect is not Effect.DENY:
            state = advance(state, decision, now_ms=state.now_ms)
        yield decision.as_json()


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers."""
    try:
        with nullcontext(sys.stdin) if str(file) == "-" else file.open(encoding="utf-8") as stream:
            yield from ((number, line.rstrip()) for number, line in enumerate(stream, start=1) if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        hint = "give a file with one JSON call a line"
        raise PlanError(3001, f"{file}: cannot be read: {reason}", hint=hint) from error


def _call(text: str, file: Path, line: int, source: Source) -> ToolCall:
    name = "<stdin>" if str(file) == "-" else str(file)
    try:
        return _read_call(text, name, source)
    except PlanError:
        return _read_call("\n" * (line - 1) + text, name, source)  # fails as well, and names the place in the file


def _read_call(text: str, name: str, source: Source) -> ToolCall:
    document = load_text(text, name=name, kind="call", format="json")
    check_document(document, _CALL_SCHEMA)
    value = cast("Mapping[str, Json]", document.value)
    return ToolCall(
        tool=cast("str", value["tool"]), args=cast("Mapping[str, Json]", value.get("args", {})), source=source
    )


@app.command()
def test(policy: File, *, as_json: AsJson = False) -> None:  # noqa: PT028 - a command, not a test
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
