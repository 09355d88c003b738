"""Progress, at a real terminal and without one."""

from __future__ import annotations

from pathlib import Path

import pytest
from terminal import Terminal, plain
from typed import Typed, WritePlan

STEPS = """\
- {id: read, tool: fs.read, args: {path: docs/a.md}}
- {id: lost, tool: fs.read, args: {path: docs/none.md}, continue_on_error: true}
- {id: peek, tool: fs.read, args: {path: .env}}
"""
LINES = """\
✓ read  fs.read
✗ lost  fs.read  2003 cannot read docs/none.md: there is no such file
    hint: fs.list shows what is there
⊘ peek  fs.read  1001 no rule allows ./.env
"""
LIVE = "\r\x1b[2K"


def test_a_terminal_shows_the_running_step_in_colour(plan: WritePlan) -> None:
    terminal = Terminal("run", plan(STEPS), "--policy", "policy.yaml")
    assert terminal.end() == 3
    assert f"{LIVE}… read (step 1 of 3)" in terminal.shown
    assert "\x1b[32m✓\x1b[0m read  fs.read" in terminal.shown
    assert plain(terminal.shown).startswith(LINES)


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"NO_COLOR": ""}, {"TERM": "dumb"}], ids=str)
def test_a_terminal_can_be_plain(plan: WritePlan, environ: dict[str, str]) -> None:
    terminal = Terminal("run", plan(STEPS), "--policy", "policy.yaml", **environ)
    assert terminal.end() == 3
    assert "\x1b" not in terminal.shown
    assert terminal.shown.replace("\r\n", "\n").startswith(LINES)


def test_without_a_terminal_it_is_plain(process: Typed, plan: WritePlan) -> None:
    ran = process("run", plan(STEPS), "--policy", "policy.yaml", TERM="xterm")
    assert ran.err == LINES
    assert "\x1b" not in ran.out


def test_with_json_only_a_terminal_shows_progress(process: Typed, plan: WritePlan) -> None:
    ran = process("run", plan(STEPS), "--policy", "policy.yaml", "--json")
    assert ran.err == ""
    terminal = Terminal("run", plan(STEPS), "--policy", "policy.yaml", "--json")
    assert terminal.end() == 3
    assert "… read (step 1 of 3)" in terminal.shown


def test_a_wait_for_a_rate_is_shown(plan: WritePlan, project: Path) -> None:
    constraints = "{path: {pattern: ./docs/**}, rate_limit: {requests_per_minute: 1}}"
    (project / "slow.yaml").write_text(f"rules: [{{action: allow, tool: fs.read, constraints: {constraints}}}]")
    step = '- {id: slow, tool: fs.read, foreach: ["docs/a.md", "docs/a.md"], args: {path: "{{ item }}"}}'
    terminal = Terminal("run", plan(step), "--policy", "slow.yaml")
    terminal.until(r"⏳ slow\[1\] waits \d+ s for its rate")
    terminal.interrupt()
    assert terminal.end() == 130


@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-"])
def test_a_viewer_that_is_gone_does_not_end_the_run(shell: Typed, plan: WritePlan, where: str) -> None:
    if where == "2>/dev/full" and not Path("/dev/full").exists():
        pytest.skip("this system has no full device")
    ran = shell(f"capsule run {plan(STEPS)} --policy policy.yaml --json {where}")
    assert (ran.code, ran.json["status"], len(ran.json["steps"])) == (3, "denied", 3)


def test_what_is_no_tool_is_not_repeated(process: Typed, plan: WritePlan) -> None:
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    ran = process("run", plan(f"- {{id: odd, tool: tool.{token}, args: {{}}}}"), "--policy", "policy.yaml")
    assert ran.err.startswith("✗ odd  unknown tool  2001 ")
    assert token not in ran.err + ran.out
