"""`capsule report`"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from journals import forge
from typed import Ran, Typed, WritePlan

from capsule.documents import schema
from capsule.report import REPORT_SCHEMA
from capsule.settings import Settings

STEPS = """\
- {id: read, tool: fs.read, args: {path: docs/a.md}, store_as: a}
- {id: make, tool: fs.write, args: {path: out/b.md, content: "{{ a.content }}", create_dirs: true}}
- {id: sign, tool: fs.write, args: {path: desk/c.md, content: x}}
- {id: peek, tool: fs.read, args: {path: .env}}
"""


@pytest.fixture
def ran(capsule: Typed, plan: WritePlan) -> Ran:
    return capsule("run", plan(STEPS), "--policy", "policy.yaml", "--approve", "all", "--db", "runs.db", "--json")


def test_the_whole_run_on_a_page(capsule: Typed, ran: Ran) -> None:
    timeline, _, summary = capsule("report", "last", "--db", "runs.db").out.partition("\n\n")
    assert timeline == capsule("show-run", "last", "--db", "runs.db").out.rpartition("\ndenied: ")[0]
    assert summary.splitlines()[:-1] == [
        "  files read         ./docs/a.md",
        "  files written      ./desk/c.md",
        "                     ./out/b.md",
        "  denied 1001 peek: no rule allows ./.env",
        '    to allow: add "./.env" to the path of rule read',
    ]


def test_as_json_it_is_what_its_schema_says(capsule: Typed, ran: Ran) -> None:
    report = capsule("report", "last", "--db", "runs.db", "--json").json
    assert schema.problems(report, REPORT_SCHEMA) == []
    assert report["summary"]["resources"] == {
        "files_read": ["./docs/a.md"],
        "files_written": ["./desk/c.md", "./out/b.md"],
        "domains_contacted": [],
        "shell_commands": [],
    }
    error = report["steps"][3]["error"]
    assert list(error) == ["code", "kind", "message", "retriable", "retry_after_ms", "hint"]
    assert (error["code"], error["kind"], error["retriable"]) == (1001, "policy_denied", False)
    approval = report["steps"][2]["approval"]
    assert (approval["approved"], approval["by"]) == (True, "--approve all")


@pytest.mark.parametrize("words", [[], ["--json"], ["--format", "json"], ["--format", "console"]], ids=" ".join)
@pytest.mark.parametrize("option", ["-o", "--output"])
def test_a_file_gets_what_the_terminal_would(
    capsule: Typed, ran: Ran, project: Path, words: list[str], option: str
) -> None:
    shown = capsule("report", "last", "--db", "runs.db", *words)
    written = capsule("report", "last", "--db", "runs.db", *words, option, "report.txt")
    assert (written.code, written.out, written.err) == (0, "", "")
    assert _timeless((project / "report.txt").read_text()) == _timeless(shown.out)


def _timeless(text: str) -> list[str]:
    return [line for line in text.splitlines() if "generated_at" not in line]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("none/report.txt", "none/report.txt cannot be written: No such file or directory"),
        ("docs", "docs cannot be written: Is a directory"),
        ("runs.db", "runs.db is a file of Capsule's own"),
        ("runs.db-wal", "runs.db-wal is a file of Capsule's own"),
    ],
)
def test_a_file_that_cannot_be_is_exit_2(capsule: Typed, ran: Ran, file: str, message: str) -> None:
    written = capsule("report", "last", "--db", "runs.db", "-o", file)
    assert written.code == 2
    assert message in written.err
    assert capsule("verify", "--db", "runs.db").code == 0


def test_a_journal_that_cannot_be_read_leaves_an_earlier_report_alone(capsule: Typed, ran: Ran, project: Path) -> None:
    capsule("report", "last", "--db", "runs.db", "-o", "report.txt")
    before = (project / "report.txt").read_text()
    altered = "[]"
    forge(project / "runs.db", "UPDATE records SET body = ? WHERE kind = 'outcome'", values=(altered,))
    for words in (["--json"], ["-o", "report.txt"], ["--json", "-o", "report.txt"], []):
        shown = capsule("report", "last", "--db", "runs.db", *words)
        assert (shown.code, (project / "report.txt").read_text()) == (4, before)
        assert "cannot be understood" in shown.err


@pytest.mark.parametrize("command", ["report", "show-run"])
@pytest.mark.parametrize("words", [[], ["--json"]], ids=["lines", "json"])
def test_an_altered_run_is_shown_and_said_to_be_so(
    capsule: Typed, ran: Ran, project: Path, command: str, words: list[str]
) -> None:
    whole = capsule(command, "last", "--db", "runs.db", *words)
    assert (whole.code, whole.err) == (0, "")
    forge(project / "runs.db", "UPDATE records SET body = replace(body, 'docs/a.md', 'docs/b.md')")
    shown = capsule(command, "last", "--db", "runs.db", *words)
    assert shown.code == 4
    assert "docs/b.md" in (shown.out if not words else json.dumps(shown.json))
    assert f"run {ran.json['run_id']} was altered: record " in shown.err


def test_who_approved_is_said(capsule: Typed, ran: Ran) -> None:
    assert "(approved by --approve all)" in capsule("report", "last", "--db", "runs.db").out


def test_the_key_is_no_place_for_a_report(capsule: Typed, ran: Ran, project: Path) -> None:
    key = Settings.load(os.environ).home / "key"
    before = key.read_bytes()
    (project / "report.txt").hardlink_to(key)
    for name in (str(key), "report.txt"):
        written = capsule("report", "last", "--db", "runs.db", "-o", name)
        assert (written.code, key.read_bytes()) == (2, before)
        assert "is a file of Capsule's own" in written.err


def test_another_format_is_not_there_yet(capsule: Typed, ran: Ran) -> None:
    wanted = capsule("report", "last", "--db", "runs.db", "--format", "html")
    assert wanted.code == 2
    assert "'html' is not one of 'console', 'json'" in wanted.err


def test_a_secret_is_a_finding_and_is_not_shown(capsule: Typed, plan: WritePlan, project: Path) -> None:
    key = "AKIA" + "Q3EGRIT7WXZ5PLMV"
    (project / "docs" / "key.txt").write_text(f"key {key}\n")
    step = "- {id: key, tool: fs.read, args: {path: docs/key.txt}}"
    assert key not in capsule("run", plan(step), "--policy", "policy.yaml", "--json").out
    report = capsule("report", "last").out
    assert "(1 finding)" in report
    assert key not in report
