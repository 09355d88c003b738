"""Questions at a real terminal."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from terminal import PROMPT, Terminal, plain
from typed import Typed, WritePlan

from capsule.cli.prompt import _wrapped

SIGN = "- {id: sign, tool: fs.write, args: {path: desk/a.md, content: Signed., mode: overwrite}}"
SIGN_ANOTHER = "- {id: another, tool: fs.write, args: {path: desk/b.md, content: Signed.}}"
OPTIONS = ["--policy", "policy.yaml", "--db", "runs.db"]


@pytest.mark.parametrize(
    ("typed", "approved"),
    [
        ("y\n", True),
        ("Y\n", True),
        ("yes\n", True),
        (" yes \n", True),
        ("\n", False),
        ("n\n", False),
        ("yep\n", False),
        ("ja\n", False),
    ],
)
def test_only_yes_is_yes(capsule: Typed, plan: WritePlan, project: Path, typed: str, approved: bool) -> None:
    terminal = Terminal("run", plan(SIGN), *OPTIONS)
    terminal.until(PROMPT)
    terminal.type(typed)
    assert terminal.end() == (0 if approved else 3)
    assert (project / "desk" / "a.md").exists() is approved
    step = capsule("report", "last", "--db", "runs.db", "--json").json["steps"][0]
    assert (step["approval"]["approved"], step["approval"]["by"]) == (approved, "terminal")
    assert approved or step["error"]["code"] == 1007


def test_the_question_shows_the_call_the_rule_and_what_is_granted(plan: WritePlan) -> None:
    terminal = Terminal("run", plan(SIGN), *OPTIONS)
    question = plain(terminal.until(PROMPT))
    assert "fs.write asks to run, at step sign (rule sign asks)" in question
    assert "  path: desk/a.md\n" in question
    assert "  content: Signed.\n" in question
    assert "desk/a.md" in question.partition("  grant files: ")[2]
    terminal.type("\n")
    assert terminal.end() == 3


def test_what_came_before_is_shown_before_the_question(plan: WritePlan) -> None:
    terminal = Terminal("run", plan(f"- {{id: look, tool: fs.read, args: {{path: docs/a.md}}}}\n{SIGN}"), *OPTIONS)
    assert "✓ look  fs.read" in plain(terminal.until(PROMPT))
    terminal.type("\n")
    assert terminal.end() == 3


def test_what_was_typed_before_the_question_is_no_answer(plan: WritePlan, project: Path) -> None:
    terminal = Terminal("run", plan(SIGN), *OPTIONS)
    terminal.type("y\ny\ny\n")
    terminal.until(PROMPT)
    assert terminal.is_quiet(0.5), "it still waits for an answer"
    terminal.type("\n")
    assert terminal.end() == 3
    assert not (project / "desk" / "a.md").exists()


def test_the_end_of_input_is_no(plan: WritePlan) -> None:
    terminal = Terminal("run", plan(SIGN), *OPTIONS)
    terminal.until(PROMPT)
    terminal.end_of_input()
    assert terminal.end() == 3


def test_one_question_at_a_time(plan: WritePlan, project: Path) -> None:
    terminal = Terminal("run", plan(f"{SIGN}\n{SIGN_ANOTHER}"), *OPTIONS)
    assert "desk/b.md" not in terminal.until(PROMPT)
    terminal.type("y\ny\n")  # one answer, and one that is too early
    assert "desk/b.md" in terminal.until(PROMPT)
    assert terminal.is_quiet(0.5), "it still waits for an answer"
    terminal.type("\n")
    assert terminal.end() == 3
    assert [path.name for path in (project / "desk").iterdir()] == ["a.md"]


def test_ctrl_c_at_the_question_interrupts_the_run(capsule: Typed, plan: WritePlan, project: Path) -> None:
    terminal = Terminal("run", plan(SIGN), *OPTIONS)
    terminal.until(PROMPT)
    terminal.interrupt()
    assert terminal.end() == 130
    assert "capsule: interrupted" in terminal.shown
    assert capsule("list-runs", "--db", "runs.db", "--json").json[0]["status"] == "interrupted"
    assert not (project / "desk" / "a.md").exists()


@pytest.mark.parametrize("leave", ["end_of_input", "interrupt"])
def test_whatever_ends_a_question_ends_its_line(plan: WritePlan, leave: str) -> None:
    terminal = Terminal("run", plan(SIGN), *OPTIONS)
    terminal.until(PROMPT)
    getattr(terminal, leave)()
    terminal.end()
    after = plain(terminal.shown).rpartition("[y/N] ")[2]
    assert after.partition("\n")[0].strip() in ("", "^C")


def test_all_of_what_is_long_can_be_seen(plan: WritePlan, project: Path) -> None:
    lines = "\\n".join(f"line {number}" for number in range(500)) + r"\e[2J"
    step = f'- {{id: sign, tool: fs.write, args: {{path: desk/a.md, content: "{lines}"}}}}'
    terminal = Terminal("run", plan(step), *OPTIONS)
    assert "line 499" not in plain(terminal.until(PROMPT))
    terminal.type("v\n")
    whole = plain(terminal.until(PROMPT))
    assert all(f"│ line {number}\n" in whole for number in range(1, 499))
    assert r"│ line 499\x1b[2J" in whole
    terminal.type("y\n")
    assert terminal.end() == 0
    assert (project / "desk" / "a.md").read_text().startswith("line 0\nline 1\n")


def test_a_long_value_never_begins_a_line_of_the_screen(plan: WritePlan) -> None:
    content = "x".ljust(300) + "  path: harmless.md" + "Allow this call? [y/N] ".rjust(400)
    step = f'- {{id: sign, tool: fs.write, args: {{path: desk/a.md, content: "{content}"}}}}'
    terminal = Terminal("run", plan(step), *OPTIONS)
    question = terminal.until(PROMPT)
    question += "" if terminal.is_quiet(0.2) else terminal.until(PROMPT)
    lines = plain(question).split("\n")
    assert max(map(len, lines)) <= 200
    assert [line for line in lines if line.startswith("  path: ")] == ["  path: desk/a.md"]
    assert [line for line in lines if line.startswith("Allow")] == ["Allow this call? [y/N] "]
    terminal.type("\n")
    assert terminal.end() == 3


def test_reads_are_not_asked_about_with_approve_reads(plan: WritePlan, project: Path) -> None:
    (project / "desk" / "c.md").write_text("Read me.\n")
    read = "- {id: look, tool: fs.read, args: {path: desk/c.md}}"
    terminal = Terminal("run", plan(f"{read}\n{SIGN}"), *OPTIONS, "--approve", "reads")
    assert "desk/c.md" not in terminal.until(PROMPT)
    terminal.type("y\n")
    assert terminal.end() == 0


def test_a_file_that_changes_under_the_question_is_not_what_was_approved(
    plan: WritePlan, project: Path, tmp_path: Path
) -> None:
    terminal = Terminal("run", plan(SIGN), *OPTIONS)
    terminal.until(PROMPT)
    (project / "desk" / "a.md").symlink_to(tmp_path / "elsewhere")
    terminal.type("y\n")
    assert terminal.end() == 3
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("content", "shown", "hidden"),
    [
        (r"\e]0;owned\a\e[2J", r"\x1b]0;owned\x07\x1b[2J", "\x1b]0;"),
        (r"safe\r\e[2KAllow this call? [y/N] ", r"\r\x1b[2KAllow", "safe\r\x1b"),
        (r"\u202ecod.exe", r"\u202ecod.exe", "\u202e"),
        ("AKIA" + "Q3EGRIT7WXZ5PLMV", "redacted", "Q3EGRIT7WXZ5PLMV"),
        ("x" * 5000, "xxx… (5000 characters)", "x" * 1001),
    ],
    ids=["escapes", "a question of its own", "right to left", "a secret", "long"],
)
def test_arguments_cannot_write_the_question(plan: WritePlan, content: str, shown: str, hidden: str) -> None:
    step = f'- {{id: sign, tool: fs.write, args: {{path: desk/a.md, content: "{content}"}}}}'
    terminal = Terminal("run", plan(step), *OPTIONS)
    question = terminal.until(PROMPT)
    question += "" if terminal.is_quiet(0.2) else terminal.until(PROMPT)
    assert shown in question
    assert hidden not in question
    terminal.type("\n")
    assert terminal.end() == 3


def test_wide_characters_take_two_columns() -> None:
    assert [line.count("漢") for line in _wrapped("漢" * 30, 20).split("\n")] == [10, 8, 8, 4]


def test_a_question_of_any_length_is_there_at_once() -> None:
    begun = time.monotonic()
    lines = _wrapped("  content: " + "a" * 1_000_000, 80).split("\n")
    assert max(map(len, lines)) == 80
    assert "".join(line.removeprefix("  │ ") for line in lines).count("a") == 1_000_000
    assert time.monotonic() - begun < 5
