"""`capsule policy check | explain | decide | test`: ask a policy before anything runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, cast

import typer

from capsule.calls import (
    BUILTIN,
    ConcreteCall,
    Decision,
    Effect,
    LayerState,
    RunState,
    Source,
    ToolCall,
    World,
)
from capsule.canon import Json
from capsule.cli.options import AsJson, PolicyOption, here, settings
from capsule.cli.outermost import EXIT_DENIED, EXIT_FAILED
from capsule.cli.output import coloured, counted, json_text, print_json, print_line
from capsule.cli.said import masked, said
from capsule.cli.words import TakesArgv, call_arguments
from capsule.documents import check as check_document
from capsule.documents import load_text
from capsule.errors import PlanError, ToolError
from capsule.gate import disk_world
from capsule.policy import (
    Explanation,
    InOrder,
    Layer,
    Policy,
    check_policy,
    definition_of,
    explain,
    on_paper,
    resolve,
    search_path,
)
from capsule.screen import printable

_EFFECT_COLOURS = {Effect.ALLOW: "green", Effect.ASK: "blue", Effect.DENY: "red"}

app = typer.Typer(
    name="policy", help="Check a policy, ask it, and test it.", no_args_is_help=True, rich_markup_mode=None
)

_LONGEST_LINE = 1024 * 1024  # as large as a document may be

_CALL_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"tool": {"type": "string"}, "args": {"type": "object"}},
    "required": ["tool"],
    "additionalProperties": False,
}

File = Annotated[Path, typer.Argument(metavar="POLICY", readable=False, help="The policy (YAML or JSON).")]
PaperWorkdir = Annotated[
    Path | None,
    typer.Option(
        "--workdir",
        metavar="DIR",
        readable=False,
        help="Where relative paths hang from. [default: /workdir; on disk, .]",
    ),
]
OnDisk = Annotated[bool, typer.Option("--on-disk", help="Follow links and find programs on this machine.")]
ExitCode = Annotated[bool, typer.Option("--exit-code", help="Exit 3 when something is denied.")]
DangerCode = Annotated[bool, typer.Option("--exit-code", help="Exit 3 when something is dangerous.")]
Tainted = Annotated[bool, typer.Option("--tainted", help="Decide as after a result from outside.")]
SourceOption = Annotated[Source, typer.Option("--source", help="Who asks.")]


def add_to(parent: typer.Typer) -> None:
    parent.add_typer(app)


@app.command(short_help="Is it valid, and what in it is dangerous?")
def check(policy: File, *, exit_code: DangerCode = False, as_json: AsJson = False) -> None:
    """Is the file valid, and what in it is dangerous or without effect?

    Example: capsule policy check policy.yaml
    """
    loaded = Policy.load(policy)
    remarks = check_policy(loaded)
    if as_json:
        print_json(
            {"valid": True, "rules": len(loaded.rules.rules), "remarks": [remark.as_json() for remark in remarks]}
        )
    else:
        for remark in remarks:
            print_line(f"{coloured(remark.level, 'yellow')}: {printable(remark.rule)}: {printable(remark.message)}")
        rules, remarked = counted(len(loaded.rules.rules), "rule"), counted(len(remarks), "remark")
        print_line(f"{printable(str(policy))}: valid, {rules}, {remarked}")
    if exit_code and any(remark.level == "danger" for remark in remarks):
        raise typer.Exit(EXIT_DENIED)


@app.command(name="explain", cls=TakesArgv, short_help="Why is this call allowed or denied?")
def explain_call(  # noqa: PLR0913 - each is an option of the contract
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool, as in fs.read.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="K=V … -- ARGV …", help="Arguments of the call: NAME=TEXT or NAME:=JSON; behind --, a command."
        ),
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
    loaded = [Policy.load(file) for file in policy]
    call = ToolCall(tool=tool, args=call_arguments(tool, words or []), source=source)
    with _world(loaded, workdir, on_disk=on_disk) as world:
        layers = tuple(each.bind(world) for each in loaded)
        state = RunState(tainted=tainted, layers=tuple(LayerState() for _ in layers))
        explanation = explain(layers, _concrete(call, layers, world), state)
    if as_json:
        print_json(masked(explanation.as_json()))
    else:
        _print_explanation(explanation)
    if exit_code and explanation.decision.effect is Effect.DENY:
        raise typer.Exit(EXIT_DENIED)


@contextmanager
def _world(policies: Sequence[Policy], workdir: Path | None, *, on_disk: bool) -> Iterator[World]:
    """On paper, unless the disk is asked for."""
    if not on_disk:
        yield on_paper(here(workdir) if workdir else None)
        return
    in_use = [policy.file for policy in policies if policy.file]
    with disk_world(settings(), here(workdir or Path()), in_use=in_use) as (world, _):
        yield world


def _concrete(call: ToolCall, layers: Sequence[Layer], world: World) -> ConcreteCall:
    return resolve(call, definition_of(call.tool, BUILTIN), world, search=search_path(layers))


def _print_explanation(explanation: Explanation) -> None:
    decision = explanation.decision
    code = f" {decision.code}" if decision.code is not None else ""
    effect = coloured(f"{decision.effect.value}{code}", _EFFECT_COLOURS[decision.effect])
    print_line(f"{effect}: {said(decision.reason)}")
    if decision.suggestion:
        print_line(f"  to allow: {said(decision.suggestion)}")
    for limit in explanation.limits:
        print_line(f"  {limit.name} {limit.value} from {said(limit.rule)}")
    for story in explanation.stories:
        icon = coloured("✓", "green") if story.matched else coloured("–", "dim")
        print_line(f"  {icon} {said(story.rule)} ({story.action}): {said(story.because)}")


@app.command(name="decide", short_help="Decide many calls, one a line.")
def decide_calls(
    *,
    policy: PolicyOption,
    calls: Annotated[
        Path,
        typer.Option("--calls", metavar="FILE", readable=False, help="One call a line as JSON; - for standard input."),
    ],
    workdir: PaperWorkdir = None,
    on_disk: OnDisk = False,
    source: SourceOption = Source.API,
    exit_code: ExitCode = False,
    as_json: AsJson = False,
) -> None:
    """Decide calls in order, as one run: one decision a line, or with --json all in one list.

    Example: capsule policy decide --policy policy.yaml --calls calls.jsonl
    """
    loaded = [Policy.load(file) for file in policy]
    asked = (_call(text, calls, line, source) for line, text in _lines(calls))
    denied = 0
    all_of_them: list[Json] = []
    with _world(loaded, workdir, on_disk=on_disk) as world:
        for raw in _decisions([each.bind(world) for each in loaded], world, asked):
            denied += raw["effect"] == Effect.DENY.value
            decision = masked(raw)
            if as_json:
                all_of_them.append(decision)
            else:
                sys.stdout.write(json_text(decision) + "\n")
    if as_json:
        print_json(all_of_them)
    if exit_code and denied:
        raise typer.Exit(EXIT_DENIED)


def _decisions(layers: Sequence[Layer], world: World, calls: Iterable[ToolCall]) -> Iterator[dict[str, Json]]:
    deciding = InOrder(layers, world)
    for call in calls:
        try:
            yield deciding.decide(call).as_json()
        except ToolError as error:
            yield Decision(
                effect=Effect.DENY,
                code=error.code,
                reason=error.message,
                suggestion=error.hint,
                resolved=world.resolved,
            ).as_json()


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers."""
    try:
        with nullcontext(sys.stdin) if str(file) == "-" else file.open(encoding="utf-8") as stream:
            for number, line in enumerate(iter(lambda: stream.readline(_LONGEST_LINE + 1), ""), start=1):
                if len(line) > _LONGEST_LINE:
                    message = f"{file}:{number}: a line of more than {_LONGEST_LINE:,} characters"
                    raise PlanError(3001, message, hint="one call is one line")
                if line.strip():
                    yield number, line.rstrip()
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


@app.command(short_help="Decide its own examples and tests.")
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
