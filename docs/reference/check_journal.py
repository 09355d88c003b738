# ruff: noqa: INP001, T201 - a script of its own
"""Check a Capsule journal with nothing but Python: python3 check_journal.py runs.db

A line for each run; exit 0 when every chain holds, 4 when one is broken, 1 when the file cannot be read as a journal.
"""

import hashlib
import json
import pathlib
import sqlite3
import sys
import uuid
import zlib

BODY = "SELECT codec, data FROM bodies WHERE digest = ? AND size = ?"
ROWS = "SELECT id, run_id, seq, kind, body, salt, prev, hash FROM records WHERE id >= ? AND id < ? ORDER BY id"


def need(holds, problem):
    if not holds:
        raise ValueError(problem)


def check_bodies(db, body):
    for name, value in json.loads(body).items():
        if isinstance(value, dict) and "$body" in value:
            digest, size = bytes.fromhex(value["$body"]), value["size"]
            codec, data = next(db.execute(BODY, [digest, size]), ("", b""))
            data = zlib.decompressobj().decompress(data, size + 1) if codec == "zlib" else data
            need(len(data) == size and hashlib.sha256(data).digest() == digest, f"the body of {name} was changed")


def check_run(db, number, run_id, others):
    base, count, head, last = number << 32, 0, bytes(32), ""
    try:
        need(run_id not in others, "another run has the same id")
        run = uuid.UUID(bytes=run_id)
        for place, row_run, seq, kind, body, salt, prev, sealed in db.execute(ROWS, [base, base + 2**32]):
            need((place, seq, row_run, prev) == (base + count + 1, count + 1, run_id, head), "is out of place")
            need(kind.isalpha() and (kind == "start") == (seq == 1) and last != "end", f"cannot be of kind {kind!r}")
            rest = f'"kind":"{kind}","prev":"{prev.hex()}","run":"{run}","salt":"{salt.hex()}","seq":{seq}'
            need(hashlib.sha256(f'{{"body":{body},{rest}}}'.encode()).digest() == sealed, "is not what was recorded")
            check_bodies(db, body)
            count, head, last = seq, sealed, kind
    except (ValueError, TypeError, AttributeError, zlib.error, sqlite3.Error) as error:
        return f"BROKEN at record {count + 1}: {error}"
    return f"ok, {count} records, {'' if last == 'end' else 'no end, '}head {head.hex()}"


if __name__ == "__main__":
    answers = {}
    try:
        db = sqlite3.connect(pathlib.Path(sys.argv[1]).resolve().as_uri() + "?mode=ro", uri=True)
        runs = db.execute("SELECT DISTINCT id >> 32, run_id FROM records").fetchall()
    except sqlite3.Error as error:
        sys.exit(f"{sys.argv[1]} cannot be read as a journal: {error}")
    for number, run_id in runs:
        answers[run_id] = check_run(db, number, run_id, answers)
        print(run_id.hex() if isinstance(run_id, bytes) else run_id, answers[run_id])
    sys.exit(4 if any(answer.startswith("BROKEN") for answer in answers.values()) else 0)
