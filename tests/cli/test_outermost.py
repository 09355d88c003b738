"""The edge: every failure is one message and an exit code, and with `--json` one document."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typed import Typed, WritePlan

from capsule.cli.outermost import exit_code_of, guarded
from capsule.errors import KINDS, CapsuleError, PlanError, StorageError

READ = "- {id: read, tool: fs.read, args: {path: docs/a.md}}"


@pytest.mark.parametrize("code", KINDS)
def test_every_code_has_an_exit_code(code: int) -> None:
    exits = {1: 3, 2: 1, 3: 2, 4: 4, 5: 5, 6: 1, 7: 1, 8: 2, 9: 1}
    special = {2001: 2, 2002: 2, 4001: 2, 5004: 4}
    assert exit_code_of(CapsuleError(code, "")) == special.get(code, exits[code // 1000])


def fail(error: BaseException) -> Callable[[], object]:
    def command() -> object:
        raise error

    return command


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (lambda: None, 0, ""),
        (lambda: 3, 3, ""),
        (fail(SystemExit(2)), 2, ""),
        (fail(SystemExit("no")), 1, ""),
        (fail(KeyboardInterrupt()), 130, ""),
        (fail(StorageError(5002, "full", hint="free some")), 5, "capsule: full [5002]\n  hint: free some\n"),
        (fail(PlanError(3001, "wrong")), 2, "capsule: wrong [3001]\n"),
        (fail(ValueError("odd")), 1, "capsule: unexpected ValueError: odd [9001]\n  hint: run it again as "),
        (fail(PermissionError(13, "no", "file")), 1, "capsule: unexpected PermissionError: "),
    ],
)
def test_whatever_is_raised_becomes_a_code(
    capsys: pytest.CaptureFixture[str], command: Callable[[], object], code: int, said: str
) -> None:
    assert guarded(command, debug=False, as_json=False) == code
    out, err = capsys.readouterr()
    assert (out, err[: len(said)], bool(err)) == ("", said, bool(said))
    assert "Traceback" not in err


def test_what_cannot_be_written_is_left_to_the_entry() -> None:
    with pytest.raises(BrokenPipeError):
        guarded(fail(BrokenPipeError(32, "gone")), debug=False, as_json=False)


@pytest.fixture
def recorded(capsule: Typed, plan: WritePlan) -> str:
    run_id = capsule("run", plan(READ), "--policy", "policy.yaml", "--db", "runs.db", "--json").json["run_id"]
    assert isinstance(run_id, str)
    return run_id


def missing(db: Path) -> None:
    db.unlink()


def foreign_text(db: Path) -> None:
    db.write_text("Dear diary,\n" * 100)


def foreign_database(db: Path) -> None:
    db.unlink()
    with closing(sqlite3.connect(db)) as other:
        other.execute("CREATE TABLE diary (day TEXT)")


def directory(db: Path) -> None:
    db.unlink()
    db.mkdir()


def newer(db: Path) -> None:
    with closing(sqlite3.connect(db)) as mine:
        mine.execute("PRAGMA user_version = 99")


def cut_off(db: Path) -> None:
    with db.open("r+b") as stream:
        stream.truncate(5000)


STORES: list[tuple[Callable[[Path], None], int]] = [
    (missing, 5001),
    (foreign_text, 5001),
    (foreign_database, 5001),
    (directory, 5001),
    (newer, 5005),
    (cut_off, 5003),
]


@pytest.mark.parametrize(("spoil", "code"), STORES, ids=lambda value: getattr(value, "__name__", str(value)))
@pytest.mark.parametrize("words", [["list-runs"], ["show-run", "last"], ["report", "last"], ["verify"]], ids=" ".join)
def test_a_journal_that_is_none_is_exit_5_and_left_alone(
    capsule: Typed, project: Path, recorded: str, words: list[str], spoil: Callable[[Path], None], code: int
) -> None:
    db = project / "runs.db"
    spoil(db)
    before = db.read_bytes() if db.is_file() else None
    ran = capsule(*words, "--db", "runs.db", "--json")
    assert ran.code == 5
    assert ran.json["error"]["code"] == code
    assert ran.json["error"]["hint"]
    assert ran.err.startswith("capsule: ")
    assert (db.read_bytes() if db.is_file() else None) == before


@pytest.mark.parametrize("spoil", [foreign_text, foreign_database, directory, newer], ids=lambda value: value.__name__)
def test_nothing_runs_unrecorded(
    capsule: Typed, plan: WritePlan, project: Path, recorded: str, spoil: Callable[[Path], None]
) -> None:
    spoil(project / "runs.db")
    name = plan("- {tool: fs.write, args: {path: out/a.md, content: x, create_dirs: true}}")
    assert capsule("run", name, "--policy", "policy.yaml", "--db", "runs.db").code == 5
    assert not (project / "out").exists()


def test_a_journal_that_was_altered_is_exit_4(capsule: Typed, project: Path, recorded: str) -> None:
    db = project / "runs.db"
    db.write_bytes(db.read_bytes().replace(b"docs/a.md", b"docs/b.md"))
    ran = capsule("verify", "--db", "runs.db")
    assert ran.code == 4
    assert f"✗ {recorded}  record " in ran.out
    assert ran.out.endswith("1 run, 1 broken\n")


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (["list-runs", "--status", "lost", "--json"], 2, "usage_error"),
        (["tools", "show", "fs.reed", "--json"], 2, "validation_error"),
        (["policy", "check", "none.yaml", "--json"], 2, "validation_error"),
        (["policy", "explain", "fs.reed", "--policy", "policy.yaml", "--json"], 2, "validation_error"),
        (["policy", "explain", "fs.read", "--json"], 2, "usage_error"),
        (["run", "none.yaml", "--policy", "policy.yaml", "--json"], 2, "validation_error"),
        (["run", "--json"], 2, "usage_error"),
        (["show-run", "none", "--db", "runs.db", "--json"], 2, "replay_error"),
        (["report", "none", "--db", "runs.db", "--json"], 2, "replay_error"),
        (["verify", "none", "--db", "runs.db", "--json"], 2, "replay_error"),
        (["verify", "--head", "0", "--db", "runs.db", "--json"], 2, "usage_error"),
        (["list-runs", "--db", "none.db", "--json"], 5, "storage_error"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_failure_is_one_document_too(capsule: Typed, recorded: str, words: list[str], code: int, kind: str) -> None:
    ran = capsule(*words)
    error = ran.json["error"]
    assert (ran.code, error["kind"]) == (code, kind)
    assert list(error) == ["code", "kind", "message", "hint"]
    assert error["message"] in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ["list-runs"],
        ["show-run", "last"],
        ["report", "last"],
        ["verify"],
        ["verify", "last"],
        ["doctor"],
        ["run", "plan.yaml", "--policy", "policy.yaml"],
        ["run", "plan.yaml", "--policy", "policy.yaml", "--dry-run"],
    ],
    ids=" ".join,
)
def test_json_is_exactly_one_document(capsule: Typed, recorded: str, words: list[str]) -> None:
    ran = capsule(*words, "--db", "runs.db", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json


def test_a_run_that_is_not_there_names_the_nearest(capsule: Typed, recorded: str) -> None:
    near = recorded[:-1] + ("0" if recorded[-1] != "0" else "1")
    ran = capsule("show-run", near, "--db", "runs.db")
    assert ran.code == 2
    assert ran.err.splitlines() == [f"capsule: there is no run '{near}' [4001]", f"  hint: the nearest: {recorded}"]


@pytest.mark.parametrize("line", ["list-runs --db runs.db", "schema policy", "--help", "--version"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_hears_nothing_more(shell: Typed, recorded: str, line: str, unbuffered: str) -> None:
    ran = shell(f"capsule {line} | head -0; exit ${{PIPESTATUS[0]}}", PYTHONUNBUFFERED=unbuffered)
    assert (ran.out, ran.err) == ("", "")
    assert ran.code in (0, 1), "0 where the pipe took all before its reader went"


@pytest.mark.parametrize("line", ["list-runs --db runs.db", "schema policy", "--help", "--version"])
def test_output_that_cannot_be_written_is_exit_1(shell: Typed, recorded: str, line: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no full device")
    ran = shell(f"capsule {line} > /dev/full", PYTHONUNBUFFERED="")
    assert (ran.code, ran.err) == (1, "capsule: standard output: No space left on device\n")


def test_streams_may_be_closed(shell: Typed, plan: WritePlan) -> None:
    assert shell(f"capsule run {plan(READ)} --policy policy.yaml --db runs.db <&- >&- 2>&-").code == 0
    assert shell("capsule verify --db runs.db").code == 0


def test_a_traceback_is_shown_only_when_asked_for(
    capsule: Typed, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["policy", "check", "none.yaml"]
    assert "Traceback" not in capsule(*words).err
    assert "Traceback" in capsule("--debug", *words).err
    monkeypatch.setenv("CAPSULE_DEBUG", "true")
    assert "Traceback" in capsule(*words).err


def test_what_is_shown_of_a_file_cannot_steer_the_terminal(capsule: Typed, project: Path) -> None:
    (project / "evil.yaml").write_text('rules: [{action: "\\e]0;owned\\a", tool: fs.read}]\n')
    ran = capsule("policy", "check", "evil.yaml")
    assert ran.code == 2
    assert "\x1b" not in ran.err
    assert "\x07" not in ran.err
