"""Large fields: moved out, shared, packed where it pays, and back again as they were."""

from __future__ import annotations

import hashlib
import tracemalloc
import zlib
from base64 import b64encode
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journals import START, TickingClock, forge, open_store, outcome, rows

from capsule.canon import Json, canonical
from capsule.errors import StorageError
from capsule.store import Store

SCALARS = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=20)
KEYS = st.sampled_from(["$body", "size", "a", "é", "\U0001f600"]) | st.text(max_size=4)
LARGE = st.builds(lambda letter, count: letter * count, st.characters(codec="utf-8"), st.integers(8000, 9000))
VALUES = st.recursive(
    SCALARS | LARGE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=5
)
BODIES = st.dictionaries(KEYS, VALUES, max_size=4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def read_back(store: Store, body: dict[str, Json], *, bodies: bool = True) -> dict[str, Json]:
    with store.begin(body) as run:
        pass
    (record,) = store.records(run.run_id, bodies=bodies)
    return dict(record.body)


def test_any_body_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory) -> None:
    store = Store.open(tmp_path_factory.mktemp("any") / "runs.db", clock=TickingClock())

    @given(BODIES)
    def comes_back(body: dict[str, Json]) -> None:
        assert canonical(read_back(store, body)) == canonical(body)

    comes_back()
    assert store.verify().ok


def test_only_fields_over_8_kib_are_moved_out(path: Path) -> None:
    store = open_store(path)
    body: dict[str, Json] = {"below": "b" * 8190, "above": "a" * 8191, "small": 1}
    kept = read_back(store, body, bodies=False)
    data = canonical(body["above"])
    digest = hashlib.sha256(data).hexdigest()
    assert kept == {**body, "above": {"$body": digest, "size": 8193}}
    ((stored, size, codec, packed),) = rows(path, "SELECT * FROM bodies")
    assert isinstance(packed, bytes)
    assert (cast("bytes", stored).hex(), size, codec, zlib.decompress(packed)) == (digest, 8193, "zlib", data)


def test_what_looks_like_a_reference_is_not_one(path: Path) -> None:
    store = open_store(path)
    likeness: Json = {"$body": "00" * 32, "size": 5}
    body: dict[str, Json] = {"output": likeness, "nested": [likeness], "text": '{"$body":"'}
    assert read_back(store, body) == body
    kept = read_back(store, body, bodies=False)
    assert kept == {
        **body,
        "output": {"$body": hashlib.sha256(canonical(likeness)).hexdigest(), "size": len(canonical(likeness))},
    }
    assert store.verify().ok


def test_equal_bodies_lie_once_and_random_ones_unpacked(path: Path) -> None:
    store = open_store(path)
    noise = b64encode(TickingClock().random_bytes(20_000)).decode()
    with store.begin({**START, "plan": {"text": "x" * 9000}, "screen": noise}) as run:
        for call in (1, 2):
            run.append("refused", {**outcome(call), "args": {"text": "x" * 9000}})
    assert sorted(rows(path, "SELECT codec, size FROM bodies")) == [("raw", len(canonical(noise))), ("zlib", 9011)]


FORGED = {
    "is missing": "DELETE FROM bodies",
    "does not have the bytes": "UPDATE bodies SET codec = 'raw', data = zeroblob(size)",
    "cannot be unpacked": "UPDATE bodies SET data = x'ffff'",
    "is not stored as it was": "UPDATE bodies SET size = size + 1",
    "is not stored as it": "UPDATE bodies SET codec = 'lzma'",
    "is not stored as": "UPDATE bodies SET data = 'text'",
}


@pytest.mark.parametrize(("problem", "statement"), FORGED.items())
def test_a_body_that_was_changed_is_not_believed(path: Path, problem: str, statement: str) -> None:
    store = open_store(path)
    read_back(store, {**START, "plan": {"text": "x" * 9000}})
    forge(path, statement)
    (run,) = store.runs()
    with pytest.raises(StorageError, match=rf"{problem}.* \[5004\]"):
        store.run(run.run_id)
    (check,) = store.verify().checks
    assert check.breach
    assert (check.breach.seq, problem in check.breach.message) == (1, True)


def test_a_body_is_never_unpacked_beyond_its_size(path: Path) -> None:
    store = open_store(path)
    read_back(store, {**START, "plan": {"text": "x" * 9000}})
    bomb = zlib.compress(bytes(200_000_000), 9)
    forge(path, "UPDATE bodies SET data = ?", values=(bomb,))
    tracemalloc.start()
    try:
        assert not store.verify().ok
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_a_forged_reference_is_a_plain_message(path: Path) -> None:
    store = open_store(path)
    read_back(store, START)
    for reference in ('"?"', "1", '"' + "0" * 64 + '"'):
        forge(path, """UPDATE records SET body = '{"plan":{"$body":""" + reference + ""","size":"1"}}'""")
        with pytest.raises(StorageError, match=r"is not named as bodies are \[5004\]"):
            store.run(store.runs()[0].run_id)
