"""Class E5: whatever stands in a plan, a policy, a file or a journal, the terminal is told to do nothing by it.

The command line runs with and without a terminal; of what it prints every character is looked at.
"""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from gated import CAPSULE, Ran, code, db_of, dumped, gate_of, grown, newest, ran, read, records, step_of

from capsule.canon import Json

EVIL = (
    "\x1b]0;title\x07\x1b[2J\x9b31m\x9d\x90\u202e\u2066\r\n\nFAKE LINE <script>alert(1)</script>"
    "\u200b\u2028\x7f\x08\x00\ufeff\U000e0041"
)
NO_NUL = EVIL.replace("\0", "")
NAME = NO_NUL.replace("/", "|")
"""What a file can be called."""

GOES_ON: dict[str, Json] = {"continue_on_error": True}
PLAN: dict[str, Json] = {
    "name": EVIL,
    "description": EVIL,
    "inputs": {"x": {"type": "string", "description": EVIL, "default": EVIL}},
    "variables": {"v": EVIL},
    "steps": [
        step_of("fs.list", {"path": "docs"}, store_as="got", name=EVIL, description=EVIL),
        step_of("fs.read", {"path": f"docs/{NAME}"}, **GOES_ON),
        step_of("fs.read", {"path": f"docs/{EVIL}"}, **GOES_ON),
        step_of("fs.read", {"path": f"no/{NAME}"}, **GOES_ON),
        step_of("fs.read", {"path": f"denied/{NAME}"}, **GOES_ON),
        step_of("fs.read", {"path": f"none/{NAME}"}, **GOES_ON),
        step_of("fs.read", {"path": "docs/a", EVIL: EVIL}, **GOES_ON),
        step_of("fs.read", {"path": "docs/a", "encoding": EVIL}, **GOES_ON),
        step_of("fs.write", {"path": f"out/{NAME}", "content": EVIL}, **GOES_ON),
        step_of("http.get", {"url": f"https://example.com/{NO_NUL}"}, **GOES_ON),
        step_of("http.get", {"url": f"https://{NO_NUL}/"}, **GOES_ON),
        step_of("shell.run", {"command": ["git", NO_NUL]}, **GOES_ON),
        step_of(f"tool{EVIL}", {"x": EVIL}, **GOES_ON),
        step_of("fs.read", {"path": "{{ got.none }}"}, **GOES_ON),
        step_of("fs.read", {"path": "{{ item }}"}, foreach=[EVIL], **GOES_ON),
        step_of("fs.read", {"path": f"denied/{NAME}"}),
        step_of(f"tool{EVIL}", {}),
    ],
}
POLICY: Json = {
    "name": EVIL,
    "description": EVIL,
    "rules": [
        {
            "id": f"allow{EVIL}",
            "action": "allow",
            "tool": ["fs.*"],
            "why": EVIL,
            "constraints": {"paths": {"patterns": ["./docs/**", "./out/*", "./none/*"]}},
        },
        {
            "id": f"deny{EVIL}",
            "action": "deny",
            "tool": "*",
            "why": EVIL,
            "constraints": {"paths": {"pattern": "./denied"}},
        },
        {
            "id": f"web{EVIL}",
            "action": "allow",
            "tool": "http.get",
            "constraints": {"url": {"domains": ["example.com"]}},
        },
        {
            "id": f"git{EVIL}",
            "action": "ask",
            "tool": "shell.run",
            "constraints": {"command": {"executables": ["git"]}},
        },
    ],
}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path.resolve()
    workdir = grown(base / f"ws{NAME}", docs__a="a", out__old="old")
    (workdir / "docs" / NAME).write_text(EVIL)
    dumped(base / f"plan{NAME}.json", PLAN)
    dumped(base / "plan.json", PLAN)
    dumped(base / "policy.json", POLICY)
    return base


def _is_plain(data: bytes, *, colours: bool = False) -> None:
    """Text on its lines, and where there is a terminal our own colours."""
    text = data.decode()
    if colours:
        for known in ("\x1b[0m", *(f"\x1b[{number}m" for number in (1, 2, 31, 32, 33, 34)), "\r\x1b[2K", "\r\n"):
            text = text.replace(known, "")
    assert sorted({hex(ord(sign)) for sign in text if sign != "\n" and not sign.isprintable()}) == []
    assert "\nFAKE LINE" not in text


def _db(base: Path) -> Path:
    return base / f"journal{NAME}" / "runs.db"


def _run(base: Path, *words: object) -> Ran:
    """The names of the files are as evil as what they hold."""
    places = ("--policy", base / "policy.json", "--workdir", base / f"ws{NAME}", "--db", _db(base))
    return ran("run", base / f"plan{NAME}.json", *places, *words, cwd=base)


def test_e5_everything_that_shows_a_run(base: Path) -> None:
    db = _db(base)
    done = _run(base)
    assert done.code == 3, done.err
    _is_plain(done.out)
    _is_plain(done.err)
    run_id = newest(db).run_id
    for words in (
        ("report", run_id),
        ("report", run_id, "--json"),
        ("show-run", run_id),
        ("show-run", run_id, "--json"),
        ("list-runs",),
        ("list-runs", "--json"),
        ("verify",),
    ):
        shown = ran(*words, "--db", db, cwd=base)
        assert shown.code == 0, (words, shown.err)
        _is_plain(shown.out)
        _is_plain(shown.err)


def test_e5_the_report_of_a_run_as_json_is_still_the_value(base: Path) -> None:
    shown = _run(base, "--json")
    _is_plain(shown.out)
    plan = shown.json["plan"]
    assert isinstance(plan, Mapping)
    assert plan["name"] == EVIL


def test_e5_what_explains_a_policy(base: Path) -> None:
    for words, number in (
        (
            ("run", base / "plan.json", "--policy", base / "policy.json", "--workdir", base / f"ws{NAME}", "--dry-run"),
            3,
        ),
        (("policy", "check", base / "policy.json"), 0),
        (("policy", "explain", "--policy", base / "policy.json", "fs.read", f"path=denied/{NO_NUL}"), 0),
        (("policy", "explain", "--policy", base / "policy.json", "fs.read", f"path=no/{NO_NUL}"), 0),
        (("policy", "explain", "--policy", base / "policy.json", "fs.read", f"path=no/{NO_NUL}", "--json"), 0),
        (("policy", "test", base / "policy.json"), 0),
    ):
        shown = ran(*words, cwd=base)
        assert shown.code == number, (words, shown.err)
        _is_plain(shown.out)
        _is_plain(shown.err)


RUN = ("run", "plan.json", "--policy", "policy.json")
WRONG = {
    "no such run": ("report", NO_NUL),
    "no such plan": ("run", NO_NUL, "--policy", "policy.json"),
    "no such policy": ("run", "plan.json", "--policy", NO_NUL),
    "no such workdir": (*RUN, "--workdir", NO_NUL),
    "no such input": (*RUN, "--input", f"{NO_NUL}=1"),
    "no such file of inputs": (*RUN, "--input", f"@{NO_NUL}"),
    "no such mode": (*RUN, "--approve", NO_NUL),
    "no such option": (*RUN, f"--{NO_NUL}"),
    "not a plan": ("run", "bad.json", "--policy", "policy.json"),
    "an unknown key": ("run", "key.json", "--policy", "policy.json"),
    "not a template": ("run", "template.json", "--policy", "policy.json"),
    "not a policy": ("run", "plan.json", "--policy", "bad.json"),
    "no such journal": ("list-runs", "--db", NO_NUL),
    "no such tool": ("tools", "show", NO_NUL),
    "no such command": (NO_NUL,),
}


@pytest.mark.parametrize("name", WRONG)
def test_e5_what_is_wrong_is_said_plainly(base: Path, name: str) -> None:
    dumped(base / "bad.json", {"steps": EVIL, "rules": EVIL})
    dumped(base / "key.json", {"steps": [step_of("fs.read", {"path": "a"})], EVIL: EVIL})
    dumped(base / "template.json", {"steps": [step_of("fs.read", {"path": f"{{{{ x.{NO_NUL} }}}}"})]})
    shown = ran(*WRONG[name], cwd=base)
    assert shown.code == (5 if name in ("no such journal", "no such run") else 2)
    assert shown.err
    _is_plain(shown.out)
    _is_plain(shown.err)


@contextmanager
def _on_a_terminal(base: Path, *words: object) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The command line with a terminal of its own, on which it shows progress and asks."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*CAPSULE, *map(str, words)],
        cwd=base,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm"},
        preexec_fn=_take_the_terminal,
    ) as process:
        os.close(theirs)
        try:
            yield ours, process
        finally:
            process.kill()
            os.close(ours)


def _take_the_terminal() -> None:
    """What is opened first by the leader of a session becomes its terminal."""
    os.close(os.open(os.ttyname(0), os.O_RDWR))


def _shown_until(ours: int, word: bytes, *, seconds: float = 20) -> bytes:
    shown = b""
    deadline = time.monotonic() + seconds
    while word not in shown and time.monotonic() < deadline:
        if not select.select([ours], [], [], 0.1)[0]:
            continue
        try:
            shown += os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
    return shown


def _answered(ours: int, answer: bytes) -> bytes:
    """What is shown after an answer; given again where it came so early that it was thrown away."""
    shown = b""
    for _ in range(20):
        os.write(ours, answer)
        shown += _shown_until(ours, b"capsule report", seconds=1)
        if b"capsule report" in shown:
            break
    return shown


@pytest.mark.parametrize(("answer", "number", "left"), [(b"y\n", 2005, "intent"), (b"\n", 1007, "refused")])
def test_e5_progress_and_the_question_on_a_terminal(base: Path, answer: bytes, number: int, left: str) -> None:
    db = _db(base)
    dumped(
        base / "ask.json",
        {"steps": [step_of("fs.read", {"path": f"docs/{NAME}"}), step_of("shell.run", {"command": ["git", NO_NUL]})]},
    )
    words = ("run", base / "ask.json", "--policy", base / "policy.json", "--workdir", base / f"ws{NAME}", "--db", db)
    with _on_a_terminal(base, *words) as (ours, process):
        shown = _shown_until(ours, b"[y/N]")
        shown += _answered(ours, answer)
        assert process.wait(20) in (1, 3)
    assert b"[y/N]" in shown
    _is_plain(shown, colours=True)
    last = [record for record in records(db) if record.kind in ("outcome", "refused")][-1].body
    assert isinstance(last["error"], Mapping)
    assert last["error"]["code"] == number
    assert left in [record.kind for record in records(db)][-3:]


def test_e5_what_was_typed_before_the_question_is_no_answer(base: Path) -> None:
    db = _db(base)
    dumped(base / "ask.json", {"steps": [step_of("shell.run", {"command": ["git", "status"]})]})
    words = ("run", base / "ask.json", "--policy", base / "policy.json", "--workdir", base / f"ws{NAME}", "--db", db)
    with _on_a_terminal(base, *words) as (ours, process):
        os.write(ours, b"y\ny\ny\n")
        shown = _shown_until(ours, b"[y/N]")
        assert b"[y/N]" in shown
        time.sleep(0.2)
        assert process.poll() is None
        _answered(ours, b"n\n")
        assert process.wait(20) == 3
    assert [record.body["approved"] for record in records(db) if record.kind == "answer"] == [False]


def test_e5_the_record_itself_keeps_every_character(base: Path) -> None:
    """Escaping is for the eye; what is proved is what was there."""
    workdir = base / f"ws{NAME}"
    policy = "rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: ./docs/**}}}]"
    with gate_of(workdir, policy) as gate:
        result = gate.call(read(f"docs/{NAME}", encoding="utf-8"))
    assert code(result) is None
    output = records(db_of(workdir))[2].body["output"]
    assert isinstance(output, Mapping)
    assert output["content"] == EVIL
