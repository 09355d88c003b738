"""How a run begins: what its first record says, and that whatever fails then leaves nothing behind."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gated import Made, bodies, db_of, ends_as, gate_of, grown, holds, kinds, made, newest, read, tree, write
from granted import open_descriptors

from capsule import __version__
from capsule.calls import BUILTIN, RunStatus, ToolCall
from capsule.canon import Json, digest_of
from capsule.effects import SystemClock
from capsule.errors import PlanError, StorageError
from capsule.gate import Gate, Opening, assemble
from capsule.policy import Policy
from capsule.settings import Settings
from capsule.store import Store

POLICY = 'rules: [{action: allow, tool: "fs.*", constraints: {paths: {pattern: "./**"}}}]'

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


def test_the_first_record_says_what_a_replay_must_know(workdir: Path, db: Path) -> None:
    policy = Policy.parse(POLICY)
    with gate_of(workdir, policy, "name: second\nrules: []") as gate:
        gate.call(read("docs/a"))
    (start,) = bodies(db, "start")
    second: dict[str, Json] = {"name": "second", "rules": []}
    expected: dict[str, Json] = {
        "mode": "run",
        "workdir": str(workdir),
        "policies": [
            {"name": "<policy>", "digest": policy.digest, "document": policy.value},
            {"name": "second", "digest": digest_of(second), "document": second},
        ],
        "versions": {"capsule": __version__},
    }
    assert {name: start[name] for name in expected} == expected
    assert start["tools"] == digest_of([BUILTIN[name].as_json() for name in sorted(BUILTIN)])
    assert len(str(start["screen"])) == 64


def test_the_home_is_made_for_its_owner_alone(workdir: Path, isolated_home: Path) -> None:
    with Gate.open(policy=Policy.parse(POLICY), workdir=workdir):
        home = isolated_home / ".capsule"
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (home, *home.iterdir())}
    assert modes[".capsule"] == 0o700
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}
    assert len((home / "key").read_bytes()) == 32


def test_a_key_is_made_once(workdir: Path, isolated_home: Path) -> None:
    keys = set()
    for _ in range(3):
        with Gate.open(policy=Policy.parse(POLICY), workdir=workdir):
            keys.add((isolated_home / ".capsule/key").read_bytes())
    assert len(keys) == 1


def _opening(workdir: Path, db: Path) -> Opening:
    return Opening(settings=Settings.load(os.environ), policies=[Policy.parse(POLICY)], workdir=workdir, db=db)


def _text(db: Path) -> None:
    db.write_text("not a database, but somebody's notes\n" * 100)


def _another(db: Path) -> None:
    with closing(sqlite3.connect(db)) as opened:
        opened.execute("CREATE TABLE notes (text)")


def _newer(db: Path) -> None:
    Store.open(db, clock=SystemClock())
    with closing(sqlite3.connect(db)) as opened:
        opened.execute("PRAGMA user_version = 999")


def _fifo(db: Path) -> None:
    os.mkfifo(db)


def _loop(db: Path) -> None:
    db.symlink_to(db.name)


BAD_STORES: dict[str, tuple[Callable[[Path], object], int]] = {
    "text": (_text, 5001),
    "another program's": (_another, 5001),
    "newer": (_newer, 5005),
    "a directory": (Path.mkdir, 5001),
    "a FIFO": (_fifo, 5001),
    "a link loop": (_loop, 5001),
}


@pytest.mark.parametrize("name", BAD_STORES)
def test_a_store_that_is_none_is_left_as_it_is_and_nothing_runs(workdir: Path, db: Path, name: str) -> None:
    make, number = BAD_STORES[name]
    db.parent.mkdir()
    make(db)
    before = hashlib.sha256(db.read_bytes()).digest() if db.is_file() else None
    with pytest.raises(StorageError) as raised:
        assemble(_opening(workdir, db))
    assert raised.value.code == number
    assert raised.value.hint
    assert [path.name for path in db.parent.iterdir()] == [db.name]
    assert (hashlib.sha256(db.read_bytes()).digest() if db.is_file() else None) == before


@pytest.mark.parametrize("workdir_name", ["none", "docs/a", "/proc", "/proc/self/fd"])
def test_a_workdir_that_is_none_is_refused_before_a_run_begins(workdir: Path, db: Path, workdir_name: str) -> None:
    with pytest.raises(PlanError) as raised:
        assemble(_opening(workdir / workdir_name, db))
    assert raised.value.code == 3001
    assert not db.exists()


@pytest.mark.parametrize("key", [b"", b"short", bytes(33)])
def test_a_key_that_is_none_is_never_replaced(workdir: Path, db: Path, isolated_home: Path, key: bytes) -> None:
    home = isolated_home / ".capsule"
    home.mkdir(mode=0o700)
    (home / "key").write_bytes(key)
    with pytest.raises(StorageError):
        assemble(_opening(workdir, db))
    assert (home / "key").read_bytes() == key
    assert not db.exists()


def test_what_fails_at_the_start_leaves_nothing_open(workdir: Path, db: Path) -> None:
    db.parent.mkdir()
    _newer(db)
    before = open_descriptors()
    for place in (workdir, workdir / "none"):
        with pytest.raises((StorageError, PlanError)):
            assemble(_opening(place, db))
    assert open_descriptors() == before


def test_a_gate_lets_everything_go(workdir: Path, db: Path) -> None:
    with gate_of(workdir, POLICY) as gate:
        gate.call(read("docs/a"))
    before = open_descriptors()
    for _ in range(3):
        with gate_of(workdir, POLICY) as gate:
            gate.call(read("docs/a"))
    assert open_descriptors() == before


@contextmanager
def _mounted(where: Path, *options: str) -> Iterator[None]:
    subprocess.run(["mount", *options, where], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", where], check=True)


@as_root
def test_a_read_only_journal_runs_nothing(workdir: Path, db: Path) -> None:
    with gate_of(workdir, POLICY) as gate:
        gate.call(read("docs/a"))
    before = tree(db.parent)
    with _mounted(db.parent, "--bind", str(db.parent)):
        subprocess.run(["mount", "-o", "remount,ro,bind", db.parent], check=True)
        with pytest.raises(StorageError) as raised:
            assemble(_opening(workdir, db))
    assert raised.value.code == 5001
    assert tree(db.parent) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_journal_that_may_not_be_written_runs_nothing(workdir: Path, db: Path) -> None:
    with gate_of(workdir, POLICY):
        pass
    for path, mode in ((db.parent, 0o500), (db, 0o400)):
        was = path.stat().st_mode
        path.chmod(mode)
        try:
            with pytest.raises(StorageError) as raised:
                assemble(_opening(workdir, db))
            assert raised.value.code == 5001
        finally:
            path.chmod(was)
    assert len(kinds(db)) == 2


def _writer(effects: list[str]) -> Made:
    return made(lambda args, context: effects.append("done"))


MADE = POLICY[:-1] + ", {action: allow, tool: made.tool}]"


@as_root
def test_on_a_full_disk_nothing_runs_unrecorded(workdir: Path, db: Path) -> None:
    """A small file system holds the journal alone: the calls could be done, but not recorded."""
    db.parent.mkdir()
    effects: list[str] = []
    with _mounted(db.parent, "-t", "tmpfs", "-o", "size=1500k", "tmpfs"):
        gate = gate_of(workdir, MADE, tool=_writer(effects))
        assert gate.call(ToolCall(tool="made.tool")).ok
        _fill(db.parent)
        refused: list[StorageError] = []
        for number in range(40):
            try:
                gate.call(write(f"docs/new{number}", "x" * 5_000))
            except StorageError as error:
                refused.append(error)
        with pytest.raises(StorageError):
            gate.call(ToolCall(tool="made.tool"))
        gate.finish(RunStatus.FAILED)
        gate.close()
        run = newest(db)
        assert run.status is RunStatus.FAILED
        assert holds(db)
        intents = {str(body["args"]) for body in bodies(db, "intent")}
        shutil.copytree(db.parent, workdir.with_name("kept"))
    assert {error.code for error in refused} == {5002}
    assert effects == ["done"]
    written = [path.name for path in (workdir / "docs").glob("new*")]
    assert all(any(f"docs/{name}'" in intent for intent in intents) for name in written)
    assert len(written) + len(refused) == 40


def _fill(directory: Path) -> None:
    with (directory / "filler").open("wb", buffering=0) as filler:
        for size in (65536, 4096, 1):
            try:
                while True:
                    filler.write(bytes(size))
            except OSError:
                continue


def test_where_the_journal_cannot_grow_nothing_runs_unrecorded(workdir: Path, db: Path) -> None:
    """The same without root: files of this process may not get larger for a while."""
    effects: list[str] = []
    gate = gate_of(workdir, MADE, tool=_writer(effects))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(StorageError) as raised:
            gate.call(ToolCall(tool="made.tool"))
        with pytest.raises(StorageError):
            gate.call(write("docs/new"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert raised.value.code == 5002
    gate.finish(RunStatus.FAILED)
    gate.close()
    assert effects == []
    assert not (workdir / "docs/new").exists()
    assert ends_as(db, gate.run_id) is RunStatus.FAILED


def test_a_journal_that_stays_locked_runs_nothing(workdir: Path, db: Path) -> None:
    effects: list[str] = []
    tool = _writer(effects)
    parts = assemble(
        replace(
            _opening(workdir, db), policies=[Policy.parse(MADE, definitions={**BUILTIN, "made.tool": tool.definition})]
        )
    )
    parts.registry.add(tool)
    impatient = Store.open(db, clock=parts.clock, busy_seconds=0.05)
    writer = parts.resources.enter_context(impatient.begin({"at": 0, "mode": "run"}))
    gate = Gate(replace(parts, writer=writer))
    with closing(sqlite3.connect(db, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for call in (ToolCall(tool="made.tool"), write("docs/new"), read("docs/none"), ToolCall(tool="x")):
            with pytest.raises(StorageError) as raised:
                gate.call(call)
            assert raised.value.code == 5006
            assert raised.value.retriable
        other.execute("ROLLBACK")
    assert effects == []
    assert not (workdir / "docs/new").exists()
    assert gate.call(ToolCall(tool="made.tool")).ok
    gate.finish(RunStatus.COMPLETED)
    gate.close()
    assert kinds(db, writer.run_id) == ["start", "intent", "outcome", "end"]
    assert holds(db)


def test_what_cannot_be_recorded_afterwards_began_and_is_unknown(workdir: Path, db: Path) -> None:
    """The journal stops working while a tool runs: its intent is there, and the caller is told."""
    held: list[sqlite3.Connection] = []

    def act(args: object, context: object) -> object:
        other = sqlite3.connect(db, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        held.append(other)
        return "done"

    tool = made(act)
    policy = Policy.parse(MADE, definitions={**BUILTIN, "made.tool": tool.definition})
    parts = assemble(replace(_opening(workdir, db), policies=[policy]))
    parts.registry.add(tool)
    impatient = Store.open(db, clock=parts.clock, busy_seconds=0.05)
    writer = parts.resources.enter_context(impatient.begin({"at": 0, "mode": "run"}))
    gate = Gate(replace(parts, writer=writer))
    with pytest.raises(StorageError) as raised:
        gate.call(ToolCall(tool="made.tool"))
    assert raised.value.code == 5006
    held[0].close()
    gate.close()
    assert kinds(db, writer.run_id) == ["start", "intent"]
    assert newest(db).counts.unknown == 1


def test_two_runs_at_once_are_two_runs(workdir: Path, db: Path) -> None:
    with gate_of(workdir, POLICY) as one, gate_of(workdir, POLICY) as other:
        for gate in (one, other, one):
            assert gate.call(read("docs/a")).ok
    assert one.run_id != other.run_id
    assert len(kinds(db, one.run_id)) == 6
    assert len(kinds(db, other.run_id)) == 4
    assert holds(db)


def test_runs_that_begin_and_end_at_once_do_not_get_in_each_others_way(workdir: Path, db: Path) -> None:
    def begin_and_end(number: int) -> str:
        with gate_of(workdir, POLICY) as gate:
            gate.call(read("docs/a"))
        return gate.run_id

    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(begin_and_end, range(80)))
    assert len(set(runs)) == 80
    assert {ends_as(db, run_id) for run_id in runs} == {RunStatus.COMPLETED}


def test_f1_nothing_in_the_workdir_is_a_setting(workdir: Path, isolated_home: Path, tmp_path: Path) -> None:
    planted = tmp_path / "planted.db"
    grown(
        workdir,
        **{
            ".capsule__config.toml": f'db = "{planted}"\n',
            "config.toml": "nonsense =",
            ".env": f"CAPSULE_DB={planted}",
        },
    )
    with Gate.open(policy=Policy.parse(POLICY), workdir=workdir) as gate:
        gate.call(read("docs/a"))
    assert not planted.exists()
    assert (isolated_home / ".capsule/runs.db").exists()
    assert not db_of(workdir).exists()


@pytest.mark.parametrize("policy", [None, 5, {"rules": []}, [None], [{"rules": []}]], ids=repr)
def test_what_is_no_policy_is_said_to_be_none(policy: Any) -> None:
    with pytest.raises(PlanError, match="allowed: a file, a Policy, or a list of these"):
        Gate.open(policy=policy)
