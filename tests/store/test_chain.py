"""The record's canonical form, as the format page has it and as another implementation of RFC 8785 writes it."""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from journals import START, open_store, recorded_run, rows

from capsule.store.chain import record_bytes

FIELDS = st.dictionaries(st.text(), st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text())


@given(FIELDS, st.integers(1, 2**32 - 1), st.binary(min_size=16, max_size=16), st.binary(min_size=32, max_size=32))
def test_composed_bytes_are_the_canonical_form(
    body: dict[str, str | int | None], seq: int, salt: bytes, prev: bytes
) -> None:
    run = str(uuid.UUID(bytes=salt))
    record: dict[str, Any] = {
        "body": body,
        "kind": "wait",
        "prev": prev.hex(),
        "run": run,
        "salt": salt.hex(),
        "seq": seq,
    }
    text = rfc8785.dumps(body).decode()
    assert record_bytes(run, seq, "wait", text, salt.hex(), prev.hex()) == rfc8785.dumps(record)


def test_the_rows_of_a_run_are_such_a_chain(tmp_path: Path) -> None:
    run_id = recorded_run(open_store(tmp_path / "db"))
    before = bytes(32)
    stored = rows(tmp_path / "db", "SELECT run_id, seq, kind, body, salt, prev, hash FROM records ORDER BY id")
    for number, (run, seq, kind, body, salt, prev, sealed) in enumerate(stored, start=1):
        assert isinstance(run, bytes)
        assert isinstance(body, str)
        assert isinstance(salt, bytes)
        assert isinstance(sealed, bytes)
        assert (str(uuid.UUID(bytes=run)), seq, prev, len(salt)) == (run_id, number, before, 16)
        fields: dict[str, Any] = {"kind": kind, "prev": before.hex(), "run": run_id, "salt": salt.hex(), "seq": seq}
        assert hashlib.sha256(rfc8785.dumps({"body": json.loads(body), **fields})).digest() == sealed
        before = sealed
    assert uuid.UUID(run_id).version == 7
    assert len({row[4] for row in stored}) == len(stored), "a salt was used twice"


def test_the_time_of_a_run_id_is_that_of_its_beginning(tmp_path: Path) -> None:
    store = open_store(tmp_path / "db")
    run_id = uuid.UUID(recorded_run(store, 0, **START))
    assert 0 <= (run_id.int >> 80) - 1_700_000_000_000 < 1000
    assert run_id.variant == uuid.RFC_4122
