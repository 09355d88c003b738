"""The seven steps, seen from outside: what a call does, what it answers, and what the journal then holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest
from gated import (
    TOKEN,
    Body,
    LateClock,
    bodies,
    code,
    db_of,
    ends_as,
    everything_stored,
    gate_of,
    holds,
    kinds,
    made,
    newest,
    read,
    records,
    tree,
    write,
)

from capsule.approval import allow_all, deny_all
from capsule.calls import (
    Access,
    Approver,
    CallError,
    Components,
    ConcreteCommand,
    ConcretePath,
    Context,
    Places,
    RunStatus,
    Source,
    Status,
    ToolCall,
    World,
)
from capsule.calls.concrete import Resolved
from capsule.canon import Json, digest
from capsule.errors import PolicyDenied, StorageError, ToolError
from capsule.gate import Gate, Step
from capsule.policy import Policy

POLICY = """
rules:
  - {id: docs, action: allow, tool: [fs.read, fs.list], constraints: {path: {pattern: ./docs/**}}}
  - {id: out, action: allow, tool: fs.write, constraints: {path: {pattern: "./out/*"}}}
  - {id: asked, action: ask, tool: fs.write, constraints: {path: {pattern: "./asked/*"}}}
  - {id: never, action: deny, tool: "*", constraints: {paths: {pattern: "**/b"}}, why: It is b.}
  - {id: web, action: allow, tool: http.get, constraints: {url: {domains: [example.com]}}}
"""
MADE = "rules: [{id: made, action: allow, tool: made.tool}]"


@pytest.mark.parametrize(
    ("call", "approver", "status", "number", "left"),
    [
        pytest.param(read("docs/a"), deny_all, "success", None, ["intent", "outcome"], id="allow"),
        pytest.param(read("docs/b"), deny_all, "denied", 1001, ["refused"], id="deny"),
        pytest.param(read("other/c"), deny_all, "denied", 1001, ["refused"], id="no-rule-matches"),
        pytest.param(
            ToolCall(tool="shell.run", args={"command": ["ls"]}), deny_all, "denied", 1000, ["refused"], id="no-rule"
        ),
        pytest.param(
            write("asked/x", create_dirs=True),
            allow_all,
            "success",
            None,
            ["question", "answer", "intent", "outcome"],
            id="ask-yes",
        ),
        pytest.param(write("asked/x"), deny_all, "denied", 1007, ["question", "answer", "refused"], id="ask-no"),
        pytest.param(read("docs/a", ofset=3), deny_all, "error", 2002, ["refused"], id="unknown-argument"),
        pytest.param(read("docs/a", offset="3"), deny_all, "error", 2002, ["refused"], id="wrong-type"),
        pytest.param(ToolCall(tool="fs.read"), deny_all, "error", 2002, ["refused"], id="missing-argument"),
        pytest.param(write("out/x", "?", encoding="base64"), deny_all, "error", 2002, ["refused"], id="not-base64"),
        pytest.param(ToolCall(tool="fs.raed"), deny_all, "error", 2001, ["refused"], id="unknown-tool"),
        pytest.param(read("docs/none"), deny_all, "error", 2003, ["intent", "outcome"], id="the-tool-fails"),
        pytest.param(
            ToolCall(tool="http.get", args={"url": "https://example.com"}),
            deny_all,
            "error",
            2005,
            ["intent", "outcome"],
            id="not-available",
        ),
    ],
)
def test_every_call_is_answered_and_recorded(
    workdir: Path, db: Path, call: ToolCall, approver: Approver, status: str, number: int | None, left: list[str]
) -> None:
    with gate_of(workdir, POLICY, approver=approver) as gate:
        result = gate.call(call)
    assert (result.status, code(result)) == (status, number)
    assert result.call_id == f"{gate.run_id}.1"
    assert kinds(db) == ["start", *left, "end"]
    last = records(db)[-2].body
    assert (last["call"], last["status"]) == (1, status)
    error = last.get("error")
    assert (error["code"] if isinstance(error, Mapping) else None) == number
    assert ends_as(db, gate.run_id) is RunStatus.COMPLETED


def _without_times(body: Body) -> dict[str, Json]:
    return {name: value for name, value in body.items() if name not in ("at", "duration_ms")}


def test_an_intent_names_call_rule_and_grant_in_full(workdir: Path, db: Path) -> None:
    with gate_of(workdir, POLICY) as gate:
        gate.call(read("./docs/../docs/a", source=Source.AGENT, offset=2), step=Step(id="look", index=7))
    (intent,), (outcome,) = bodies(db, "intent"), bodies(db, "outcome")
    assert _without_times(intent) == {
        "call": 1,
        "step": "look",
        "step_index": 7,
        "tool": "fs.read",
        "args": {"path": "./docs/../docs/a", "offset": 2},
        "source": "agent",
        "decision": {"rule": "docs"},
        "grant": {"files": ["read ./docs/a"]},
    }
    assert _without_times(outcome) == {
        "call": 1,
        "begun": 2,
        "status": "success",
        "flags": ["untrusted"],
        "output": {
            "path": "./docs/../docs/a",
            "content": "xt of a",
            "encoding": "utf-8",
            "size": 9,
            "sha256": digest(b"xt of a"),
            "truncated": False,
            "next_offset": None,
        },
    }


def test_a_denial_names_rule_and_reason_and_what_would_allow_it(workdir: Path, db: Path) -> None:
    with gate_of(workdir, POLICY) as gate:
        denied = gate.call(read("docs/b"))
        unmatched = gate.call(read("other/c"))
    first, second = bodies(db, "refused")
    assert first["decision"] == {
        "effect": "deny",
        "code": 1001,
        "rule": "never",
        "reason": "rule never denies it: It is b.",
        "suggestion": "no other rule can lift a deny; narrow never if this call is meant",
    }
    assert denied.error == CallError(
        code=1001,
        message="rule never denies it: It is b.",
        hint="no other rule can lift a deny; narrow never if this call is meant",
    )
    assert unmatched.error is not None
    assert unmatched.error.hint is not None
    assert "./other/c" in unmatched.error.hint
    assert "docs" in unmatched.error.hint
    for body, result in ((first, denied), (second, unmatched)):
        assert result.error is not None
        assert body["error"] == {"code": 1001, "message": result.error.message, "hint": result.error.hint}


def test_what_is_returned_is_what_was_recorded(workdir: Path, db: Path) -> None:
    calls = [read("docs/a"), read("docs/none"), read("docs/b"), ToolCall(tool="x"), write("out/x", create_dirs=True)]
    with gate_of(workdir, POLICY) as gate:
        results = [gate.call(call) for call in calls]
    ended = [record.body for record in records(db) if record.kind in ("outcome", "refused")]
    for result, body in zip(results, ended, strict=True):
        error = result.error
        assert body["status"] == result.status
        assert body.get("output") == result.output
        assert body.get("flags", []) == list(result.flags)
        recorded = body.get("error")
        assert (recorded is None) == (error is None)
        if error is not None:
            assert isinstance(recorded, Mapping)
            assert (recorded["code"], recorded["message"], recorded.get("hint")) == (
                error.code,
                error.message,
                error.hint,
            )


def test_an_intent_is_durable_before_the_tool_runs(workdir: Path, db: Path) -> None:
    """Read by the tool itself, over another connection."""
    seen: list[list[str]] = []
    tool = made(lambda args, context: seen.append(kinds(db, context.run_id)))
    with gate_of(workdir, MADE, tool=tool) as gate:
        gate.call(ToolCall(tool="made.tool"))
    assert seen == [["start", "intent"]]


def test_an_outcome_is_durable_before_it_is_returned(workdir: Path, db: Path) -> None:
    with gate_of(workdir, POLICY) as gate:
        gate.call(read("docs/a"))
        assert kinds(db, gate.run_id) == ["start", "intent", "outcome"]
        gate.call(read("docs/b"))
        assert kinds(db, gate.run_id)[3:] == ["refused"]


def test_only_a_read_may_be_held_back_and_only_until_the_next_record(workdir: Path, db: Path) -> None:
    with gate_of(workdir, POLICY) as gate:
        gate.call(read("docs/a"), hold_read=True)
        assert kinds(db, gate.run_id) == ["start", "intent"]
        gate.call(write("out/x", create_dirs=True), hold_read=True)
        assert kinds(db, gate.run_id) == ["start", "intent", "outcome", "intent", "outcome"]
        gate.call(read("docs/a"), hold_read=True)
    assert kinds(db)[5:] == ["intent", "outcome", "end"]


@pytest.mark.parametrize(
    ("error", "status", "expected"),
    [
        (
            ToolError(2003, "it broke", hint="mend it"),
            "error",
            CallError(code=2003, message="it broke", hint="mend it"),
        ),
        (ToolError(2004, "too slow"), "error", CallError(code=2004, message="too slow")),
        (PolicyDenied(1001, "a link appeared"), "denied", CallError(code=1001, message="a link appeared")),
        (StorageError(5002, "its own store"), "error", CallError(code=5002, message="its own store")),
    ],
    ids=str,
)
def test_what_a_tool_raises_on_purpose_is_its_outcome(
    workdir: Path, db: Path, error: Exception, status: str, expected: CallError
) -> None:
    def act(args: Mapping[str, Json], context: Context) -> NoReturn:
        raise error

    with gate_of(workdir, MADE, tool=made(act)) as gate:
        result = gate.call(ToolCall(tool="made.tool"))
    assert (result.status, result.error, result.output) == (status, expected, None)
    assert kinds(db) == ["start", "intent", "outcome", "end"]


@pytest.mark.parametrize(
    "error", [RuntimeError("boom"), MemoryError(), RecursionError("deep"), AssertionError(), OSError(5, "io")], ids=repr
)
def test_an_unexpected_exception_of_a_tool_is_9001_and_the_run_goes_on(
    workdir: Path, db: Path, error: Exception
) -> None:
    def act(args: Mapping[str, Json], context: Context) -> NoReturn:
        raise error

    with gate_of(workdir, MADE, tool=made(act)) as gate:
        result = gate.call(ToolCall(tool="made.tool"))
        again = gate.call(ToolCall(tool="made.tool"))
    assert (result.status, code(result), code(again)) == (Status.ERROR, 9001, 9001)
    assert result.error is not None
    assert type(error).__name__ in result.error.message
    assert kinds(db) == ["start", "intent", "outcome", "intent", "outcome", "end"]


@dataclass(frozen=True)
class Raising:
    """Implements `calls.World` and fails where it is told to."""

    world: World
    where: str
    resolved: Resolved = "disk"

    @property
    def places(self) -> Places:
        return self.world.places

    def path(self, text: str, *, argument: str, access: Access) -> ConcretePath:
        if self.where == "path":
            raise RuntimeError("the world broke")
        return self.world.path(text, argument=argument, access=access)

    def command(self, argv: tuple[str, ...], *, argument: str, search: tuple[str, ...]) -> ConcreteCommand:
        if self.where == "command":
            raise OSError(5, "the world broke")
        return self.world.command(argv, argument=argument, search=search)

    def folds(self, real: Components) -> bool:
        if self.where == "folds":
            raise OSError(5, "the world broke")
        return self.world.folds(real)

    def directory(self, components: Components) -> Components:
        if self.where == "directory":
            raise RuntimeError("the world broke")
        return self.world.directory(components)


@pytest.mark.parametrize(
    ("where", "call"),
    [
        ("path", read("docs/a")),
        ("path", write("out/x", create_dirs=True)),
        ("command", ToolCall(tool="shell.run", args={"command": ["ls"]})),
        ("directory", read("/etc/hostname")),
    ],
)
def test_f4_whatever_raises_inside_the_policy_is_a_recorded_denial(
    workdir: Path, db: Path, where: str, call: ToolCall
) -> None:
    policy = POLICY + '  - {action: allow, tool: fs.read, constraints: {path: {pattern: "/etc/**"}}}'
    before = tree(workdir)
    with gate_of(workdir, policy, world=lambda world: Raising(world, where)) as gate:
        result = gate.call(call)
    assert (result.status, code(result)) == (Status.DENIED, 1000)
    assert kinds(db) == ["start", "refused", "end"]
    assert tree(workdir) == before


def test_f4_no_layer_and_an_empty_policy_deny_everything(workdir: Path) -> None:
    for policies in ((), ("rules: []",), ("{}",), (POLICY, "rules: []")):
        with gate_of(workdir, *policies) as gate:
            assert code(gate.call(read("docs/a"))) == 1000


def test_the_strictest_layer_holds(workdir: Path) -> None:
    narrow = "rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: ./docs/a}, max_bytes: 4}}]"
    with gate_of(workdir, POLICY, narrow) as gate:
        cut = gate.call(read("docs/a"))
        assert isinstance(cut.output, Mapping)
        assert (cut.output["content"], cut.output["truncated"]) == ("text", True)
        assert code(gate.call(write("out/x", create_dirs=True))) == 1000
    assert not (workdir / "out").exists()


def test_a_write_over_its_size_is_denied_before_a_byte_is_written(workdir: Path, db: Path) -> None:
    policy = (
        'rules: [{id: small, action: allow, tool: fs.write, constraints: {path: {pattern: "./out/*"}, max_bytes: 4}}]'
    )
    with gate_of(workdir, policy) as gate:
        assert gate.call(write("out/x", "1234", create_dirs=True)).ok
        large = gate.call(write("out/y", "12345"))
        grown = gate.call(write("out/x", "5", mode="append"))
    assert (code(large), large.status, code(grown), grown.status) == (1005, "denied", 1005, "denied")
    assert tree(workdir / "out") == {"x": b"1234"}
    assert kinds(db)[3:5] == ["refused", "intent"]


def test_counters_count_what_a_rule_let_through(workdir: Path, db: Path) -> None:
    policy = (
        "rules: [{id: twice, action: allow, tool: fs.read, constraints: {path: {pattern: ./docs/a}, max_calls: 2}}]"
    )
    with gate_of(workdir, policy) as gate:
        answers = [gate.call(call) for call in (read("other/c"), read("docs/a"), read("docs/a"), read("docs/a"))]
    assert [code(answer) for answer in answers] == [1001, None, None, 1006]
    last = answers[-1].error
    assert last is not None
    assert (last.retriable, last.retry_after_ms) == (True, None)
    assert bodies(db, "intent")[0]["decision"] == {"rule": "twice", "counted": [[0, "twice"]]}


def test_the_calls_of_a_run_are_limited_whatever_a_rule_says(workdir: Path) -> None:
    with gate_of(workdir, POLICY + "limits: {calls: 2}") as gate:
        codes = [code(gate.call(call)) for call in (read("docs/b"), read("docs/a"), read("docs/none"), read("docs/a"))]
    assert codes == [1001, None, 2003, 1006]


def test_a_rate_says_when_to_come_back_and_holds_until_then(workdir: Path, db: Path) -> None:
    policy = (
        "rules: [{id: often, action: allow, tool: fs.read, "
        "constraints: {path: {pattern: ./docs/a}, rate_limit: {requests_per_minute: 2}}}]"
    )
    clock = LateClock()
    with gate_of(workdir, policy, clock=clock) as gate:
        assert gate.held_back_ms(read("docs/a")) == 0
        assert gate.call(read("docs/a")).ok
        clock.ahead_ms += 20_000
        assert gate.call(read("docs/a")).ok
        over = gate.call(read("docs/a")).error
        assert over is not None
        assert over.code == 1006
        assert over.retry_after_ms is not None
        assert 35_000 < over.retry_after_ms <= 40_000
        left = gate.held_back_ms(read("docs/a"))
        assert 0 < left <= over.retry_after_ms
        assert gate.held_back_ms(read("other/c")) == 0
        assert gate.held_back_ms(read("docs/a", bad=1)) == 0
        clock.ahead_ms += left - 1_000
        assert code(gate.call(read("docs/a"))) == 1006
        clock.ahead_ms += 1_000
        assert gate.call(read("docs/a")).ok
    refused = bodies(db, "refused")[0]
    assert isinstance(refused["error"], Mapping)
    assert refused["error"]["retry_after_ms"] == over.retry_after_ms


def test_what_was_only_asked_about_counts_for_nothing(workdir: Path, db: Path) -> None:
    """Looking whether a rate is free uses nothing up and records nothing."""
    policy = (
        "rules: [{action: allow, tool: fs.read, "
        "constraints: {path: {pattern: ./docs/a}, max_calls: 1, rate_limit: {requests_per_minute: 1}}}]"
    )
    with gate_of(workdir, policy) as gate:
        assert [gate.held_back_ms(read("docs/a")) for _ in range(5)] == [0] * 5
        assert kinds(db, gate.run_id) == ["start"]
        assert gate.call(read("docs/a")).ok


class Unexpected(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "status", "number"),
    [
        (None, RunStatus.COMPLETED, None),
        (Unexpected("odd"), RunStatus.FAILED, 9001),
        (ToolError(2003, "no"), RunStatus.FAILED, 2003),
        (SystemExit(3), RunStatus.FAILED, 9001),
        (KeyboardInterrupt(), RunStatus.INTERRUPTED, None),
    ],
    ids=repr,
)
def test_a_block_that_is_left_ends_its_run(
    workdir: Path, db: Path, error: BaseException | None, status: RunStatus, number: int | None
) -> None:
    def block(gate: Gate) -> None:
        with gate:
            gate.call(read("docs/a"))
            assert newest(db).status is RunStatus.RUNNING
            if error is not None:
                raise error

    gate = gate_of(workdir, POLICY)
    if error is None:
        block(gate)
    else:
        with pytest.raises(type(error)):
            block(gate)
    assert ends_as(db, gate.run_id) is status
    (end,) = bodies(db, "end")
    recorded = end.get("error")
    assert (recorded["code"] if isinstance(recorded, Mapping) else None) == number


@pytest.mark.parametrize("text", [TOKEN, "\udcff"])
def test_e2_what_ends_a_run_gives_no_secret_away(workdir: Path, db: Path, text: str) -> None:
    for error in (Unexpected(text), ToolError(2003, text, hint=text)):
        gate = gate_of(workdir, POLICY)
        with pytest.raises(type(error)), gate:
            raise error
        assert ends_as(db, gate.run_id) is RunStatus.FAILED
    assert TOKEN.encode() not in everything_stored(db)


def test_a_run_keeps_the_end_it_was_given(workdir: Path, db: Path) -> None:
    with gate_of(workdir, POLICY) as gate:
        gate.finish(RunStatus.DENIED, error=CallError(code=7005, message="too many denials"))
    assert ends_as(db, gate.run_id) is RunStatus.DENIED
    assert bodies(db, "end")[0]["error"] == {"code": 7005, "message": "too many denials"}


def test_a_gate_that_is_closed_without_an_end_leaves_an_interrupted_run(workdir: Path, db: Path) -> None:
    gate = gate_of(workdir, POLICY)
    gate.call(read("docs/a"))
    gate.close()
    gate.close()
    assert ends_as(db, gate.run_id) is RunStatus.INTERRUPTED


@pytest.mark.parametrize("close", [False, True])
def test_nothing_happens_after_the_end(workdir: Path, db: Path, close: bool) -> None:
    gate = gate_of(workdir, POLICY)
    gate.finish(RunStatus.COMPLETED)
    if close:
        gate.close()
    for call in (write("out/x", create_dirs=True), read("docs/a"), read("docs/b"), ToolCall(tool="x")):
        with pytest.raises(StorageError, match=r"is over|has ended"):
            gate.call(call)
    gate.close()
    assert not (workdir / "out").exists()
    assert kinds(db) == ["start", "end"]
    assert ends_as(db, gate.run_id) is RunStatus.COMPLETED


def test_ctrl_c_within_a_tool_leaves_a_call_that_began(workdir: Path, db: Path) -> None:
    def act(args: Mapping[str, Json], context: Context) -> NoReturn:
        raise KeyboardInterrupt

    gate = gate_of(workdir, MADE, tool=made(act))
    with pytest.raises(KeyboardInterrupt), gate:
        gate.call(ToolCall(tool="made.tool"))
    assert kinds(db) == ["start", "intent", "end"]
    assert ends_as(db, gate.run_id) is RunStatus.INTERRUPTED
    assert newest(db).counts.unknown == 1


def test_open_takes_a_file_a_policy_or_layers_and_the_settings_of_the_user(
    workdir: Path, isolated_home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    parsed = Policy.parse(POLICY)
    for policy in (file, str(file), parsed, [parsed], (parsed, Policy.parse(POLICY))):
        with Gate.open(policy=policy, workdir=workdir) as gate:
            assert code(gate.call(read("docs/b"))) == 1001
    mine = isolated_home / ".capsule/runs.db"
    assert mine.exists()
    assert holds(mine)
    assert not db_of(workdir).exists()


def test_a_call_that_its_door_could_not_make_is_recorded(workdir: Path, db: Path) -> None:
    with gate_of(workdir, POLICY) as gate:
        result = gate.reject(read("docs/a"), ToolError(2002, "no such template"), step=Step(id="s", index=4))
        gate.skip([(Step(id="t", index=5), "fs.list")])
        gate.wait(Step(id="u", index=6), 250)
    assert (result.status, code(result)) == (Status.ERROR, 2002)
    (refused,), (skipped,), (wait,) = bodies(db, "refused"), bodies(db, "skipped"), bodies(db, "wait")
    assert (refused["step"], refused["step_index"], "decision" in refused) == ("s", 4, False)
    assert skipped["steps"] == [{"step": "t", "step_index": 5, "tool": "fs.list"}]
    assert (wait["step"], wait["step_index"], wait["wait_ms"]) == ("u", 6, 250)
