"""Step 3: what a person is shown, what a yes is good for, and what is left of it in the journal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from gated import (
    MARK,
    TOKEN,
    LateClock,
    Made,
    bodies,
    code,
    ends_as,
    everything_stored,
    gate_of,
    grown,
    kinds,
    read,
    tree,
    write,
)

from capsule.approval import VALID_FOR_MS, allow_all, deny_all, reads_only
from capsule.calls import (
    Answer,
    Approver,
    Effect,
    Guard,
    Question,
    RunStatus,
    Source,
    Status,
    ToolCall,
    ToolDefinition,
)
from capsule.canon import Json

POLICY = """
rules:
  - {id: asked, action: ask, tool: [fs.write, fs.read], constraints: {path: {pattern: "./ask/**"}}}
  - {id: free, action: allow, tool: fs.write, constraints: {path: {pattern: "./out/*"}}}
"""


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    return grown(tmp_path.resolve() / "ws", ask__x="x", ask__y="y", out__z="z")


class Asked:
    """An approver that notes every question and answers with what it is given."""

    def __init__(
        self, *, approved: bool = True, meanwhile: Callable[[Question], object] = lambda question: None
    ) -> None:
        self.questions: list[Question] = []
        self._approved = approved
        self._meanwhile = meanwhile

    def __call__(self, question: Question) -> Answer:
        self.questions.append(question)
        self._meanwhile(question)
        return Answer(approved=self._approved, by="somebody", reason=None if self._approved else "not today")


def test_a_question_shows_the_call_and_its_grant(workdir: Path, db: Path) -> None:
    asked = Asked()
    with gate_of(workdir, POLICY, approver=asked) as gate:
        result = gate.call(write("ask/../ask/new", "content", source=Source.PLAN))
    (question,) = asked.questions
    assert question.call_id == result.call_id
    assert (question.decision.effect, question.decision.rule) == (Effect.ASK, "asked")
    assert question.shown == {
        "step": "step_1",
        "tool": "fs.write",
        "args": {"path": "ask/../ask/new", "content": "content"},
        "source": "plan",
        "decision": {"effect": "ask", "rule": "asked"},
        "grant": {"files": ["write ./ask/new"]},
    }


def test_advice_is_for_where_nobody_decided(workdir: Path) -> None:
    said_no = Asked(approved=False)
    with gate_of(workdir, POLICY, approver=said_no) as gate:
        refused = gate.call(write("ask/new")).error
    with gate_of(workdir, POLICY) as gate:
        unasked = gate.call(write("ask/new")).error
    assert refused is not None
    assert (refused.code, refused.hint) == (1007, None)
    assert unasked is not None
    assert unasked.code == 1007
    assert "hand an approver to the gate" in str(unasked.hint)


def test_question_and_answer_are_records_that_carry_the_digest(workdir: Path, db: Path) -> None:
    for approved in (True, False):
        asked = Asked(approved=approved)
        with gate_of(workdir, POLICY, approver=asked) as gate:
            gate.call(write("ask/new", mode="overwrite"))
        (question,), (answer,) = bodies(db, "question"), bodies(db, "answer")
        digest = asked.questions[0].digest
        assert {**question, "at": 0} == {**asked.questions[0].shown, "call": 1, "digest": digest, "at": 0}
        assert (answer["call"], answer["digest"], answer["approved"], answer["by"], answer.get("reason")) == (
            1,
            digest,
            approved,
            "somebody",
            None if approved else "not today",
        )
        rest = ["intent", "outcome"] if approved else ["refused"]
        assert kinds(db) == ["start", "question", "answer", *rest, "end"]


def test_a_question_is_durable_before_it_is_asked_and_an_answer_before_the_act(workdir: Path, db: Path) -> None:
    seen: list[list[str]] = []
    asked = Asked(meanwhile=lambda question: seen.append(kinds(db)))
    with gate_of(workdir, POLICY, approver=asked) as gate:
        gate.call(write("ask/new"))
    assert seen == [["start", "question"]]
    assert kinds(db)[:4] == ["start", "question", "answer", "intent"]


def test_a_no_says_who_and_why(workdir: Path) -> None:
    with gate_of(workdir, POLICY, approver=Asked(approved=False)) as gate:
        result = gate.call(write("ask/new"))
    assert (result.status, code(result)) == (Status.DENIED, 1007)
    assert result.error is not None
    assert "not today" in result.error.message
    assert tree(workdir / "ask") == {"x": b"x", "y": b"y"}


def test_an_approved_ask_grants_that_call_and_is_used_up(workdir: Path) -> None:
    asked = Asked()
    with gate_of(workdir, POLICY, approver=asked) as gate:
        assert gate.call(write("ask/new", "1", mode="overwrite")).ok
        assert gate.call(write("ask/new", "1", mode="overwrite")).ok
        assert gate.call(read("ask/y")).ok
    assert len(asked.questions) == 3


@pytest.mark.parametrize(
    "call",
    [
        write("ask/new", "other"),
        write("ask/new", mode="overwrite"),
        write("ask/other"),
        write("ask/new", source=Source.AGENT),
        write("ask/new", create_dirs=True),
    ],
    ids=lambda call: json.dumps(dict(call.args)) + call.source,
)
def test_d1_the_digest_is_of_this_call_alone(workdir: Path, call: ToolCall) -> None:
    asked = Asked(approved=False)
    with gate_of(workdir, POLICY, approver=asked) as gate:
        for each in (write("ask/new"), write("ask/new"), call):
            gate.call(each)
    with gate_of(workdir, POLICY, approver=asked) as gate:
        gate.call(write("ask/new"))
    one, same, other, elsewhere = [question.digest for question in asked.questions]
    assert one == same
    assert len({one, other, elsewhere}) == 3


def test_d1_the_digest_is_of_policy_and_layers(workdir: Path) -> None:
    asked = Asked(approved=False)
    for policies in ((POLICY,), (POLICY + "name: other",), (POLICY, POLICY)):
        with gate_of(workdir, *policies, approver=asked) as gate:
            gate.call(write("ask/new"))
    assert len({question.digest for question in asked.questions}) == 3


def _link_to(target: str, path: str = "ask/new") -> Callable[[Path], object]:
    return lambda workdir: (workdir / path).symlink_to(target)


def _directory_away(workdir: Path) -> None:
    (workdir / "ask").rename(workdir / "was")
    (workdir / "ask").symlink_to("out")


CHANGES: dict[str, tuple[Callable[[Path], object], int]] = {
    "a link to what is asked about too": (_link_to("y"), 1007),
    "a link to what is allowed": (_link_to("../out/z"), 1007),
    "a link out of the workdir": (_link_to("../../outside"), 1001),
    "a link to a protected name": (_link_to("../.git/config"), 1001),
    "a link loop": (_link_to("new"), 1001),
    "the directory is another one": (_directory_away, 1007),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a2_what_changed_between_question_and_yes_is_denied(workdir: Path, db: Path, name: str) -> None:
    change, number = CHANGES[name]
    (workdir.parent / "outside").write_text("outside")
    before: dict[str, bytes | str | None] = {}

    def meanwhile(question: Question) -> None:
        change(workdir)
        before.update(tree(workdir))

    with gate_of(workdir, POLICY, approver=Asked(meanwhile=meanwhile)) as gate:
        result = gate.call(write("ask/new", mode="overwrite"))
    assert (result.status, code(result)) == (Status.DENIED, number)
    assert kinds(db) == ["start", "question", "answer", "refused", "end"]
    assert tree(workdir) == before
    assert (workdir.parent / "outside").read_text() == "outside"


def test_a2_every_path_of_a_list_is_bound(workdir: Path) -> None:
    """The first of two is turned into a link; what the tool would then read is not what was shown."""
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {"paths": {"type": "array", "items": {"type": "string"}}},
    }
    definition = ToolDefinition(
        name="made.tool", description="Made.", args_schema=schema, guards={"paths": Guard.READ_PATH}, max_bytes=1000
    )
    tool = Made(act=lambda args, context: "done", definition=definition)

    def meanwhile(question: Question) -> None:
        (workdir / "ask/x").unlink()
        (workdir / "ask/x").symlink_to("z")

    asked = Asked(meanwhile=meanwhile)
    policy = "rules: [{action: ask, tool: made.tool, constraints: {read_paths: {pattern: ./ask/*}}}]"
    with gate_of(workdir, policy, approver=asked, tool=tool) as gate:
        result = gate.call(ToolCall(tool="made.tool", args={"paths": ["ask/x", "ask/y"]}))
    shown = json.dumps(asked.questions[0].shown["grant"])
    assert "./ask/x" in shown
    assert "./ask/y" in shown
    assert code(result) == 1007


def _change_content(question: Question) -> None:
    assert isinstance(question.call.args, dict)
    question.call.args["content"] = "other"


def _change_path(question: Question) -> None:
    assert isinstance(question.call.args, dict)
    question.call.args["path"] = "out/z"


def _show_other(question: Question) -> None:
    assert isinstance(question.shown, dict)
    question.shown["args"] = {}


@pytest.mark.parametrize("change", [_change_content, _change_path, _show_other])
def test_d4_an_approver_cannot_change_what_it_says_yes_to(
    workdir: Path, db: Path, change: Callable[[Question], None]
) -> None:
    """Either the call is denied or exactly what was shown is done."""
    with gate_of(workdir, POLICY, approver=Asked(meanwhile=change)) as gate:
        result = gate.call(write("ask/new", "shown"))
    assert tree(workdir / "out") == {"z": b"z"}
    if result.ok:
        assert (workdir / "ask/new").read_text() == "shown"
        assert bodies(db, "intent")[0]["args"] == {"path": "ask/new", "content": "shown"}
    else:
        assert code(result) == 1007
        assert not (workdir / "ask/new").exists()


@pytest.mark.parametrize(
    ("took_ms", "granted"), [(0, True), (VALID_FOR_MS - 5_000, True), (VALID_FOR_MS + 1, False), (10**10, False)]
)
def test_a_yes_that_comes_late_is_a_no(workdir: Path, db: Path, took_ms: int, granted: bool) -> None:
    clock = LateClock()

    def think(question: Question) -> None:
        clock.ahead_ms += took_ms

    with gate_of(workdir, POLICY, approver=Asked(meanwhile=think), clock=clock) as gate:
        result = gate.call(write("ask/new"))
    assert code(result) == (None if granted else 1007)
    assert (workdir / "ask/new").exists() is granted
    assert bodies(db, "answer")[0]["approved"] is True


def test_thinking_uses_up_neither_rates_nor_the_time_of_a_run(workdir: Path) -> None:
    policy = (
        POLICY.replace('"./ask/**"}', '"./ask/**"}, rate_limit: {requests_per_minute: 1}') + "limits: {wall_time: 1m}"
    )
    clock = LateClock()

    def think(question: Question) -> None:
        clock.ahead_ms += 500_000

    with gate_of(workdir, policy, approver=Asked(meanwhile=think), clock=clock) as gate:
        assert gate.call(write("ask/one")).ok
        assert gate.elapsed_ms < 60_000
        again = gate.call(write("ask/two"))
        assert code(again) == 1006
        assert again.error is not None
        assert again.error.retry_after_ms is not None


@pytest.mark.parametrize("approved", ["yes", "no", 1, 0, None, [1]])
def test_f4_only_true_is_a_yes(workdir: Path, db: Path, approved: Any) -> None:
    with gate_of(workdir, POLICY, approver=lambda question: Answer(approved=approved, by="x")) as gate:
        assert code(gate.call(write("ask/new"))) == 1007
    assert bodies(db, "answer")[0]["approved"] is False
    assert not (workdir / "ask/new").exists()


def _failing(error: BaseException) -> Approver:
    def approver(question: Question) -> NoReturn:
        raise error

    return approver


@pytest.mark.parametrize("error", [OSError(5, "EIO"), RuntimeError("\udcff"), AssertionError()], ids=ascii)
def test_f4_an_approver_that_fails_says_no(workdir: Path, db: Path, error: Exception) -> None:
    with gate_of(workdir, POLICY, approver=_failing(error)) as gate:
        result = gate.call(write("ask/new"))
    assert (result.status, code(result)) == (Status.DENIED, 1007)
    assert kinds(db) == ["start", "question", "answer", "refused", "end"]
    assert bodies(db, "answer")[0]["approved"] is False
    assert not (workdir / "ask/new").exists()


@pytest.mark.parametrize(
    ("error", "status"), [(KeyboardInterrupt(), RunStatus.INTERRUPTED), (SystemExit(1), RunStatus.FAILED)], ids=repr
)
def test_ctrl_c_at_a_question_ends_the_run(workdir: Path, db: Path, error: BaseException, status: RunStatus) -> None:
    gate = gate_of(workdir, POLICY, approver=_failing(error))
    with pytest.raises(type(error)), gate:
        gate.call(write("ask/new"))
    assert not (workdir / "ask/new").exists()
    assert "intent" not in kinds(db)
    assert ends_as(db, gate.run_id) is status


class _Unsayable:
    def __bool__(self) -> bool:
        raise RuntimeError

    def __format__(self, spec: str) -> str:
        raise RuntimeError


_UNSAID: Any = _Unsayable()
ODD_ANSWERS = {
    "nothing": None,
    "text": "yes",
    "true": True,
    "object": object(),
    "nearly yes": Answer(approved=1, by="x"),  # type: ignore[arg-type]
    "no name": Answer(approved=False, by=_UNSAID, reason=_UNSAID, hint=_UNSAID),
}


@pytest.mark.parametrize("answer", ODD_ANSWERS.values(), ids=ODD_ANSWERS)
def test_f4_an_answer_that_is_none_says_no(workdir: Path, db: Path, answer: Any) -> None:
    with gate_of(workdir, POLICY, approver=lambda question: answer) as gate:
        assert code(gate.call(write("ask/new"))) == 1007
    assert not (workdir / "ask/new").exists()
    assert kinds(db) == ["start", "question", "answer", "refused", "end"]


def test_e2_neither_question_nor_answer_gives_a_secret_away(workdir: Path, db: Path) -> None:
    questions: list[Question] = []

    def approver(question: Question) -> Answer:
        questions.append(question)
        return Answer(approved=False, by=f"by {TOKEN}", reason=f"because {TOKEN} \udcff")

    with gate_of(workdir, POLICY, approver=approver) as gate:
        result = gate.call(write("ask/new", f"key = {TOKEN}"))
    assert TOKEN not in json.dumps(dict(questions[0].shown))
    assert TOKEN not in str(result)
    assert TOKEN.encode() not in everything_stored(db)
    assert bodies(db, "answer")[0]["by"] == f"by {MARK}"


def test_a_masked_value_is_part_of_what_is_approved(workdir: Path) -> None:
    """The digest covers the raw values: another secret behind the same marker is another call."""
    asked = Asked(approved=False)
    with gate_of(workdir, POLICY, approver=asked) as gate:
        for secret in (TOKEN, TOKEN[:-1] + "9"):
            gate.call(write("ask/new", secret))
    one, other = asked.questions
    assert one.shown["args"] == other.shown["args"]
    assert one.digest != other.digest


def test_a_read_with_credentials_is_not_only_a_read(workdir: Path) -> None:
    policy = "rules: [{action: ask, tool: http.get, constraints: {url: {domains: [a.example]}, headers: {}}}]"
    with gate_of(workdir, policy, approver=reads_only(deny_all)) as gate:
        for headers, answer in (({"accept": "*/*"}, 2005), ({"Authorization": "x"}, 1007), ({"cookie": "x"}, 1007)):
            call = ToolCall(tool="http.get", args={"url": "https://a.example/", "headers": headers})
            assert code(gate.call(call)) == answer


def test_approvers_without_a_screen(workdir: Path) -> None:
    for approver, answers in (
        (allow_all, [None, None]),
        (deny_all, [1007, 1007]),
        (reads_only(deny_all), [1007, None]),
    ):
        with gate_of(workdir, POLICY, approver=approver) as gate:
            calls = (write("ask/new", mode="overwrite"), read("ask/y"))
            assert [code(gate.call(call)) for call in calls] == answers


def test_without_an_approver_every_ask_is_a_no(workdir: Path) -> None:
    with gate_of(workdir, POLICY) as gate:
        assert code(gate.call(write("ask/new"))) == 1007


def test_an_ask_never_loosens_a_deny_and_a_deny_is_never_asked_about(workdir: Path) -> None:
    asked = Asked()
    policy = POLICY + "  - {action: deny, tool: fs.write, constraints: {path: {pattern: ./ask/x}}}"
    with gate_of(workdir, policy, approver=asked) as gate:
        assert code(gate.call(write("ask/x", mode="overwrite"))) == 1001
    assert asked.questions == []
    assert (workdir / "ask/x").read_text() == "x"


def test_a_layer_that_denies_after_the_yes_wins(workdir: Path) -> None:
    """Both layers are asked again: here the second one's quota is used up while somebody thinks."""
    once = 'rules: [{action: allow, tool: "fs.*", constraints: {paths: {pattern: "./**"}, max_calls: 1}}]'
    gates: list[Any] = []

    def meanwhile(question: Question) -> None:
        assert gates[0].call(write("out/new")).ok

    with gate_of(workdir, POLICY, once, approver=Asked(meanwhile=meanwhile)) as gate:
        gates.append(gate)
        result = gate.call(write("ask/new"))
    assert code(result) == 1006
    assert not (workdir / "ask/new").exists()
