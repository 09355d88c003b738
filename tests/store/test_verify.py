"""Forged journals are found, honest ones are not accused: whatever was changed, by whoever has the file."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from journals import FORGERIES, START, end, forge, intent, mixed_journal, open_store, outcome, recorded_run, rows

from capsule.store import Record, Store
from capsule.store.chain import record_hash


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("honest") / "runs.db"
    mixed_journal(path)
    return path


@pytest.fixture
def path(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(honest, tmp_path / "runs.db"))


def checked(path: Path) -> list[str]:
    """For each run, what is wrong with it."""
    store = open_store(path, readonly=True)
    return [f"{check.breach.seq} {check.breach.message}" if check.breach else "ok" for check in store.verify().checks]


def test_an_honest_journal(path: Path) -> None:
    found = open_store(path, readonly=True).verify()
    assert found.ok
    assert [(check.records, check.ended, check.unknown) for check in found.checks] == [
        (9, True, ()),
        (6, False, (5,)),
        (9, True, ()),
    ]
    assert all(check.head == open_store(path).run(check.run_id).head for check in found.checks)


@pytest.mark.parametrize(("statements", "run", "breach"), FORGERIES.values(), ids=FORGERIES.keys())
def test_forgeries_are_found_and_named(path: Path, statements: tuple[str, ...], run: int, breach: str) -> None:
    forge(path, *statements)
    found = checked(path)
    assert breach in found[run], found
    assert [text for number, text in enumerate(found) if number != run] == ["ok"] * (len(found) - 1)
    run_id = open_store(path, readonly=True).verify().checks[run].run_id
    if "same id" not in breach and not breach.startswith("1 is missing"):
        assert not open_store(path, readonly=True).verify(run_id).ok


def test_text_cannot_move_between_body_and_kind(path: Path) -> None:
    """Composed bytes stay the same, and so does the hash; only the two columns differ."""
    with closing(sqlite3.connect(path)) as db:
        (place, kind, body), *_ = db.execute('SELECT id, kind, body FROM records WHERE body LIKE \'%,"kind":"%\'')
    before, _, after = body.partition(',"kind":"')
    forge(path, "UPDATE records SET body = ?, kind = ? WHERE id = ?", values=(before, f'{after},"kind":"{kind}', place))
    assert "its kind, body, salt, prev or hash is not what was recorded" in checked(path)[0]


def value(draw: st.DrawFn, old: object) -> object:
    if isinstance(old, bytes):
        at = draw(st.integers(0, len(old) - 1))
        flipped = old[:at] + bytes([old[at] ^ draw(st.integers(1, 255))]) + old[at + 1 :]
        return draw(st.sampled_from([flipped, old[:-1], old + b"\0", old.hex(), b"", 0]))
    if isinstance(old, str):
        at = draw(st.integers(0, len(old) - 1))
        other = old[:at] + draw(st.characters(codec="utf-8", exclude_characters=old[at])) + old[at + 1 :]
        return draw(st.sampled_from([other, old[:-1], old + " ", old.encode(), "", 0]))
    assert isinstance(old, int)
    return draw(st.sampled_from([old + 1, old - 1, -old, old + 2**32, old + 0.5, str(old) + "x", b"x"]))


@st.composite
def mutations(draw: st.DrawFn, path: Path) -> tuple[str, tuple[object, ...]]:
    """One cell of one row, changed; or two cells of a column, swapped; or a row gone from within."""
    with closing(sqlite3.connect(path)) as db:
        table = draw(st.sampled_from(["records", "records", "bodies"]))
        row = draw(st.sampled_from([row for (row,) in db.execute(f"SELECT rowid FROM {table}")]))
        names = [column[1] for column in db.execute(f"PRAGMA table_info({table})")]
        column = draw(st.sampled_from(names))
        ((old,),) = db.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,))
        followed = db.execute(f"SELECT 1 FROM {table} WHERE rowid = ?", (row + 1,)).fetchone()
        others = db.execute(f"SELECT {column} FROM {table} WHERE rowid <> ?", (row,)).fetchall()
    if (table == "bodies" or followed) and draw(st.integers(0, 9)) == 0:
        return f"DELETE FROM {table} WHERE rowid = ?", (row,)
    new = draw(st.sampled_from(others))[0] if draw(st.booleans()) else value(draw, old)
    return f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, row)


def contents(path: Path) -> list[tuple[object, ...]]:
    typed = (
        "SELECT *, typeof(run_id), typeof(kind), typeof(body), typeof(salt), typeof(prev), typeof(hash) FROM records"
    )
    return rows(path, typed) + rows(path, "SELECT *, typeof(codec), typeof(data) FROM bodies")


def whole(store: Store) -> list[list[Record]]:
    return [list(store.records(run.run_id)) for run in store.runs()]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=200)
@given(st.data())
def test_any_cell_that_is_changed_is_found(honest: Path, tmp_path: Path, data: st.DataObject) -> None:
    path = Path(shutil.copy(honest, tmp_path / "runs.db"))
    statement, values = data.draw(mutations(path))
    store = open_store(path, readonly=True)
    before, read_before = contents(path), whole(store)
    try:
        forge(path, statement, values=values)
    except sqlite3.IntegrityError:
        assume(False)
    assume(contents(path) != before)
    # Packed data has some bits that mean nothing: with those changed it is still what was recorded.
    assert not store.verify().ok or ("bodies SET data" in statement and whole(store) == read_before)


BODIES = st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers(0, 9) | st.none(), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(st.lists(st.tuples(BODIES, st.booleans(), st.booleans()), max_size=12), st.booleans())
def test_no_honest_journal_is_accused(
    tmp_path: Path, calls: list[tuple[dict[str, str], bool, bool]], ended: bool
) -> None:
    store = open_store(tmp_path / "runs.db")
    with store.begin(START) as run:
        for call, (fields, hold, answered) in enumerate(calls):
            run.append("intent", {**fields, **intent(call)})
            if answered:
                run.append("outcome", {**fields, **outcome(call)}, hold=hold)
        if ended:
            run.end(end())
    assert store.verify().ok
    (check,) = store.verify(run.run_id).checks
    assert len(check.unknown) == sum(not answered for _, _, answered in calls)


def test_a_tail_that_was_cut_off_is_found_by_an_exported_head(path: Path) -> None:
    """A chain without its last records is a chain; who wants to know keeps its head elsewhere."""
    store = open_store(path)
    first, second, third = (check.head for check in store.verify().checks)
    (interrupted,) = (check.run_id for check in store.verify().checks if not check.ended)
    assert store.verify(interrupted, head=second).ok
    assert store.verify(head=third).ok
    earlier = next(record.hash for record in store.records(interrupted) if record.seq == 3)
    assert store.verify(interrupted, head=earlier).ok, "a head that was exported before the run went on"
    forge(path, "DELETE FROM records WHERE id = (SELECT max(id) FROM records WHERE id < 3 << 32)")
    assert store.verify(interrupted).ok
    found = store.verify(interrupted, head=second)
    assert (found.ok, found.problem) == (False, f"no chain that holds has a record with the hash {second}")
    assert not store.verify(interrupted, head=first).ok
    assert not store.verify(head=second).ok


def test_an_older_copy_of_the_file_is_found_by_an_exported_head(path: Path, tmp_path: Path) -> None:
    older = Path(shutil.copy(path, tmp_path / "older.db"))
    store = open_store(path)
    head = store.run(recorded_run(store)).head
    assert store.verify(head=head).ok
    assert not open_store(older).verify(head=head).ok


def rehashed(path: Path, run: int, bodies: dict[int, tuple[str, str]]) -> None:
    """A forger who makes all hashes new: the chain holds, so what is said in it must make sense by itself."""
    run_id = open_store(path, readonly=True).verify().checks[run - 1].run_id
    forge(path, "DROP INDEX IF EXISTS runs_begun")
    with closing(sqlite3.connect(path)) as db:
        query = "SELECT id, seq, kind, body, salt FROM records WHERE id >> 32 = ? ORDER BY id"
        prev = bytes(32)
        for place, seq, old_kind, old_body, salt in db.execute(query, (run,)).fetchall():
            kind, body = bodies.get(seq, (old_kind, old_body))
            sealed = record_hash(run_id, seq, kind, body, salt, prev)
            forge(
                path,
                "UPDATE records SET kind = ?, body = ?, prev = ?, hash = ? WHERE id = ?",
                values=(kind, body, prev, sealed, place),
            )
            prev = sealed


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("start", "{}", "is a start; a run has one start, its first record"),
        ("end", "{}", "stands after the end of the run"),
        ("outcome", "{}", "is an outcome of a call that did not begin"),
        ("outcome", '{"begun":true}', "is an outcome of a call that did not begin"),
        ("outcome", '{"begun":[2]}', "is an outcome of a call that did not begin"),
        ("outcome", '{"at":1,"begun":99,"call":1}', "is an outcome of a call that did not begin"),
        ("outcome", "[]", "its body is not an object"),
        ("outcome", "[" * 100_000, "its body is not an object"),
        ("outcome", "", "its body is not an object"),
        ("wait", '{"a":{"$body":"x","size":1}}', "is not named as bodies are"),
        ("wait", '{"a":{"$body":"' + "0" * 64 + '","size":1}}', "a: the body 000000000000… is missing"),
    ],
)
def test_a_chain_that_holds_must_make_sense(path: Path, kind: str, body: str, message: str) -> None:
    rehashed(path, 1, {4: (kind, body)})
    assert message in checked(path)[0]
    rehashed(path, 1, {1: ("wait", "{}"), 4: ("wait", "{}")})
    assert checked(path)[0].startswith("1 is a wait; a run has one start")


def test_no_records_no_runs(tmp_path: Path) -> None:
    found = open_store(tmp_path / "runs.db").verify()
    assert (found.ok, found.checks) == (True, ())
    assert not open_store(tmp_path / "runs.db").verify(head=hashlib.sha256().hexdigest()).ok


def test_the_ends_of_the_number_line(path: Path) -> None:
    for place in (-(2**63), -1, 2**63 - 1):
        forge(
            path, f"INSERT OR REPLACE INTO records SELECT {place}, x'01', 9, kind, body, salt, prev, hash FROM records"
        )
    assert checked(path).count("ok") == 3
    assert len(checked(path)) == 6


WRITING = """
import sys
from pathlib import Path
from journals import *
store = open_store(Path(sys.argv[1]))
with store.begin(START) as run:
    print(flush=True)
    for call in range(1, 400):
        run.append("intent", intent(call))
        run.append("outcome", outcome(call, output="x" * 9000), hold=call % 2 == 0)
    run.end(end())
"""


def test_verify_while_a_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with subprocess.Popen(
        [sys.executable, "-c", WRITING, path],
        env={"PYTHONPATH": str(Path(__file__).parents[1])},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        process.stdout.readline()
        store: Store = open_store(path, readonly=True)
        looks = []
        while process.poll() is None:
            (check,) = store.verify().checks
            assert check.ok
            looks.append(check.records)
    assert process.returncode == 0
    assert looks == sorted(looks)
    assert store.verify().checks[0].records == 800


@pytest.mark.parametrize("forged", ["CAST(body AS BLOB)", "5"])
def test_a_body_of_another_kind_is_a_breach_and_no_crash(path: Path, forged: str) -> None:
    store = open_store(path)
    run_id = recorded_run(store)
    forge(path, f"UPDATE records SET body = {forged} WHERE seq = 3")
    check = next(check for check in store.verify().checks if check.run_id == run_id)
    assert check.breach is not None
    assert check.breach.seq == 3


def test_a_body_of_bytes_whose_hash_fits_is_a_breach_and_no_crash(path: Path) -> None:
    store = open_store(path)
    run_id = recorded_run(store)
    key = bytes.fromhex(run_id.replace("-", ""))
    [(body, salt, prev)] = rows(path, "SELECT body, salt, prev FROM records WHERE run_id = ? AND seq = 2", key)
    assert isinstance(body, str)
    assert isinstance(salt, bytes)
    assert isinstance(prev, bytes)
    data = body.encode()
    sealed = record_hash(run_id, 2, "intent", str(data), salt, prev)
    forge(path, "UPDATE records SET body = ?, hash = ? WHERE run_id = ? AND seq = 2", values=(data, sealed, key))
    check = next(check for check in store.verify().checks if check.run_id == run_id)
    assert check.breach is not None
    assert check.breach.seq == 2
