"""How a run is named: by a beginning or an end that no other has, or `last`."""

from __future__ import annotations

from pathlib import Path

import pytest
from journals import open_store, recorded_run

from capsule.errors import ReplayError
from capsule.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "runs.db")


def test_beginnings_and_ends(store: Store) -> None:
    run_id = recorded_run(store)
    digits = run_id.replace("-", "")
    for reference in (run_id, digits, run_id[-8:], run_id[:13], run_id[:4], run_id[-4:], run_id.upper(), f" {run_id} "):
        assert store.find(reference) == run_id
    for reference in (
        run_id[:3],
        run_id[-3:],
        "",
        f"{run_id}0",
        run_id[1:9],
        "zzzz",
        run_id[:-1] + "g",
        "%%%%",
        "____",
    ):
        with pytest.raises(ReplayError, match=r"there is no run .* \[4001\]") as caught:
            store.find(reference)
        assert caught.value.hint == f"the nearest: {run_id}"


def test_several_runs_of_one_beginning(store: Store) -> None:
    runs = [recorded_run(store) for _ in range(4)]
    with pytest.raises(ReplayError, match=rf"'{runs[0][:6]}' names 4 runs \[4001\]") as caught:
        store.find(runs[0][:6])
    assert caught.value.hint == f"say more of it: {', '.join(runs[:0:-1])} …"
    assert [store.find(run[-6:]) for run in runs] == runs


def test_the_nearest_are_named(store: Store) -> None:
    runs = [recorded_run(store) for _ in range(6)]
    wanted = runs[2][-8:]
    mistyped = wanted[:3] + ("0" if wanted[3] != "0" else "1") + wanted[4:]
    with pytest.raises(ReplayError) as caught:
        store.find(mistyped)
    assert caught.value.hint
    assert caught.value.hint.startswith(f"the nearest: {runs[2]}, ")


def test_no_run_at_all(store: Store) -> None:
    for reference in ("abcd", "last"):
        with pytest.raises(ReplayError, match=r"there is no run .*\[4001\]") as caught:
            store.find(reference)
        assert caught.value.hint


def test_last_is_the_newest_of_the_workdir_that_is_no_replay(store: Store) -> None:
    here = recorded_run(store, workdir="/here")
    there = recorded_run(store, workdir="/there")
    recorded_run(store, workdir="/here", mode="replay")
    assert store.find("last", workdir=Path("/here")) == here
    assert store.find("last", workdir=Path("/there")) == store.find("last") == there
    with pytest.raises(ReplayError, match=r"no run of /nowhere yet \[4001\]"):
        store.find("last", workdir=Path("/nowhere"))
