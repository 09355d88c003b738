from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from capsule.errors import PlanError
from capsule.settings import Approve, Settings


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "capsule"
    directory.mkdir()
    return directory


def load(home: Path, config: str | None = None, **variables: str) -> Settings:
    if config is not None:
        (home / "config.toml").write_text(config)
    return Settings.load({"HOME": "/home/ada", "CAPSULE_HOME": str(home), **variables})


def refusal(home: Path, config: str | None = None, **variables: str) -> PlanError:
    with pytest.raises(PlanError) as refused:
        load(home, config, **variables)
    assert refused.value.code == 3001
    return refused.value


def settings(home: Path, db: Path | None = None, approve: Approve = Approve.ASK, debug: bool = False) -> Settings:
    return Settings(user_home=Path("/home/ada"), home=home, db=db or home / "runs.db", approve=approve, debug=debug)


def test_what_holds_when_nothing_is_said(home: Path) -> None:
    assert load(home) == settings(home)
    assert Settings.load({"HOME": "/home/ada"}) == settings(Path("/home/ada/.capsule"))


def test_loading_creates_nothing(tmp_path: Path) -> None:
    load(tmp_path / "x" / "y")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("", {}),
        ("# nothing\r\n", {}),
        ('\ufeffdb = "other.db"', {"db": "{home}/other.db"}),
        ('db = "/var/runs.db"', {"db": "/var/runs.db"}),
        ('db = "~/runs.db"', {"db": "/home/ada/runs.db"}),
        ('approve = "deny"\ndebug = true\n', {"approve": Approve.DENY, "debug": True}),
    ],
)
def test_the_file(home: Path, config: str, expected: dict[str, object]) -> None:
    found = load(home, config)
    assert str(found.db) == str(expected.get("db", "{home}/runs.db")).format(home=home)
    assert (found.approve, found.debug) == (expected.get("approve", Approve.ASK), expected.get("debug", False))


def test_variables_win_over_the_file(home: Path) -> None:
    found = load(
        home,
        'db = "a.db"\napprove = "all"\ndebug = true\n',
        CAPSULE_DB="/b.db",
        CAPSULE_APPROVE="reads",
        CAPSULE_DEBUG="0",
    )
    assert found == settings(home, Path("/b.db"), Approve.READS)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"CAPSULE_DEBUG": word}, {"debug": value})
        for value, words in ((True, "1 true YES on"), (False, "0 False no OFF"))
        for word in words.split()
    ]
    + [
        ({"CAPSULE_DB": "", "CAPSULE_APPROVE": "", "CAPSULE_DEBUG": ""}, {}),
        ({"CAPSULE_DB": "here.db"}, {"db": Path("here.db")}),
        ({"CAPSULE_DB": "~"}, {"db": Path("/home/ada")}),
        ({"CAPSULE_SOMETHING_ELSE": "x"}, {}),
    ],
)
def test_variables(home: Path, variables: dict[str, str], expected: dict[str, object]) -> None:
    found = load(home, **variables)
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("\n dbb = 1", "2:2: unknown key 'dbb'; did you mean 'db'? Allowed: approve, db, debug"),
        ('"aprove" = "ask"', "1:1: unknown key 'aprove'; did you mean 'approve'? Allowed: approve, db, debug"),
        ("[http]\nca = 1", "1:2: unknown key 'http'. Allowed: approve, db, debug"),
        ("http.ca = 1", "1:1: unknown key 'http'. Allowed: approve, db, debug"),
        ("'a b' = 1", "1:1: unknown key 'a b'. Allowed: approve, db, debug"),
        ('debug = true\napprove = "yes"', "2:11: approve: found 'yes', allowed: ask, reads, all, deny"),
        ('approve = "al"', "1:11: approve: found 'al'; did you mean 'all'? Allowed: ask, reads, all, deny"),
        ('debug = "true"', "1:9: debug: found 'true', allowed: true or false"),
        ("debug = 1", "1:9: debug: found 1, allowed: true or false"),
        ("db = 1979-05-27", "1:6: db: found a date, allowed: text"),
        ('"\\u0064b" = 1', "1:1: db: found 1, allowed: text"),
        ("[db]", "1:5: db: found a mapping, allowed: text"),
        ('db = ""', "1:6: db: found 0 characters, allowed: at least 1"),
        ('db = "a\\u0000b"', "1:6: db: found 'a\\x00b', allowed: text that matches "),
        ("debug = true\ndb ==", "2:5: not valid TOML: invalid value"),
        ('db = "x', "1:8: not valid TOML: "),
        ("db = 1\ndb = 2", "2:7: not valid TOML: cannot overwrite a value"),
        ("x = " + "[" * 5000, "1:5005: not valid TOML: nested too deeply"),
        ("x = " + "9" * 5000, "1:5005: not valid TOML: exceeds the limit"),
        ("#\n" + "a." * 100 + "a = 1", "2:1: more than 64 dots on one line"),
        ("#\u2028" + "'\u2028'." * 10_000 + "a = 1", "1:1: more than 64 dots on one line"),
        ("#" * 70_000, "1:65537: too large: allowed are 65,536 characters"),
        ("a = \0", "1:5: found a NUL byte, allowed: text"),
    ],
)
def test_a_bad_file(home: Path, config: str, message: str) -> None:
    assert refusal(home, config).message.startswith(f"{home}/config.toml:{message}")


def test_a_bad_file_is_refused_even_where_a_variable_wins(home: Path) -> None:
    assert "approve" in refusal(home, "approve = 1", CAPSULE_APPROVE="ask").message


def test_a_file_that_is_none(home: Path) -> None:
    os.mkfifo(home / "config.toml")
    assert refusal(home).message == f"{home}/config.toml: cannot read this settings file: it is a pipe"


def test_a_file_that_leads_nowhere(home: Path) -> None:
    (home / "config.toml").symlink_to("gone.toml")
    assert refusal(home).message == f"{home}/config.toml: cannot read this settings file: there is no such file"


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    home = tmp_path / "file"
    home.touch()
    assert "a part of its path is not a directory" in refusal(home).message


@pytest.mark.parametrize(
    ("variables", "message", "hint"),
    [
        (
            {"CAPSULE_APPROVE": "al"},
            "CAPSULE_APPROVE: found 'al'; did you mean 'all'? Allowed: ask, reads, all, deny",
            "unset CAPSULE_APPROVE, or correct it",
        ),
        (
            {"CAPSULE_DEBUG": "maybe"},
            "CAPSULE_DEBUG: found 'maybe', allowed: 1, true, yes, on, 0, false, no, off",
            "unset CAPSULE_DEBUG, or correct it",
        ),
        (
            {"CAPSULE_HOME": "capsule"},
            "CAPSULE_HOME: found 'capsule', allowed: an absolute path",
            "set CAPSULE_HOME to a path that begins with /",
        ),
        ({"HOME": "."}, "HOME: found '.', allowed: an absolute path", "set HOME to a path that begins with /"),
    ],
)
def test_a_bad_variable(home: Path, variables: dict[str, str], message: str, hint: str) -> None:
    error = refusal(home, **variables)
    assert (error.message, error.hint) == (message, hint)


def test_a_home_below_the_users_home() -> None:
    found = Settings.load({"HOME": "/home/ada", "CAPSULE_HOME": "~/elsewhere"})
    assert found == settings(Path("/home/ada/elsewhere"))


@pytest.mark.parametrize("variables", [{}, {"HOME": ""}])
def test_a_user_without_home_variable(variables: dict[str, str]) -> None:
    """Not the root of the file system, which an empty HOME would make of `~/…` patterns."""
    assert Settings.load(variables).user_home == Path(pwd.getpwuid(os.getuid()).pw_dir)


def test_nothing_in_the_working_directory_is_read(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("config.toml", ".capsule/config.toml", ".env", "capsule.toml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('approve = "all"')
    assert load(home) == settings(home)
