"""The schema, as a list that only grows: user_version says how many of these a file has seen.

Tables and triggers keep what was written; views show it under the names that readers of the journal know. A published
migration is never edited, since files in the field were made by it; a later one may replace its views.
"""

# ruff: noqa: S608 - the pieces of these statements are all constants of this file

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TypeAlias

Migration: TypeAlias = tuple[str, ...]

APPLICATION_ID = int.from_bytes(b"CPSL")

_RECORDS = """
CREATE TABLE records (
    id     INTEGER PRIMARY KEY,  -- number of the run * 2^32 + seq: one key in one tree, in the order of the chain
    run_id BLOB NOT NULL,        -- the 16 bytes of a UUIDv7
    seq    INTEGER NOT NULL,     -- 1, 2, 3 ... within the run
    kind   TEXT NOT NULL,
    body   TEXT NOT NULL,        -- RFC 8785 JSON; large fields are references into bodies
    salt   BLOB NOT NULL,        -- 16 random bytes
    prev   BLOB NOT NULL,        -- hash of the record before; zeros in the first
    hash   BLOB NOT NULL         -- SHA-256 of the record's canonical form
)
"""

_BODIES = """
CREATE TABLE bodies (
    digest BLOB PRIMARY KEY NOT NULL,  -- SHA-256 of the uncompressed canonical bytes
    size   INTEGER NOT NULL,           -- of the uncompressed bytes
    codec  TEXT NOT NULL,              -- raw, zlib
    data   BLOB NOT NULL
)
"""

_TOMBSTONES = """
CREATE TABLE tombstones (
    run_id  BLOB PRIMARY KEY NOT NULL,
    head    BLOB NOT NULL,     -- hash of the last record
    records INTEGER NOT NULL,  -- how many there were
    at      INTEGER NOT NULL   -- when they were removed, in ms since 1970
) WITHOUT ROWID
"""

# The one named door: while a row stands in `doors`, whole runs that have a tombstone may be removed.
_DOORS = "CREATE TABLE doors (name TEXT PRIMARY KEY NOT NULL CHECK (name = 'prune')) WITHOUT ROWID"

_RUNS_BEGUN = "CREATE UNIQUE INDEX runs_begun ON records (run_id) WHERE kind = 'start'"

# BEFORE, so that it also stops INSERT OR REPLACE, which deletes without asking the delete triggers.
_RECORDS_INSERT = """
CREATE TRIGGER records_insert BEFORE INSERT ON records WHEN
    NEW.id & 4294967295 <> NEW.seq
    OR (NEW.seq = 1) <> (NEW.kind = 'start')
    OR EXISTS (SELECT 1 FROM records WHERE id = NEW.id)
    OR CASE NEW.seq
        WHEN 1 THEN EXISTS (SELECT 1 FROM records WHERE kind = 'start' AND run_id = NEW.run_id)
        ELSE NOT EXISTS (SELECT 1 FROM records WHERE id = NEW.id - 1 AND run_id = NEW.run_id)
    END
BEGIN SELECT RAISE(ABORT, 'records is append-only: a record follows the last one of its run'); END
"""

_RECORDS_UPDATE = """
CREATE TRIGGER records_update BEFORE UPDATE ON records
BEGIN SELECT RAISE(ABORT, 'records is append-only'); END
"""

_RECORDS_DELETE = """
CREATE TRIGGER records_delete BEFORE DELETE ON records WHEN
    NOT EXISTS (SELECT 1 FROM doors WHERE name = 'prune')
    OR NOT EXISTS (SELECT 1 FROM tombstones WHERE run_id = OLD.run_id)
BEGIN SELECT RAISE(ABORT, 'records is append-only'); END
"""

_BODIES_INSERT = """
CREATE TRIGGER bodies_insert BEFORE INSERT ON bodies WHEN EXISTS (SELECT 1 FROM bodies WHERE digest = NEW.digest)
BEGIN SELECT RAISE(ABORT, 'bodies is append-only'); END
"""

_BODIES_UPDATE = """
CREATE TRIGGER bodies_update BEFORE UPDATE ON bodies
BEGIN SELECT RAISE(ABORT, 'bodies is append-only'); END
"""

_BODIES_DELETE = """
CREATE TRIGGER bodies_delete BEFORE DELETE ON bodies WHEN NOT EXISTS (SELECT 1 FROM doors WHERE name = 'prune')
BEGIN SELECT RAISE(ABORT, 'bodies is append-only'); END
"""

_TOMBSTONES_UPDATE = """
CREATE TRIGGER tombstones_update BEFORE UPDATE ON tombstones
BEGIN SELECT RAISE(ABORT, 'tombstones is append-only'); END
"""

_TOMBSTONES_INSERT = """
CREATE TRIGGER tombstones_insert BEFORE INSERT ON tombstones WHEN
    NOT EXISTS (SELECT 1 FROM doors WHERE name = 'prune')
    OR EXISTS (SELECT 1 FROM tombstones WHERE run_id = NEW.run_id)
BEGIN SELECT RAISE(ABORT, 'tombstones is append-only'); END
"""

_TOMBSTONES_DELETE = """
CREATE TRIGGER tombstones_delete BEFORE DELETE ON tombstones
BEGIN SELECT RAISE(ABORT, 'tombstones is append-only'); END
"""


def _uuid(column: str) -> str:
    parts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    return "lower(" + " || '-' || ".join(f"substr(hex({column}), {at}, {size})" for at, size in parts) + ")"


def _time(milliseconds: str) -> str:
    return f"strftime('%Y-%m-%dT%H:%M:%fZ', {milliseconds} / 1000.0, 'unixepoch')"


def _value(body: str, path: str) -> str:
    return f"json_extract({body}, '$.{path}')"


def _json(body: str, field: str, name: str) -> str:
    """A field as JSON text, null where it is absent, null or moved out; beside it the digest it was moved out under."""
    at = f"{body}, '$.{field}'"
    moved = f"""{body}, '$.{field}."$body"'"""
    return f"""CASE
        WHEN json_type({moved}) IS NOT NULL THEN NULL
        ELSE CASE json_type({at}) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN NULL
            WHEN 'text' THEN json_quote(json_extract({at})) ELSE json_extract({at}) END
    END AS {name}, json_extract({moved}) AS {name}_digest"""


def _text(body: str, field: str, name: str) -> str:
    """A field that is text, shown without quotes."""
    moved = f"""{body}, '$.{field}."$body"'"""
    return f"""CASE WHEN json_type({moved}) IS NULL THEN json_extract({body}, '$.{field}') END AS {name},
    json_extract({moved}) AS {name}_digest"""


def _call_id(record: str) -> str:
    return f"{_uuid(record + '.run_id')} || '.' || {_value(record + '.body', 'call')}"


# A run that has no end yet is counted from its records; `l` is its last record.
_OVER = "CASE WHEN l.kind = 'end' THEN l.body END"
_WITHIN = "r.id BETWEEN s.id AND s.id + 4294967294"


def _count(name: str, kinds: str, condition: str = "1") -> str:
    counted = f"(SELECT count(*) FROM records r WHERE {_WITHIN} AND r.kind IN ({kinds}) AND {condition})"
    return f"coalesce({_value(_OVER, f'counts.{name}')}, {counted})"


_ENDED = "'outcome', 'refused'"
_STATUS = _value("r.body", "status")

_RUNS_VIEW = f"""
CREATE VIEW runs AS SELECT
    {_uuid("s.run_id")} AS run_id,
    {_time(_value("s.body", "at"))} AS created_at,
    {_time(_value(_OVER, "at"))} AS completed_at,
    {_value("s.body", "mode")} AS mode,
    {_value(_OVER, "status")} AS status,
    {_value("s.body", "workdir")} AS workdir,
    {_value("s.body", "plan_name")} AS plan_name,
    {_value("s.body", "plan_digest")} AS plan_hash,
    coalesce({_value("s.body", "policy_digest")}, {_value("s.body", "policies[0].digest")}) AS policy_hash,
    {_json("s.body", "plan", "plan_json")},
    {_json("s.body", "policies", "policy_json")},
    {_count("total", "'intent', 'refused'")} AS total_steps,
    {_count("completed", "'outcome'", f"{_STATUS} = 'success'")} AS completed_steps,
    {_count("denied", _ENDED, f"{_STATUS} = 'denied'")} AS denied_steps,
    {_count("failed", _ENDED, f"{_STATUS} NOT IN ('success', 'denied')")} AS failed_steps,
    {_json(_OVER, "error", "error")},
    l.seq AS records,
    lower(hex(l.hash)) AS head
FROM records s JOIN records l ON l.id = (SELECT max(r.id) FROM records r WHERE {_WITHIN})
WHERE s.kind = 'start'
"""

# What follows from the call's number or from the run's first record is left out of a call's own.
_STEP_INDEX = f"""coalesce({_value("c.body", "step_index")}, {_value("c.body", "call")} - 1)"""
_FIRST = "(SELECT s.body FROM records s WHERE s.id = c.id - c.seq + 1)"

_TOOL_CALLS_VIEW = f"""
CREATE VIEW tool_calls AS SELECT
    {_call_id("c")} AS call_id,
    {_uuid("c.run_id")} AS run_id,
    c.seq AS seq,
    coalesce({_value("c.body", "step")}, 'step_' || ({_STEP_INDEX} + 1)) AS step_id,
    {_STEP_INDEX} AS step_index,
    {_value("c.body", "tool")} AS tool_name,
    coalesce({_value("c.body", "source")}, {_value(_FIRST, "source")}) AS source,
    {_json("c.body", "args", "args_json")},
    {_time(_value("c.body", "at"))} AS created_at
FROM records c WHERE c.kind IN ('intent', 'refused')
"""

# An intent stands for an allow and does not say so.
_DECISION = """CASE
        WHEN json_type(c.body, '$.decision."$body"') IS NOT NULL THEN NULL
        WHEN c.kind = 'intent' THEN json_set(json_extract(c.body, '$.decision'), '$.effect', 'allow')
        ELSE json_extract(c.body, '$.decision')
    END AS policy_decision_json, json_extract(c.body, '$.decision."$body"') AS policy_decision_json_digest"""

# An outcome names the seq of the record where its call began, so the join is one step down the tree. A hash is that
# of the record which holds the input or the output.
_TOOL_RESULTS_VIEW = f"""
CREATE VIEW tool_results AS SELECT
    {_call_id("o")} AS call_id,
    {_uuid("o.run_id")} AS run_id,
    o.seq AS seq,
    {_value("o.body", "status")} AS status,
    {_json("o.body", "output", "output_json")},
    {_json("o.body", "error", "error")},
    {_DECISION},
    {_time(_value("c.body", "at"))} AS started_at,
    {_time(_value("o.body", "at"))} AS ended_at,
    lower(hex(c.hash)) AS input_hash,
    CASE o.kind WHEN 'outcome' THEN lower(hex(o.hash)) END AS output_hash
FROM records o LEFT JOIN records c
    ON c.id = CASE o.kind WHEN 'refused' THEN o.id ELSE o.id - o.seq + {_value("o.body", "begun")} END
WHERE o.kind IN ({_ENDED})
"""

_PROPOSALS_VIEW = f"""
CREATE VIEW planner_proposals AS SELECT
    {_uuid("p.run_id")} || '.' || {_value("p.body", "iteration")} || '.' || {_value("p.body", "attempt")}
        AS proposal_id,
    {_uuid("p.run_id")} AS run_id,
    p.seq AS seq,
    {_value("p.body", "iteration")} AS iteration,
    {_value("p.body", "attempt")} AS attempt,
    {_text("p.body", "raw_response", "raw_response")},
    {_json("p.body", "parsed_tool_call", "parsed_tool_call")},
    {_value("p.body", "parse_status")} AS parse_status,
    coalesce({_value("p.body", "repair_attempts")}, 0) AS repair_attempts,
    {_time(_value("p.body", "at"))} AS created_at
FROM records p WHERE p.kind = 'proposal'
"""

MIGRATIONS: tuple[Migration, ...] = (
    (
        f"PRAGMA application_id = {APPLICATION_ID}",
        _RECORDS,
        _BODIES,
        _TOMBSTONES,
        _DOORS,
        _RUNS_BEGUN,
        _RECORDS_INSERT,
        _RECORDS_UPDATE,
        _RECORDS_DELETE,
        _BODIES_INSERT,
        _BODIES_UPDATE,
        _BODIES_DELETE,
        _TOMBSTONES_INSERT,
        _TOMBSTONES_UPDATE,
        _TOMBSTONES_DELETE,
        _RUNS_VIEW,
        _TOOL_CALLS_VIEW,
        _TOOL_RESULTS_VIEW,
        _PROPOSALS_VIEW,
    ),
)


# Indexes of primary keys, which alone have no text, and what ANALYZE keeps. A name like SQLite's own proves nothing.
_SQLITES_OWN = "(type = 'index' AND sql IS NULL) OR (type = 'table' AND name IN ('sqlite_stat1', 'sqlite_stat4'))"


def strange_to(db: sqlite3.Connection, version: int) -> list[str]:
    """What a file of this schema holds beside what its migrations made, or lacks of it; empty in a store of ours."""
    made = {" ".join(text.split()) for step in MIGRATIONS[:version] for text in step if not text.startswith("PRAGMA")}
    rows = db.execute(f"SELECT type, name, sql FROM sqlite_master WHERE NOT ({_SQLITES_OWN})")
    found = {" ".join(str(sql).split()): f"the {kind} {name}" for kind, name, sql in rows}
    added = [what for text, what in found.items() if text not in made]
    missing = [_named(text) for text in made if text not in found]
    return [f"{what} is not Capsule's" for what in sorted(added)] + [f"{what} is missing" for what in sorted(missing)]


def _named(statement: str) -> str:
    """`the trigger records_update`, of the statement that makes it."""
    words = [word for word in statement.split()[1:4] if word != "UNIQUE"]
    return f"the {words[0].lower()} {words[1]}"


def schema_version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def migrate(db: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """All that is missing, in one transaction; of two processes that try at once one finds nothing left to do."""
    db.execute("BEGIN IMMEDIATE")
    try:
        for migration in migrations[schema_version(db) :]:
            for statement in migration:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(migrations)}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
