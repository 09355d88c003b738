"""From words to a command: help, what is not there, completion."""

from __future__ import annotations

import re

import pytest
from typed import Typed, WritePlan

from capsule.cli import COMMANDS


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_lists_every_command(capsule: Typed, words: list[str]) -> None:
    ran = capsule(*words)
    assert (ran.code, ran.err) == (0, "")
    assert re.findall(r"^  ([a-z][a-z-]*)  ", ran.out, re.MULTILINE) == list(COMMANDS)


def test_no_words_are_wrong_usage(capsule: Typed) -> None:
    ran = capsule()
    assert (ran.code, ran.out) == (2, capsule("--help").out)


@pytest.mark.parametrize(
    "command",
    [
        *(name for name in COMMANDS if name not in ("policy", "tools")),
        *(f"policy {name}" for name in ("check", "explain", "decide", "test")),
        *(f"tools {name}" for name in ("list", "show")),
    ],
)
def test_each_command_has_help(capsule: Typed, command: str) -> None:
    ran = capsule(*command.split(), "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"Usage: capsule {command} ")
    assert capsule("help", *command.split()) == ran
    hinted = [line for line in ran.out.splitlines() if line.lstrip().startswith("Example: ")]
    assert all(line.lstrip().startswith(f"Example: capsule {command}") for line in hinted)


@pytest.mark.parametrize("group", ["policy", "tools"])
def test_a_group_alone_lists_its_commands(capsule: Typed, group: str) -> None:
    ran = capsule(group)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"Usage: capsule {group} ")
    assert "Commands:" in ran.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["runn"], "no command 'runn'; did you mean `capsule run`?"),
        (["list"], "no command 'list'; did you mean `capsule list-runs`?"),
        (["xyzzy"], "no command 'xyzzy'; `capsule --help` lists the commands"),
        (["--verbose"], "no option '--verbose'; `capsule --help` lists the commands"),
        (["policy", "chek"], "No such command 'chek'. Did you mean 'check'?"),
        (["list-runs", "--jsn"], "No such option: --jsn"),
        (["list-runs", "--limit", "0"], "Invalid value for '-n' / '--limit'"),
        (["list-runs", "surplus"], "Got unexpected extra argument"),
        (["--install-completion", "zsh"], "--install-completion takes no word"),
    ],
)
def test_what_is_not_there_gets_a_hint(capsule: Typed, words: list[str], message: str) -> None:
    ran = capsule(*words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


@pytest.mark.parametrize(
    ("name", "says"),
    [("bash", "complete -o default -F"), ("zsh", "#compdef capsule"), ("fish", "complete --command capsule")],
)
def test_the_completion_script_of_each_shell(process: Typed, name: str, says: str) -> None:
    ran = process("--show-completion", name)
    assert ran.code == 0
    assert says in ran.out
    assert "_CAPSULE_COMPLETE" in ran.out


def test_a_shell_that_is_not_known(process: Typed) -> None:
    ran = process("--show-completion", "tcsh")
    assert (ran.code, ran.out) == (1, "")
    assert "tcsh" in ran.err


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (
            "capsule ",
            {"run", "list-runs", "show-run", "report", "verify", "policy", "tools", "schema", "doctor", "demo"},
        ),
        ("capsule re", {"report"}),
        ("capsule policy ", {"check", "explain", "decide", "test"}),
        ("capsule verify --", {"--all", "--head", "--db", "--json", "--help"}),
        ("capsule run plan.yaml --approve ", {"ask", "reads", "all", "deny"}),
        ("capsule schema ", {"plan", "policy", "report", "tools", "floor"}),
        ("capsule list-runs --status de", {"denied"}),
        ("capsule tools show fs.", {"fs.list", "fs.read", "fs.write"}),
        ("capsule report ", {"last"}),
    ],
)
def test_words_are_completed_as_bash_asks(process: Typed, typed: str, completed: set[str]) -> None:
    words = typed.split(" ")
    ran = process(COMP_WORDS=typed, COMP_CWORD=str(len(words) - 1), _CAPSULE_COMPLETE="complete_bash")
    assert (ran.code, ran.err) == (0, "")
    assert set(ran.out.split()) == completed


def test_recorded_runs_are_completed(process: Typed, plan: WritePlan) -> None:
    assert process("run", plan("- {tool: fs.read, args: {path: docs/a.md}}"), "--policy", "policy.yaml").code == 0
    [run] = process("list-runs", "--json").json
    ran = process(COMP_WORDS="capsule show-run ", COMP_CWORD="2", _CAPSULE_COMPLETE="complete_bash")
    assert ran.out.split() == ["last", run["run_id"][-8:]]


@pytest.mark.parametrize(("name", "more"), [("zsh", {}), ("fish", {"_TYPER_COMPLETE_FISH_ACTION": "get-args"})])
def test_words_are_completed_as_other_shells_ask(process: Typed, name: str, more: dict[str, str]) -> None:
    ran = process(_TYPER_COMPLETE_ARGS="capsule sh", _CAPSULE_COMPLETE=f"complete_{name}", **more)
    assert ran.code == 0
    assert "show-run" in ran.out
    assert "Show one run" in ran.out
