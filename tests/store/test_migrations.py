"""The schema: what it refuses, what its views show, how an older file becomes a newer one."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from journals import START, end, intent, open_store, outcome, recorded_run, refused, rows

from capsule.store.migrations import MIGRATIONS, migrate, schema_version

PUBLISHED = ["083b9d05abd37e1f1df0fe3e8e0ead15430cfb9b8ea1c57baed280754df9271b"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def test_published_migrations_never_change() -> None:
    digests = [hashlib.sha256("\0".join(migration).encode()).hexdigest() for migration in MIGRATIONS]
    assert digests == PUBLISHED


def test_the_file_says_what_it_is(path: Path) -> None:
    open_store(path)
    header = path.read_bytes()[:100]
    assert (header[68:72], int.from_bytes(header[60:64])) == (b"CPSL", len(MIGRATIONS))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET body = '{}' WHERE seq = 2",
        "UPDATE OR REPLACE records SET id = id + 1",
        "DELETE FROM records WHERE seq = 3",
        "DELETE FROM records",
        "INSERT OR REPLACE INTO records SELECT id, run_id, 2, kind, '{}', salt, prev, hash FROM records WHERE seq = 2",
        "INSERT INTO records SELECT id + 9, run_id, seq + 9, kind, body, salt, prev, hash FROM records WHERE seq = 2",
        "INSERT INTO records SELECT id + 1, run_id, seq, kind, body, salt, prev, hash FROM records WHERE kind = 'end'",
        "INSERT INTO records SELECT id+1, x'00', seq + 1, kind, body, salt, prev, hash FROM records WHERE kind = 'end'",
        "INSERT OR REPLACE INTO records SELECT id << 1, run_id, 1, kind, body, salt, prev, hash FROM records LIMIT 1",
        "REPLACE INTO records SELECT (2 << 32) + 1, run_id, 1, kind, body, salt, prev, hash FROM records LIMIT 1",
        "UPDATE bodies SET data = x''",
        "DELETE FROM bodies",
        "INSERT OR REPLACE INTO bodies SELECT digest, size, codec, x'' FROM bodies",
        "INSERT INTO tombstones VALUES (x'00', x'00', 1, 1)",
        "INSERT INTO doors VALUES ('mine')",
    ],
)
def test_nothing_is_updated_deleted_or_put_in_between(path: Path, statement: str) -> None:
    store = open_store(path)
    with store.begin(START) as run:
        run.append("intent", intent(1))
        run.append("outcome", outcome(1, output={"content": "x" * 9000}))
        run.end(end())
    before = rows(path, "SELECT * FROM records"), rows(path, "SELECT * FROM bodies")
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as db,
        pytest.raises(sqlite3.IntegrityError, match=r"append-only|CHECK"),
    ):
        db.execute(statement)
    assert (rows(path, "SELECT * FROM records"), rows(path, "SELECT * FROM bodies")) == before


def test_whole_runs_leave_by_one_door_and_with_a_tombstone(path: Path) -> None:
    store = open_store(path)
    gone, kept = recorded_run(store), recorded_run(store)
    key = bytes.fromhex(gone.replace("-", ""))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO doors VALUES ('prune')")
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute("DELETE FROM records WHERE run_id = ?", (key,))
        last = "SELECT run_id, hash, seq, 1 FROM records WHERE run_id = ? AND kind = 'end'"
        db.execute(f"INSERT INTO tombstones {last}", (key,))
        db.execute("DELETE FROM records WHERE run_id = ?", (key,))
        db.execute("DELETE FROM doors")
        db.execute("COMMIT")
        for statement in ("UPDATE tombstones SET at = 2", "DELETE FROM tombstones"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                db.execute(statement)
    assert [run.run_id for run in store.runs()] == [kept]
    assert store.verify().ok


def test_an_older_file_is_brought_up_to_date(tmp_path: Path) -> None:
    """With a schema from before the first, since there is no older one yet."""
    with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as db:
        migrate(db)
        migrate(db, (*MIGRATIONS, ("CREATE TABLE later (a)", "INSERT INTO later VALUES (1)")))
        assert schema_version(db) == len(MIGRATIONS) + 1
        assert db.execute("SELECT a FROM later").fetchall() == [(1,)]


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as db:
        migrate(db)
        with pytest.raises(sqlite3.OperationalError):
            migrate(db, (*MIGRATIONS, ("CREATE TABLE later (a)", "CREATE TABLE later (a)")))
        assert schema_version(db) == len(MIGRATIONS)
        assert db.execute("SELECT 1 FROM sqlite_master WHERE name = 'later'").fetchall() == []


def view(path: Path, name: str) -> list[dict[str, object]]:
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(f"SELECT * FROM {name}")]


def test_runs_view(path: Path) -> None:
    store = open_store(path)
    with store.begin(START) as run:
        run.append("intent", intent(1))
        run.append("outcome", outcome(1))
        run.append("intent", intent(2))
        run.append("outcome", outcome(2, status="error", error={"code": 2003}))
        run.append("refused", refused(3))
        going = view(path, "runs")
        run.append("skipped", {"at": 1, "steps": [{"step": "step_4", "step_index": 3, "tool": "fs.read"}]})
        run.end({"at": 1_700_000_009_001, "status": "failed", "error": {"code": 2003, "message": "it failed"}})
    (ended,) = view(path, "runs")
    assert ended == {
        "run_id": run.run_id,
        "created_at": "2023-11-14T22:13:20.000Z",
        "completed_at": "2023-11-14T22:13:29.001Z",
        "mode": "run",
        "status": "failed",
        "workdir": "/work",
        "plan_name": "notes",
        "plan_hash": "aa" * 32,
        "policy_hash": "bb" * 32,
        "plan_json": '{"name":"notes","steps":[]}',
        "plan_json_digest": None,
        "policy_json": json.dumps(START["policies"], sort_keys=True, separators=(",", ":")),
        "policy_json_digest": None,
        "total_steps": 4,
        "completed_steps": 1,
        "denied_steps": 1,
        "failed_steps": 1,
        "error": '{"code":2003,"message":"it failed"}',
        "error_digest": None,
        "records": 8,
        "head": store.run(run.run_id).head,
    }
    unended = {"completed_at": None, "status": None, "total_steps": 3, "error": None, "records": 6}
    assert going == [{**ended, **unended, "head": going[0]["head"]}]


def test_tool_calls_and_results_views(path: Path) -> None:
    store = open_store(path)
    with store.begin(START) as run:
        run.append("intent", intent(1))
        run.append("intent", intent(2, args={"path": "p", "content": "x" * 9000}))
        run.append("outcome", outcome(2, output={"content": "y" * 9000}))
        run.append("outcome", outcome(1, output=True))
        run.append("refused", refused(3))
        run.append("intent", intent(4))
    hashes = {record.seq: record.hash for record in store.records(run.run_id)}
    first, second, third, fourth = view(path, "tool_calls")
    assert first == {
        "call_id": f"{run.run_id}.1",
        "run_id": run.run_id,
        "seq": 2,
        "step_id": "step_1",
        "step_index": 0,
        "tool_name": "fs.read",
        "source": "plan",
        "args_json": '{"path":"docs/1.md"}',
        "args_json_digest": None,
        "created_at": "2023-11-14T22:13:20.001Z",
    }
    written = hashlib.sha256(b'{"content":"' + b"x" * 9000 + b'","path":"p"}').hexdigest()
    assert (second["args_json"], second["args_json_digest"]) == (None, written)
    assert [third["call_id"], fourth["call_id"]] == [f"{run.run_id}.3", f"{run.run_id}.4"]
    results = {row["call_id"]: row for row in view(path, "tool_results")}
    assert results[f"{run.run_id}.1"] == {
        "call_id": f"{run.run_id}.1",
        "run_id": run.run_id,
        "seq": 5,
        "status": "success",
        "output_json": "true",
        "output_json_digest": None,
        "error": None,
        "error_digest": None,
        "policy_decision_json": '{"effect":"allow","rule":"read-docs"}',
        "policy_decision_json_digest": None,
        "started_at": "2023-11-14T22:13:20.001Z",
        "ended_at": "2023-11-14T22:13:20.501Z",
        "input_hash": hashes[2],
        "output_hash": hashes[5],
    }
    large = results[f"{run.run_id}.2"]
    read = hashlib.sha256(b'{"content":"' + b"y" * 9000 + b'"}').hexdigest()
    assert (large["output_json"], large["output_json_digest"], large["input_hash"]) == (None, read, hashes[3])
    denied = results[f"{run.run_id}.3"]
    assert (denied["status"], denied["error"], denied["input_hash"], denied["output_hash"]) == (
        "denied",
        '{"code":1001,"message":"no"}',
        hashes[6],
        None,
    )
    assert set(results) == {f"{run.run_id}.{call}" for call in (1, 2, 3)}


def test_planner_proposals_view(path: Path) -> None:
    store = open_store(path)
    with store.begin({**START, "mode": "agent"}) as run:
        run.append(
            "proposal",
            {
                "at": 1_700_000_000_000,
                "iteration": 1,
                "attempt": 2,
                "raw_response": 'do: {"tool"',
                "parsed_tool_call": {"tool": "fs.read"},
                "parse_status": "repaired",
                "repair_attempts": 1,
            },
        )
    assert view(path, "planner_proposals") == [
        {
            "proposal_id": f"{run.run_id}.1.2",
            "run_id": run.run_id,
            "seq": 2,
            "iteration": 1,
            "attempt": 2,
            "raw_response": 'do: {"tool"',
            "raw_response_digest": None,
            "parsed_tool_call": '{"tool":"fs.read"}',
            "parsed_tool_call_digest": None,
            "parse_status": "repaired",
            "repair_attempts": 1,
            "created_at": "2023-11-14T22:13:20.000Z",
        }
    ]
