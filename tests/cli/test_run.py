"""`capsule run`: what it does, prints and exits with."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typed import Typed, WritePlan

READ = "- {id: read, tool: fs.read, args: {path: docs/a.md}}"
DENIED = "- {id: peek, tool: fs.read, args: {path: .env}}"
DENIED_ON = "- {id: peek, tool: fs.read, args: {path: .env}, continue_on_error: true}"
FAILED = "- {id: lost, tool: fs.read, args: {path: docs/none.md}}"
FAILED_ON = "- {id: lost, tool: fs.read, args: {path: docs/none.md}, continue_on_error: true}"
ASKED = "- {id: sign, tool: fs.write, args: {path: desk/a.md, content: x}}"
ASKED_READ = "- {id: look, tool: fs.read, args: {path: desk/b.md}}"
SHELL = "- {id: log, tool: shell.run, args: {command: [git, log]}}"
NO_TOOL = "- {id: what, tool: fs.reed, args: {path: docs/a.md}}"
NO_ARGUMENT = "- {id: what, tool: fs.read, args: {pth: docs/a.md}}"
SLOW = '- {id: slow, tool: fs.read, foreach: ["docs/a.md", "docs/a.md"], args: {path: "{{ item }}"}}'


@pytest.mark.parametrize(
    ("steps", "options", "code", "status", "statuses"),
    [
        ([READ], [], 0, "completed", ["success"]),
        ([READ, DENIED, READ.replace("read,", "again,", 1)], [], 3, "denied", ["success", "denied", "skipped"]),
        ([DENIED, READ], ["--no-fail-fast"], 3, "denied", ["denied", "success"]),
        ([DENIED_ON, READ], [], 3, "completed", ["denied", "success"]),
        ([FAILED, READ], [], 1, "failed", ["error", "skipped"]),
        ([FAILED, READ], ["--no-fail-fast"], 1, "failed", ["error", "success"]),
        ([FAILED_ON, READ], [], 0, "completed", ["error", "success"]),
        ([FAILED, DENIED], ["--no-fail-fast"], 3, "denied", ["error", "denied"]),
        ([NO_TOOL], [], 1, "failed", ["error"]),
        ([NO_ARGUMENT], [], 1, "failed", ["error"]),
        ([SHELL], [], 1, "failed", ["error"]),
        ([ASKED], ["--approve", "all"], 0, "completed", ["success"]),
        ([ASKED], ["--approve", "deny"], 3, "denied", ["denied"]),
    ],
)
def test_exit_code_and_statuses(
    capsule: Typed, plan: WritePlan, steps: list[str], options: list[str], code: int, status: str, statuses: list[str]
) -> None:
    ran = capsule("run", plan("\n".join(steps)), "--policy", "policy.yaml", "--json", *options)
    assert (ran.code, ran.json["status"], [step["status"] for step in ran.json["steps"]]) == (code, status, statuses)


@pytest.mark.parametrize(
    ("step", "code"),
    [(DENIED, 1001), (ASKED, 1007), (NO_TOOL, 2001), (NO_ARGUMENT, 2002), (FAILED, 2003), (SHELL, 2005)],
)
def test_a_step_says_what_was_wrong(capsule: Typed, plan: WritePlan, step: str, code: int) -> None:
    ran = capsule("run", plan(step), "--policy", "policy.yaml", "--json", "--approve", "deny")
    assert ran.json["steps"][0]["error"]["code"] == code


def test_what_a_person_sees(capsule: Typed, plan: WritePlan) -> None:
    ran = capsule("run", plan(f"{READ}\n{FAILED_ON}\n{DENIED}"), "--policy", "policy.yaml", "--db", "runs.db")
    assert ran.err.splitlines() == [
        "✓ read  fs.read",
        "✗ lost  fs.read  2003 cannot read docs/none.md: there is no such file",
        "    hint: fs.list shows what is there",
        "⊘ peek  fs.read  1001 no rule allows ./.env",
    ]
    *summary, counts, more = ran.out.splitlines()
    assert summary == [
        "  files read         ./docs/a.md",
        "  denied 1001 peek: no rule allows ./.env",
        '    to allow: add "./.env" to the path of rule read',
    ]
    assert counts.startswith("denied: 3 steps, 1 completed, 1 denied, 1 failed · ")
    report = more.removeprefix("each step: capsule ").split()
    assert capsule(*report).code == 0


def test_json_is_the_report_with_the_run_on_top(capsule: Typed, plan: WritePlan) -> None:
    ran = capsule("run", plan(READ), "--policy", "policy.yaml", "--json")
    assert list(ran.json)[:2] == ["run_id", "status"]
    again = capsule("report", ran.json["run_id"], "--json").json
    assert {**again, "generated_at": None} == {
        name: None if name == "generated_at" else value for name, value in ran.json.items() if name in again
    }
    assert ran.err == ""


@pytest.mark.parametrize("word", ["--db", "--out"])
def test_the_journal_that_is_named_is_used(capsule: Typed, plan: WritePlan, project: Path, word: str) -> None:
    assert capsule("run", plan(READ), "--policy", "policy.yaml", word, "mine/runs.db").code == 0
    assert len(capsule("list-runs", "--db", "mine/runs.db", "--json").json) == 1
    assert capsule("list-runs").code == 5


def test_the_workdir_is_where_paths_hang_from(capsule: Typed, plan: WritePlan, project: Path) -> None:
    (project / "else" / "docs").mkdir(parents=True)
    (project / "else" / "docs" / "a.md").write_text("Elsewhere.\n")
    ran = capsule("run", plan(READ), "--policy", "policy.yaml", "--json", "--workdir", "else")
    assert ran.json["steps"][0]["output"]["content"] == "Elsewhere.\n"
    assert ran.json["run"]["workdir"] == str((project / "else").resolve())


def test_a_dry_run_decides_and_leaves_nothing(capsule: Typed, plan: WritePlan, project: Path) -> None:
    name = plan(
        "- {id: make, tool: fs.write, args: {path: out/a.md, content: x}, store_as: made}\n"
        '- {id: later, tool: fs.read, args: {path: "{{ made.path }}"}}\n'
        f"{ASKED}\n{DENIED}\n{NO_TOOL}"
    )
    before = sorted(project.rglob("*"))
    ran = capsule("run", name, "--policy", "policy.yaml", "--dry-run")
    assert ran.code == 3
    assert [line.split()[:2] for line in ran.out.splitlines() if line[0] != " "] == [
        ["allow", "make"],
        ["unknown", "later"],
        ["ask", "sign"],
        ["deny", "peek"],
        ["unknown", "what"],
    ]
    foreseen = capsule("run", name, "--policy", "policy.yaml", "--dry-run", "--json").json
    assert foreseen["dry_run"] is True
    assert [step["decision"] and step["decision"]["effect"] for step in foreseen["steps"]] == [
        "allow",
        None,
        "ask",
        "deny",
        None,
    ]
    assert sorted(project.rglob("*")) == before
    assert capsule("list-runs").code == 5, "there is still no journal"


@pytest.mark.parametrize(("steps", "code"), [(READ, 0), (DENIED, 3), (NO_TOOL, 1), (f"{DENIED}\n{NO_TOOL}", 3)])
def test_the_exit_code_of_a_dry_run(capsule: Typed, plan: WritePlan, steps: str, code: int) -> None:
    assert capsule("run", plan(steps), "--policy", "policy.yaml", "--dry-run").code == code


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "plan",
            "steps:\n  - tool: fs.read\n    arg: {}\n",
            "plan.yaml:3:5: steps[0]: unknown key 'arg'; did you mean 'args'?",
        ),
        ("plan", "steps:\n  - {tool: fs.read, args: {path: '{{ nope }}'}}\n", "plan.yaml:2:"),
        ("plan", "steps:\n  - {tool: fs.read, args: {path: '{{ f() }}'}}\n", "plan.yaml:2:"),
        ("plan", "steps: []\n", "[3002]"),
        ("plan", "steps: [\n", "plan.yaml:"),
        ("plan", "a: &x 1\n", "plan.yaml:1:"),
        ("plan", "[" * 300_000, "plan.yaml:1:"),
        ("plan", "\x00\x01", "plan.yaml:1:"),
        ("plan", "# " + "x" * 1_100_000, "plan.yaml"),
        (
            "policy",
            "rules:\n  - {action: alow, tool: fs.read}\n",
            "policy.yaml:2:14: rules[0].action: found 'alow'; did you mean 'allow'?",
        ),
        ("policy", "rules:\n  - {action: allow, tool: fs.read}\n", "policy.yaml:2:5: "),
        ("policy", "rule: []\n", "policy.yaml:1:1: unknown key 'rule'; did you mean 'rules'?"),
        (
            "policy",
            "tests: [{tool: fs.read, args: {path: a}, expect: allow}]\n",
            "policy.yaml:1:9: tests[0]: expected allow",
        ),
    ],
    ids=[
        "unknown key",
        "undefined name",
        "call in a template",
        "no steps",
        "not closed",
        "an anchor",
        "deep",
        "binary",
        "large",
        "wrong value",
        "allow without constraint",
        "misspelled rules",
        "a test that does not hold",
    ],
)
def test_a_wrong_document_is_one_message_and_no_run(
    capsule: Typed, plan: WritePlan, project: Path, name: str, text: str, message: str
) -> None:
    plan(READ)
    (project / f"{name}.yaml").write_text(text)
    ran = capsule("run", "plan.yaml", "--policy", "policy.yaml")
    first, *rest = ran.err.splitlines()
    assert (ran.code, ran.out) == (2, "")
    assert first.startswith("capsule: ")
    assert message in first
    assert [line for line in rest if not line.startswith("  hint: ")] == []
    assert len(rest) <= 1
    assert capsule("list-runs").code == 5, "there is still no journal"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.yaml", "--policy", "policy.yaml"], "none.yaml: cannot read this plan: there is no such file"),
        (["docs", "--policy", "policy.yaml"], "docs: cannot read this plan"),
        (["plan.yaml", "--policy", "none.yaml"], "none.yaml: cannot read this policy: there is no such file"),
        (["plan.yaml"], "Missing option '--policy'"),
        (["--policy", "policy.yaml"], "Missing argument 'PLAN'"),
        (["plan.yaml", "--policy", "policy.yaml", "--workdir", "none"], "none: No such file or directory"),
        (
            ["plan.yaml", "--policy", "policy.yaml", "--approve", "maybe"],
            "'maybe' is not one of 'ask', 'reads', 'all', 'deny'",
        ),
        (["plan.yaml", "--policy", "policy.yaml", "--polcy"], "--policy"),
        (["plan.yaml", "--policy", "policy.yaml", "--input", "who=x"], "the plan declares no input 'who'"),
        (["plan.yaml", "--policy", "policy.yaml", "--input", "who"], "--input who: found no `=`"),
    ],
)
def test_a_wrong_command_line_is_exit_2(capsule: Typed, plan: WritePlan, words: list[str], message: str) -> None:
    plan(READ)
    ran = capsule("run", *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err.splitlines()[0]


@pytest.mark.parametrize(
    ("config", "environ", "message"),
    [
        ('aprove = "all"\n', {}, "config.toml:1:1: unknown key 'aprove'; did you mean 'approve'?"),
        ('approve = "maybe"\n', {}, "config.toml:1:11: approve: found 'maybe'"),
        ("approve = \n", {}, "config.toml:1:"),
        ("", {"CAPSULE_APPROVE": "maybe"}, "CAPSULE_APPROVE: found 'maybe'"),
        ("", {"CAPSULE_HOME": "relative"}, "CAPSULE_HOME: found 'relative', allowed: an absolute path"),
    ],
)
def test_wrong_settings_are_exit_2_before_anything_runs(
    capsule: Typed,
    plan: WritePlan,
    isolated_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    config: str,
    environ: dict[str, str],
    message: str,
) -> None:
    home = isolated_home / ".capsule"
    home.mkdir()
    (home / "config.toml").write_text(config)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    ran = capsule("run", plan(READ), "--policy", "policy.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert sorted(path.name for path in home.iterdir()) == ["config.toml"]


def test_settings_answer_an_ask(capsule: Typed, plan: WritePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPSULE_APPROVE", "all")
    assert capsule("run", plan(ASKED), "--policy", "policy.yaml").code == 0


def test_without_a_terminal_an_ask_is_denied(process: Typed, plan: WritePlan, project: Path) -> None:
    (project / "desk" / "b.md").write_text("Signed.\n")
    name = plan(f"{ASKED_READ}\n{ASKED}")
    ran = process("run", name, "--policy", "policy.yaml", stdin="y\ny\n")
    assert ran.code == 3
    assert "⊘ look  fs.read  1007" in ran.err
    ran = process("run", name, "--policy", "policy.yaml", "--approve", "reads", stdin="y\n")
    assert ran.code == 3
    assert ran.err.splitlines()[0] == "✓ look  fs.read"
    assert "⊘ sign  fs.write  1007" in ran.err
    assert not (project / "desk" / "a.md").exists()


@pytest.fixture
def waiting(capsule: Typed, project: Path, plan: WritePlan) -> Iterator[subprocess.Popen[str]]:
    """A run that has read once and now waits a minute for its rate."""
    constraints = "{path: {pattern: ./docs/**}, rate_limit: {requests_per_minute: 1}}"
    (project / "slow.yaml").write_text(f"rules: [{{action: allow, tool: fs.read, constraints: {constraints}}}]")
    command = [sys.executable, "-m", "capsule", "run", plan(SLOW), "--policy", "slow.yaml", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        for _ in range(200):
            shown = capsule("show-run", "last", "--json")
            if shown.code == 0 and shown.json["steps"] and shown.json["steps"][0]["status"] == "success":
                break
            time.sleep(0.05)
        yield running
        running.kill()


@pytest.mark.parametrize(
    ("number", "code", "said", "statuses"),
    [
        (signal.SIGINT, 130, "capsule: interrupted; `capsule report ", ["interrupted"]),
        (signal.SIGTERM, 130, "capsule: interrupted; `capsule report ", ["interrupted"]),
        (signal.SIGHUP, 130, "capsule: interrupted; `capsule report ", ["interrupted"]),
        (signal.SIGKILL, -9, "", []),
    ],
)
def test_a_run_that_is_cut_short_is_interrupted(
    capsule: Typed, waiting: subprocess.Popen[str], number: int, code: int, said: str, statuses: list[str]
) -> None:
    assert [run["status"] for run in capsule("list-runs", "--json").json] == ["running"]
    began = time.monotonic()
    waiting.send_signal(number)
    out, err = waiting.communicate(timeout=20)
    assert time.monotonic() - began < 5
    assert waiting.returncode == code
    assert [json.loads(document)["status"] for document in [out] if document] == statuses
    assert said in err
    assert "Traceback" not in err
    shown = capsule("show-run", "last", "--json").json
    assert (shown["run"]["status"], [step["status"] for step in shown["steps"]][:1]) == ("interrupted", ["success"])
    assert capsule("verify").code == 0


def test_time_that_is_used_up_ends_the_run(capsule: Typed, plan: WritePlan, project: Path) -> None:
    (project / "policy.yaml").write_text("rules: []\nlimits: {wall_time: 0s}\n")
    ran = capsule("run", plan(READ), "--policy", "policy.yaml")
    assert ran.code == 1
    assert "  7003 the run has used up its 0 ms (limits.wall_time)" in ran.out
