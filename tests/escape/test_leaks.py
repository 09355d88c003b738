"""Class E2 through the command line: no secret that the screen knows is on the disk or on the terminal afterwards.

What a single call or record could give away is tried in `tests/gate/test_masking.py`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import pytest
from gated import MARK, TOKEN, Ran, bodies, db_of, dumped, everything_stored, grown, holds, newest, ran, step_of, tree

from capsule.canon import Json

BEARER = "Bearer " + TOKEN[4:30] + "x1"

POLICY = f"""
name: with {TOKEN}
rules:
  - {{action: allow, tool: [fs.read, fs.list], constraints: {{path: {{pattern: "./docs/**"}}}}, why: "because {TOKEN}"}}
  - {{action: allow, tool: fs.write, constraints: {{path: {{pattern: "./out/*"}}}}}}
  - {{action: allow, tool: http.get, constraints: {{url: {{domains: [example.com]}}, headers: {{type: object}}}}}}
  - {{action: allow, tool: shell.run, constraints: {{command: {{executables: [git]}}, env: {{type: object}}}}}}
"""

ENCODED = b64encode(f"key = {TOKEN}".encode()).decode()
PLAIN = "correcthorsebatterystaple"
PASSWORD = "Sup3rS3cretPw"

GOES_ON: dict[str, Json] = {"continue_on_error": True}

PLAN: dict[str, Json] = {
    "name": f"plan {TOKEN}",
    "description": TOKEN,
    "inputs": {
        "key": {"type": "string"},
        "all": {"type": "object"},
        "bytes": {"type": "string", "default": ENCODED},
        "form": {"type": "string", "default": "base64"},
    },
    "variables": {"also": TOKEN, "coded": ENCODED},
    "steps": [
        step_of("fs.read", {"path": "docs/key"}, store_as="got", name=TOKEN),
        step_of("fs.read", {"path": "docs/key", "encoding": "base64"}),
        step_of("fs.read", {"path": "docs/large"}),
        step_of("fs.list", {"path": "docs"}),
        step_of("fs.read", {"path": f"docs/{TOKEN}"}, **GOES_ON),
        step_of("fs.read", {"path": f"other/{TOKEN}"}, **GOES_ON),
        step_of("fs.write", {"path": "out/x", "content": "{{ inputs.key }} {{ also }}"}),
        step_of("fs.write", {"path": "out/copy", "content": "{{ got.content }}"}, **GOES_ON),
        step_of("fs.write", {"path": f"out/{TOKEN}", "content": "x"}, **GOES_ON),
        step_of("fs.write", {"path": "out/bytes", "content": ENCODED, "encoding": "base64"}),
        step_of("fs.write", {"path": "out/later", "content": "{{ coded }}", "encoding": "base64"}),
        step_of("fs.write", {"path": "out/given", "content": "{{ inputs.bytes }}", "encoding": "base64"}),
        step_of("fs.write", {"path": "out/form", "content": ENCODED, "encoding": "{{ inputs.form }}"}),
        step_of("fs.write", {"path": "out/lines", "content": f"{ENCODED}\n", "encoding": "base64"}, **GOES_ON),
        step_of("http.get", {"url": "https://example.com", "headers": {"authorization": PLAIN}}, **GOES_ON),
        step_of("http.get", {"url": "https://example.com", "headers": {"Cookie": PLAIN}}, **GOES_ON),
        step_of("http.get", {"url": f"https://bob:{PASSWORD}@example.com/"}, **GOES_ON),
        step_of("http.get", {"url": "https://example.com", "headers": {"Authorization": BEARER}}, **GOES_ON),
        step_of("http.get", {"url": f"https://x:{TOKEN}@example.com/{TOKEN}?t={TOKEN}"}, **GOES_ON),
        step_of("shell.run", {"command": ["git", TOKEN], "env": {"T": TOKEN}, "stdin": TOKEN}, **GOES_ON),
        step_of("fs.read", {"path": "docs/a", TOKEN: TOKEN}, **GOES_ON),
        step_of(f"tool.{TOKEN}", {}, **GOES_ON),
        step_of("fs.read", {"path": f"{{{{ inputs.all['{TOKEN}'] }}}}"}, **GOES_ON),
        step_of("fs.read", {"path": "{{ item }}"}, foreach=[TOKEN], **GOES_ON),
        step_of("fs.read", {"path": "docs/none"}),
        step_of("fs.read", {"path": TOKEN}, description=TOKEN),
    ],
}


@pytest.fixture
def base(workdir: Path) -> Path:
    grown(workdir, docs__a="a", docs__key=f"key = {TOKEN}", docs__large="x" * 30_000 + TOKEN, out__old="old")
    (workdir / "docs" / f"of-{TOKEN}").write_text("named so")
    grown(workdir.parent, **{"policy.yaml": POLICY})
    dumped(workdir.parent / "plan.json", PLAN)
    return workdir.parent


FORMS = [TOKEN, BEARER.removeprefix("Bearer "), ENCODED[8:48], PLAIN, PASSWORD]


def test_e2_a_whole_run_leaves_no_secret(base: Path, workdir: Path, isolated_home: Path) -> None:
    db = db_of(workdir)
    done = _capsule(base, workdir, "--input", f"key={TOKEN}", "--input", f'all={{"k": "{TOKEN}"}}')
    assert done.code == 3, done.err
    first = newest(db).run_id
    shown = [done]
    for words in (("report", "last"), ("report", "last", "--json"), ("show-run", "last"), ("list-runs",), ("verify",)):
        shown.append(ran(*words, "--db", db, cwd=workdir))
        assert shown[-1].code == 0, shown[-1].err
    shown.append(_capsule(base, workdir, "--json", "--input", f"key={TOKEN}", "--input", "all={}"))
    stored = everything_stored(db) + b"".join(_beside(isolated_home))
    for secret in FORMS:
        assert secret.encode() not in stored
        for each in shown:
            assert secret.encode() not in each.out + each.err
    assert holds(db)
    assert len(bodies(db, "intent", first)) + len(bodies(db, "refused", first)) == 25
    assert (workdir / "out/x").read_text() == f"{TOKEN} {TOKEN}"
    assert not (workdir / "out/copy").exists()


def _capsule(base: Path, workdir: Path, *words: str) -> Ran:
    places = ("--policy", base / "policy.yaml", "--workdir", workdir, "--db", db_of(workdir))
    return ran("run", base / "plan.json", *places, *words, cwd=base)


def _beside(home: Path) -> list[bytes]:
    """What lies in Capsule's home, but for the key."""
    return [held for name, held in tree(home).items() if isinstance(held, bytes) and not name.endswith("key")]


def test_e2_the_marker_says_what_stood_there(base: Path, workdir: Path) -> None:
    _capsule(base, workdir, "--input", f"key={TOKEN}", "--input", "all={}")
    (start,) = bodies(db_of(workdir), "start")
    assert start["plan_name"] == f"plan {MARK}"
    first = bodies(db_of(workdir), "outcome")[0]
    output = first["output"]
    assert isinstance(output, Mapping)
    assert (output["content"], output["sha256"]) == (f"key = {MARK}", None)


def test_e2_a_failure_before_the_run_tells_none(base: Path, workdir: Path) -> None:
    """What a message quotes, of inputs, words or a broken plan, is masked."""
    plans: list[tuple[dict[str, Json], tuple[str, ...]]] = [
        (PLAN, ("--input", f"all={TOKEN}")),
        (PLAN, ("--input", f"all=[{TOKEN}]")),
        (PLAN, ("--input", TOKEN)),
        (PLAN, ("--input", f"{TOKEN}=x")),
        (PLAN, (f"--{TOKEN}",)),
        ({**PLAN, "inputs": {"n": {"type": "integer"}}}, ("--input", f"n={TOKEN}")),
        ({**PLAN, "inputs": {"n": {"type": "array"}}}, ("--input", f"n={TOKEN}")),
        ({**PLAN, TOKEN: 1}, ()),
        ({**PLAN, "steps": [step_of("fs.read", {}, id=TOKEN)]}, ()),
        ({**PLAN, "variables": {"v": "{{ inputs.all.nope }}"}}, ("--input", f'all={{"{TOKEN}": 1}}')),
    ]
    for plan, words in plans:
        dumped(base / "plan.json", plan)
        for more in ((), ("--json",), ("--dry-run",)):
            done = _capsule(base, workdir, *words, *more)
            assert done.code in {1, 2}, done.err
            assert b"Traceback" not in done.err
            assert done.err
            assert TOKEN[:20].encode() not in done.out + done.err
    assert TOKEN.encode() not in (everything_stored(db_of(workdir)) if db_of(workdir).exists() else b"")


def test_e2_what_is_only_decided_tells_none_either(base: Path, workdir: Path) -> None:
    given = ("--input", f"key={TOKEN}", "--input", f'all={{"{TOKEN}": 1}}')
    explain = ("policy", "explain", "--policy", base / "policy.yaml")
    dumped(base / "calls.jsonl", {"tool": "fs.read", "args": {"path": f"other/{TOKEN}"}})
    for done in (
        _capsule(base, workdir, "--dry-run", *given),
        _capsule(base, workdir, "--dry-run", "--json", *given),
        ran(*explain, "fs.read", f"path=other/{TOKEN}", cwd=base),
        ran(*explain, "fs.read", f"path=other/{TOKEN}", "--json", cwd=base),
        ran(*explain, "http.get", f"url=https://{TOKEN}.example/", f'headers:={{"Cookie": "{PLAIN}"}}', cwd=base),
        ran("policy", "decide", "--policy", base / "policy.yaml", "--calls", base / "calls.jsonl", cwd=base),
        ran(TOKEN, cwd=base),
        ran("--debug", "policy", "explain", TOKEN, "--policy", base / "policy.yaml", cwd=base),
    ):
        assert done.out + done.err
        for secret in FORMS:
            assert secret.encode() not in done.out + done.err
