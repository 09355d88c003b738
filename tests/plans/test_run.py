"""A plan as one run: how it ends, what each step leaves in the journal, and what is kept of it meanwhile."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from gated import MARK, TOKEN, bodies, db_of, ends_as, everything_stored, grown, kinds, newest, records, tree

from capsule.approval import deny_all
from capsule.calls import Approver, RunStatus, ToolResult
from capsule.canon import Json
from capsule.errors import CapsuleError, PlanError, StorageError
from capsule.gate import Opening, Step
from capsule.plans import Plan, PlanOutcome, run_plan
from capsule.policy import Policy
from capsule.settings import Settings

POLICY = """
rules:
  - {id: docs, action: allow, tool: [fs.read, fs.list], constraints: {path: {pattern: ./docs/**}}}
  - {id: out, action: allow, tool: fs.write, constraints: {path: {pattern: "./out/*"}}}
  - {id: web, action: allow, tool: http.get, constraints: {url: {domains: [example.com]}}}
"""
READ = "{tool: fs.read, args: {path: docs/a}}"
MISSING = "{tool: fs.read, args: {path: docs/none}}"
DENIED = "{tool: fs.read, args: {path: other/c}}"


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    return grown(tmp_path.resolve() / "ws", docs__a="text of a", docs__b="text of b", other__c="c", out__old="old")


@pytest.fixture
def db(workdir: Path) -> Path:
    return db_of(workdir)


@dataclass
class Told:
    """Implements `plans.Watcher` and keeps what it hears."""

    heard: list[tuple[str, str]] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    when_it_begins: Callable[[Step], object] = lambda step: None
    when_it_ends: Callable[[Step], object] = lambda step: None

    def opened(self, run_id: str) -> None:
        self.run_id = run_id

    def check(self) -> None:
        pass

    def began(self, step: Step) -> None:
        self.heard.append((step.id, "began"))
        self.when_it_begins(step)

    def ended(self, step: Step, tool: str, result: ToolResult) -> None:
        self.heard.append((step.id, result.status.value))
        self.when_it_ends(step)

    def waiting(self, step: Step, left_ms: int) -> None:
        self.waits.append(left_ms)


def run(
    workdir: Path,
    text: str,
    policy: str = POLICY,
    *,
    given: Mapping[str, Json] | None = None,
    told: Told | None = None,
    fail_fast: bool = True,
    approver: Approver = deny_all,
) -> PlanOutcome:
    plan = Plan.parse(text)
    opening = Opening(
        settings=Settings.load(os.environ),
        policies=[Policy.parse(policy)],
        workdir=workdir,
        db=db_of(workdir),
        approver=approver,
    )
    return run_plan(plan, plan.read_inputs(given or {}), opening, watcher=told or Told(), fail_fast=fail_fast)


def steps(*written: str) -> str:
    return "steps:\n" + "".join(f"  - {step}\n" for step in written)


def went_on(step: str) -> str:
    return step[:-1] + ", continue_on_error: true}"


def recorded(db: Path) -> list[tuple[str, str | None]]:
    """Each step's id and how it ended, in the order of the journal."""
    calls: dict[Json, str] = {}
    found: list[tuple[str, str | None]] = []
    for record in records(db):
        body = record.body
        if record.kind in ("intent", "refused"):
            call = body["call"]
            assert isinstance(call, int)
            index = body.get("step_index", call - 1)
            assert isinstance(index, int)
            calls[body["call"]] = str(body.get("step", f"step_{index + 1}"))
        if record.kind in ("outcome", "refused"):
            found.append((calls[body["call"]], str(body["status"])))
        elif record.kind == "skipped":
            listed = body["steps"]
            assert isinstance(listed, Sequence)
            found += [(str(step["step"]), "skipped") for step in listed if isinstance(step, Mapping)]
    return found


@pytest.mark.parametrize(
    ("written", "fail_fast", "status", "denied", "left"),
    [
        ([READ, READ], True, "completed", 0, ["success", "success"]),
        ([READ, MISSING, READ], True, "failed", 0, ["success", "error", "skipped"]),
        ([READ, DENIED, READ, READ], True, "denied", 1, ["success", "denied", "skipped", "skipped"]),
        ([DENIED], True, "denied", 1, ["denied"]),
        ([READ, MISSING, READ], False, "failed", 0, ["success", "error", "success"]),
        ([DENIED, MISSING, READ], False, "denied", 1, ["denied", "error", "success"]),
        ([MISSING, DENIED, READ], False, "denied", 1, ["error", "denied", "success"]),
        ([went_on(MISSING), READ], True, "completed", 0, ["error", "success"]),
        ([went_on(DENIED), READ], True, "completed", 1, ["denied", "success"]),
        ([went_on(DENIED), MISSING, READ], True, "failed", 1, ["denied", "error", "skipped"]),
        ([went_on(DENIED), MISSING, DENIED], False, "denied", 2, ["denied", "error", "denied"]),
        (["{tool: fs.raed}", READ], True, "failed", 0, ["error", "skipped"]),
        (["{tool: fs.read, args: {pth: x}}", READ], True, "failed", 0, ["error", "skipped"]),
        (["{tool: http.get, args: {url: https://example.com}}"], True, "failed", 0, ["error"]),
    ],
)
def test_how_a_run_ends(
    workdir: Path, db: Path, written: list[str], fail_fast: bool, status: str, denied: int, left: list[str]
) -> None:
    outcome = run(workdir, steps(*written), fail_fast=fail_fast)
    assert (outcome.status, outcome.denied, outcome.error) == (status, denied, None)
    assert recorded(db) == [(f"step_{number}", end) for number, end in enumerate(left, 1)]
    assert ends_as(db, outcome.run_id) == status
    counts = newest(db).counts
    assert (counts.total, counts.completed, counts.denied, counts.failed, counts.skipped, counts.unknown) == (
        len(left),
        *(left.count(end) for end in ("success", "denied", "error", "skipped")),
        0,
    )


def test_an_ask_of_a_plan(workdir: Path, db: Path) -> None:
    policy = POLICY.replace("id: out, action: allow", "id: out, action: ask")
    outcome = run(workdir, steps("{tool: fs.write, args: {path: out/x, content: x}}", READ), policy)
    assert (outcome.status, recorded(db)) == ("denied", [("step_1", "denied"), ("step_2", "skipped")])
    assert kinds(db)[1:4] == ["question", "answer", "refused"]
    assert not (workdir / "out/x").exists()


def test_the_first_record_holds_plan_and_inputs(workdir: Path, db: Path) -> None:
    text = "name: notes\ninputs: {file: {type: string}, often: {type: integer, default: 2}}\n" + steps(READ)
    run(workdir, text, given={"file": "x"})
    (start,) = bodies(db, "start")
    plan = Plan.parse(text)
    assert (start["plan"], start["plan_name"], start["plan_digest"]) == (plan.as_json(), "notes", plan.digest)
    assert (start["inputs"], start["mode"]) == ({"file": "x", "often": 2}, "run")


@pytest.mark.parametrize(
    ("foreach", "fail_fast", "left"),
    [
        ("[docs/a, docs/b]", True, [("each[0]", "success"), ("each[1]", "success"), ("after", "success")]),
        ("[]", True, [("after", "success")]),
        (
            "[docs/a, docs/none, docs/b]",
            True,
            [("each[0]", "success"), ("each[1]", "error"), ("each[2]", "skipped"), ("after", "skipped")],
        ),
        (
            "[docs/a, docs/none, other/c, docs/b]",
            False,
            [
                ("each[0]", "success"),
                ("each[1]", "error"),
                ("each[2]", "denied"),
                ("each[3]", "success"),
                ("after", "success"),
            ],
        ),
        ("'{{ inputs.object }}'", True, [("each", "error"), ("after", "skipped")]),
        ("'{{ inputs.text }}'", True, [("each", "error"), ("after", "skipped")]),
        ("'{{ inputs.object }}'", False, [("each", "error"), ("after", "success")]),
        ("'{{ inputs.files }}'", True, [("each[0]", "success"), ("after", "success")]),
        ("[1, {a: b}]", True, [("each[0]", "error"), ("each[1]", "skipped"), ("after", "skipped")]),
    ],
)
def test_foreach(workdir: Path, db: Path, foreach: str, fail_fast: bool, left: list[tuple[str, str]]) -> None:
    text = (
        "inputs: {object: {type: object, default: {a: docs/a}}, text: {type: string, default: docs/a},"
        " files: {type: array, default: [docs/a]}}\n"
    )
    each = f"{{id: each, tool: fs.read, foreach: {foreach}, args: {{path: '{{{{ item }}}}'}}}}"
    run(workdir, text + steps(each, "{id: after, tool: fs.read, args: {path: docs/a}}"), fail_fast=fail_fast)
    assert recorded(db) == left


def test_elements_under_continue_on_error(workdir: Path, db: Path) -> None:
    each = (
        "{id: each, tool: fs.read, foreach: [docs/none, other/c, docs/a], store_as: got,"
        " continue_on_error: true, args: {path: '{{ item }}'}}"
    )
    last = '{tool: fs.write, args: {path: out/x, content: "{{ got | tojson }} {{ steps.each.status }}"}}'
    outcome = run(workdir, steps(each, last))
    assert (outcome.status, outcome.denied) == (RunStatus.COMPLETED, 1)
    assert [end for _, end in recorded(db)] == ["error", "denied", "success", "success"]
    content = (workdir / "out/x").read_text()
    assert content.startswith("[null")
    assert content.endswith("error")
    assert "text of a" in content


def test_an_empty_foreach_is_an_empty_list_later(workdir: Path) -> None:
    each = "{tool: fs.read, foreach: [], store_as: got, args: {path: '{{ item }}'}}"
    assert run(workdir, steps(each, '{tool: fs.write, args: {path: out/x, content: "{{ got | tojson }}"}}')).status == (
        "completed"
    )
    assert (workdir / "out/x").read_text() == "[]"


@pytest.mark.parametrize(
    "args",
    [
        "{path: '{{ got.content }}'}",
        "{path: '{{ got.none.deeper }}'}",
        "{path: 'x{{ inputs.big.none }}'}",
        "{path: '{{ inputs.big | from_json }}'}",
    ],
)
def test_a_template_that_fails_is_a_recorded_step(workdir: Path, db: Path, args: str) -> None:
    text = "inputs: {big: {type: string, default: x}}\n" + steps(
        "{tool: fs.read, args: {path: docs/none}, store_as: got, continue_on_error: true}",
        f"{{id: bad, tool: fs.read, args: {args}}}",
        READ,
    )
    outcome = run(workdir, text)
    assert outcome.status is RunStatus.FAILED
    assert recorded(db) == [("step_1", "error"), ("bad", "error"), ("step_3", "skipped")]
    (refused,) = bodies(db, "refused")
    error = refused["error"]
    assert isinstance(error, Mapping)
    assert error["code"] == 3003
    assert "steps[1].args.path" in str(error["message"])
    assert "decision" not in refused


def test_a_template_of_more_than_its_limit_fails_before_the_step_runs(workdir: Path, db: Path) -> None:
    doubled = "variables:\n  v0: xxxxxxxxxxxxxxxx\n"
    doubled += "".join(f"  v{number + 1}: '{{{{ v{number} ~ v{number} }}}}'\n" for number in range(21))
    begun = time.perf_counter()
    with pytest.raises(PlanError) as raised:
        run(workdir, doubled + steps(READ))
    assert time.perf_counter() - begun < 2
    assert raised.value.code == 3003
    assert newest(db).status is RunStatus.FAILED
    assert kinds(db) == ["start", "end"]


def test_a_failed_step_can_be_looked_at(workdir: Path) -> None:
    text = steps(
        went_on("{id: no, tool: fs.read, args: {path: other/c}}"),
        '{tool: fs.write, args: {path: out/x, content: "{{ steps.no.status }} {{ steps.no.error.code }}"}}',
    )
    assert run(workdir, text).status is RunStatus.COMPLETED
    assert (workdir / "out/x").read_text() == "denied 1001"


@pytest.mark.parametrize("behind", [[], [READ, READ]])
def test_7003_the_time_of_a_run(workdir: Path, db: Path, behind: list[str]) -> None:
    each = "{id: each, tool: fs.read, foreach: '{{ inputs.files }}', args: {path: '{{ item }}'}}"
    text = "inputs: {files: {type: array}}\n" + steps(each, *behind)
    outcome = run(workdir, text, POLICY + "limits: {wall_time: 300ms}", given={"files": ["docs/a"] * 3000})
    assert outcome.status is RunStatus.FAILED
    assert outcome.error is not None
    assert outcome.error.code == 7003
    ended = recorded(db)
    assert len(ended) == 3000 + len(behind)
    assert {end for _, end in ended} == {"success", "skipped"}
    assert newest(db).counts.total == len(ended)
    error = bodies(db, "end")[0]["error"]
    assert isinstance(error, Mapping)
    assert error["code"] == 7003


def test_7003_before_the_first_step(workdir: Path, db: Path) -> None:
    outcome = run(workdir, steps(READ, READ), POLICY + "limits: {wall_time: 0ms}", fail_fast=False)
    assert outcome.status is RunStatus.FAILED
    assert [end for _, end in recorded(db)] == ["skipped", "skipped"]


RATE = """
rules:
  - action: allow
    tool: fs.read
    constraints: {path: {pattern: ./docs/**}, rate_limit: {requests_per_minute: 2}}
"""


def test_what_cannot_wait_ends_the_run_at_once(workdir: Path, db: Path) -> None:
    """The rate comes free in a minute, the run has half of one."""
    told = Told()
    begun = time.perf_counter()
    outcome = run(workdir, steps(READ, READ, READ), RATE + "limits: {wall_time: 30s}", told=told)
    assert time.perf_counter() - begun < 5
    assert outcome.status is RunStatus.FAILED
    assert outcome.error is not None
    assert outcome.error.code == 7003
    assert [end for _, end in recorded(db)] == ["success", "success", "skipped"]
    assert "wait" not in kinds(db)
    assert told.waits == []


def test_nothing_waits_for_a_rate_where_waiting_does_not_help(workdir: Path, db: Path) -> None:
    told = Told()
    outcome = run(workdir, steps(READ, READ, READ), RATE + "limits: {calls: 2}", told=told)
    assert (outcome.status, told.waits) == (RunStatus.DENIED, [])
    (refused,) = bodies(db, "refused")
    error = refused["error"]
    assert isinstance(error, Mapping)
    assert (error["code"], error.get("retry_after_ms")) == (1006, None)


FAST = """
import os, sys, time
from pathlib import Path
ahead = 0.0
really = time.monotonic
def sleep(seconds):
    global ahead
    ahead += seconds
time.sleep, time.monotonic = sleep, lambda: really() + ahead

sys.path.insert(0, sys.argv[1])
from test_run import RATE, READ, Told, run, steps
told = Told()
outcome = run(Path(sys.argv[2]), steps(READ, READ, READ, READ, READ), RATE, told=told)
print(outcome.status.value, len(told.waits), max(told.waits), min(told.waits))
"""


def test_a_call_over_a_rate_waits_and_then_runs(workdir: Path, db: Path) -> None:
    """In a process where sleeping takes no time: two calls a minute, five calls."""
    done = subprocess.run(
        [sys.executable, "-c", FAST, Path(__file__).parent, workdir],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
    )
    status, looks, longest, shortest = done.stdout.split()
    assert status == "completed"
    assert int(looks) > 100
    assert 59_000 < int(longest) <= 60_000
    assert 0 < int(shortest) <= 500
    waits = {wait["step_index"]: wait["wait_ms"] for wait in bodies(db, "wait")}
    assert len(waits) == kinds(db).count("wait")  # one record, however long it takes
    assert [step for step, wait_ms in waits.items() if isinstance(wait_ms, int) and wait_ms > 59_000] == [2, 4]
    assert [end for _, end in recorded(db)] == ["success"] * 5


def test_progress_never_runs_ahead_of_the_journal(workdir: Path, db: Path) -> None:
    """A watcher hears of an outcome only when another connection can read it; also at the end of a run that breaks."""

    def is_recorded(step: Step) -> None:
        done = [end for _, end in recorded(db)]
        assert len(done) == len([end for _, end in told.heard if end != "began"]) or "skipped" in done

    told = Told(when_it_ends=is_recorded)
    run(workdir, steps(READ, READ, "{tool: fs.write, args: {path: out/x, content: x}}", READ, MISSING, READ), told=told)
    assert [end for _, end in told.heard if end != "began"] == ["success"] * 4 + ["error"]
    assert told.heard[:4] == [("step_1", "began"), ("step_1", "success"), ("step_2", "began"), ("step_2", "success")]


def test_what_the_journal_lost_nobody_hears_of(workdir: Path, db: Path) -> None:
    """It cannot grow any more after the first intent: the read that follows is held back, and lost."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    told = Told(when_it_begins=lambda step: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard)))
    try:
        with pytest.raises(StorageError):
            run(workdir, steps(READ, READ), told=told)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    heard = [end for _, end in told.heard if end != "began"]
    assert len(heard) <= len(recorded(db))
    assert newest(db).status in (RunStatus.FAILED, RunStatus.INTERRUPTED)


@pytest.mark.parametrize("error", [RuntimeError("odd"), CapsuleError(9001, "odd"), OSError(32, "gone")], ids=repr)
def test_9001_whatever_goes_wrong_is_in_the_last_record(workdir: Path, db: Path, error: Exception) -> None:
    def fail(step: Step) -> None:
        raise error

    with pytest.raises(type(error)):
        run(workdir, steps(READ, READ), told=Told(when_it_begins=fail))
    run_ = newest(db)
    assert run_.status is RunStatus.FAILED
    recorded_error = bodies(db, "end")[0]["error"]
    assert isinstance(recorded_error, Mapping)
    assert (recorded_error["code"], "odd" in str(recorded_error["message"])) == (9001, not isinstance(error, OSError))
    assert ends_as(db, run_.run_id) is RunStatus.FAILED


def test_ctrl_c_in_the_middle(workdir: Path, db: Path) -> None:
    def interrupt(step: Step) -> None:
        if step.index == 1:
            raise KeyboardInterrupt

    told = Told(when_it_begins=interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(workdir, steps(READ, READ, READ), told=told)
    assert ends_as(db, newest(db).run_id) is RunStatus.INTERRUPTED
    assert kinds(db) == ["start", "intent", "outcome", "intent", "end"]
    assert told.heard == [("step_1", "began"), ("step_1", "success"), ("step_2", "began")]


def test_a_thousand_steps(workdir: Path, db: Path) -> None:
    """Large results that nobody names are not kept: memory stays flat."""
    (workdir / "docs/large").write_text("x" * 200_000)
    large = "{tool: fs.read, args: {path: docs/large}}"
    write = "{tool: fs.write, args: {path: out/last, content: x, mode: overwrite}}"
    text = steps(*([READ] * 9 + [large]) * 99, *[write] * 10)
    run(workdir, steps(large))  # what is loaded once is loaded
    tracemalloc.start()
    try:
        outcome = run(workdir, text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert outcome.status is RunStatus.COMPLETED
    assert newest(db).counts.completed == 1000
    assert ends_as(db, outcome.run_id) is RunStatus.COMPLETED
    assert peak < 99 * 200_000 / 2


def test_what_is_named_is_kept_until_then(workdir: Path) -> None:
    text = steps(
        "{tool: fs.read, args: {path: docs/a}, store_as: one}",
        *[READ] * 20,
        '{tool: fs.write, args: {path: out/x, content: "{{ one.content }}"}}',
    )
    assert run(workdir, text).status is RunStatus.COMPLETED
    assert (workdir / "out/x").read_text() == "text of a"


def test_e2_a_secret_in_a_plan_or_an_input_reaches_no_disk(workdir: Path, db: Path) -> None:
    text = f"""
name: {TOKEN}
description: {TOKEN}
inputs: {{key: {{type: string}}}}
variables: {{also: {TOKEN}}}
steps:
  - {{tool: fs.write, args: {{path: out/x, content: "{{{{ inputs.key }}}}"}}, name: {TOKEN}}}
  - {{tool: fs.read, args: {{path: "docs/{{{{ also }}}}"}}, continue_on_error: true}}
  - {{tool: fs.read, args: {{path: "{{{{ inputs.key.none }}}}"}}, description: {TOKEN}}}
"""
    outcome = run(workdir, text, given={"key": TOKEN})
    assert (workdir / "out/x").read_text() == TOKEN
    assert TOKEN.encode() not in everything_stored(db)
    (start,) = bodies(db, "start")
    assert start["inputs"] == {"key": MARK} or MARK[:-2] in str(start["inputs"])
    assert TOKEN not in str(outcome)


def test_a_masked_result_cannot_be_written_on(workdir: Path, db: Path) -> None:
    (workdir / "docs/key").write_text(f"key = {TOKEN}")
    before = tree(workdir)
    text = steps(
        "{tool: fs.read, args: {path: docs/key}, store_as: got}",
        '{tool: fs.write, args: {path: out/copy, content: "{{ got.content }}"}}',
    )
    outcome = run(workdir, text)
    assert (outcome.status, [end for _, end in recorded(db)]) == ("denied", ["success", "denied"])
    assert tree(workdir) == before
