from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from granted import names

from capsule.calls import Access, ConcretePath, Places, World
from capsule.effects import Anchors, Beneath, OnDisk, places_of

linux = pytest.mark.skipif(sys.platform != "linux", reason="procfs is Linux's")


@pytest.fixture
def places(workdir: Path) -> Places:
    base = workdir.parent
    (base / "home/notes").mkdir(parents=True)
    return places_of(workdir=workdir, home=base / "home", capsule_home=base / "home/.capsule", db=base / "runs.db")


@pytest.fixture
def world(places: Places, anchors: Anchors) -> World:
    return OnDisk(places, anchors)


@pytest.fixture
def tree(workdir: Path) -> Path:
    base = workdir.parent
    for name in ("ws-evil", "outside", "ws/docs/deep", "ws/.git"):
        (base / name).mkdir(parents=True)
    for name in ("outside/file", "ws/file", "ws/docs/file", "ws/.env", "ws-evil/file"):
        (base / name).write_text(name)
    links = {
        "to_file": "file",
        "to_docs": "docs",
        "to_env": "docs/../.env",
        "out": "../outside",
        "out_file": "../outside/file",
        "absolute": f"{base}/outside",
        "chain": "out_file",
        "dangling": "docs/new",
        "dangling_out": "../outside/new",
        "new_git": ".git/hooks",
        "here": ".",
        "docs/up": "..",
    }
    for name, target in links.items():
        (workdir / name).symlink_to(target)
    return base


@pytest.mark.parametrize(
    ("text", "real"),
    [
        ("file", "ws/file"),
        ("./file", "ws/file"),
        (".//docs///./file", "ws/docs/file"),
        ("docs/", "ws/docs"),
        ("", "ws"),
        (".", "ws"),
        ("docs/../file", "ws/file"),
        ("docs/deep/../../file", "ws/file"),
        ("..", ""),
        ("../ws/file", "ws/file"),
        ("../ws-evil/file", "ws-evil/file"),
        ("to_file", "ws/file"),
        ("to_docs/file", "ws/docs/file"),
        ("to_docs/../file", "ws/file"),
        ("docs/up/file", "ws/file"),
        ("docs/up/up", "ws/up"),
        ("here/here/here/file", "ws/file"),
        ("to_env", "ws/.env"),
        ("out/file", "outside/file"),
        ("out/../ws/file", "ws/file"),
        ("out_file", "outside/file"),
        ("absolute/file", "outside/file"),
        ("chain", "outside/file"),
        ("new", "ws/new"),
        ("new/deeper/file", "ws/new/deeper/file"),
        ("to_docs/new/file", "ws/docs/new/file"),
        ("dangling", "ws/docs/new"),
        ("dangling/below", "ws/docs/new/below"),
        ("dangling_out", "outside/new"),
        ("new_git/pre-commit", "ws/.git/hooks/pre-commit"),
        ("file/below", "ws/file/below"),
        ("~", "home"),
        ("~/notes", "home/notes"),
        ("~/../ws/file", "ws/file"),
        ("~user/file", "ws/~user/file"),
        ("docs/~/file", "ws/docs/~/file"),
        ("%2e%2e/file", "ws/%2e%2e/file"),
        ("..%2ffile", "ws/..%2ffile"),
        ("..\\file", "ws/..\\file"),
        ("file ", "ws/file "),
        ("file.", "ws/file."),
        ("...", "ws/..."),
        ("fi\u200ble", "ws/fi\u200ble"),
        ("\u202efile", "ws/\u202efile"),
        ("cafe\u0301", "ws/cafe\u0301"),
        ("caf\u00e9", "ws/caf\u00e9"),
        ("line\nbreak", "ws/line\nbreak"),
        ("\u2215etc", "ws/\u2215etc"),
    ],
)
def test_a_path_is_made_real_as_the_kernel_would(world: World, tree: Path, text: str, real: str) -> None:
    found = world.path(text, argument="path", access=Access.READ)
    assert (found.problem, found.real) == (None, names(tree / real))
    assert (found.text, found.argument, found.access) == (text, "path", Access.READ)


@pytest.mark.parametrize("name", ["ws/file", "ws/to_docs/file", "ws/../outside/new", "outside/./file", "ws/out/file"])
def test_an_absolute_path_leads_to_the_same_place(world: World, tree: Path, name: str) -> None:
    text = f"//{tree}///{name}"
    found = world.path(text, argument="path", access=Access.READ)
    assert (found.problem, found.real) == (None, names(os.path.realpath(text)))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("to_docs/../file", "ws/file"),
        ("out/../file", "ws/file"),
        ("missing/../file", "ws/file"),
        ("to_env", "ws/to_env"),
        ("~/.//notes/", "home/notes"),
        ("../../../../../../../../../../../../..", "/"),
    ],
)
def test_what_is_written_is_kept_beside_it(world: World, tree: Path, text: str, written: str) -> None:
    found = world.path(text, argument="path", access=Access.READ)
    assert found.written == names(tree / written)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a\0b", "NUL"),
        ("\0", "NUL"),
        ("\ud800", "surrogate"),
        ("x" * 256, "longer"),
        ("é" * 128, "longer"),
        ("d/" * 2049, "longer"),
        ("x" * 1_000_000, "longer"),
        ("../" * 400_000, "longer"),
        ("loop", "links"),
        ("loop/below", "links"),
        ("file/..", "no directory"),
        ("file/../file", "no directory"),
        ("to_file/../file", "no directory"),
        ("missing/../file", "no directory"),
        ("missing/./deeper/../../file", "no directory"),
        ("dangling/../file", "no directory"),
        ("file/below/../..", "no directory"),
    ],
)
def test_what_has_no_real_path_says_why_at_once(world: World, tree: Path, text: str, problem: str) -> None:
    (tree / "ws/loop").symlink_to("loop")
    begun = time.perf_counter()
    found = world.path(text, argument="path", access=Access.WRITE)
    assert time.perf_counter() - begun < 0.5
    assert found.problem is not None
    assert problem in found.problem


@linux
@pytest.mark.parametrize(
    "text",
    [
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/file",
        "/proc/thread-self/cwd/file",
        "/proc/{pid}/root/etc/passwd",
        "/proc/{pid}/cwd/file",
        "/proc/{pid}/exe",
        "/proc/{pid}/fd/0",
        "/proc/{pid}/mem",
        "/proc/{pid}/environ",
        "/proc/{pid}/task/{pid}/cwd/file",
        "/proc/1/root",
        "/proc/4194304/mem",  # no such process, yet
        "/proc/../proc/self/environ",
        "/proc/sys/../self/environ",
        "/dev/fd/0",
        "/dev/stdin",
        "to_proc/self/cwd/file",
        "to_process/environ",
        "magic/file",
    ],
)
def test_no_path_leads_through_a_process(world: World, tree: Path, text: str) -> None:
    (tree / "ws/to_proc").symlink_to("/proc")
    (tree / "ws/to_process").symlink_to(f"/proc/{os.getpid()}")
    (tree / "ws/magic").symlink_to("/proc/self/cwd")
    problem = world.path(text.format(pid=os.getpid()), argument="path", access=Access.READ).problem
    assert problem is not None
    assert "proc" in problem


@linux
@pytest.mark.parametrize("text", ["/proc/cpuinfo", "/proc/sys/kernel/ostype", "/proc", "/dev/null", "/sys"])
def test_the_rest_of_the_systems_files_have_plain_paths(world: World, text: str) -> None:
    found = world.path(text, argument="path", access=Access.READ)
    assert (found.problem, found.real) == (None, names(text))


def test_the_workdir_is_gone_through_by_its_handle(world: World, tree: Path) -> None:
    (tree / "ws").rename(tree / "moved")
    (tree / "ws").symlink_to("outside")
    for text in ("file", f"{tree}/ws/file", "docs/deep/../../file"):
        assert world.path(text, argument="path", access=Access.READ).real == names(tree / "ws/file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_what_the_user_may_not_look_into_has_no_real_path(world: World, tree: Path) -> None:
    (tree / "ws/docs").chmod(0o000)
    problem = world.path("docs/file", argument="path", access=Access.READ).problem
    (tree / "ws/docs").chmod(0o700)
    assert problem is not None
    assert "ermission" in problem


def test_a_folding_directory_is_told(world: World, tree: Path) -> None:
    if not (tree / "ws/FILE").exists():
        assert world.path("file", argument="path", access=Access.READ).folded is False
    (tree / "ws/new").mkdir()
    (tree / "ws/new/Name").touch()
    if not (tree / "ws/new/nAME").exists():
        os.link(tree / "ws/new/Name", tree / "ws/new/nAME")  # looks as if it folded
    assert world.path("new/other", argument="path", access=Access.READ).folded is True


def test_all_of_a_concrete_path(world: World, tree: Path) -> None:
    folded = (tree / "ws/FILE").exists()
    assert world.path("to_file", argument="path", access=Access.WRITE) == ConcretePath(
        argument="path",
        access=Access.WRITE,
        text="to_file",
        written=names(tree / "ws/to_file"),
        real=names(tree / "ws/file"),
        folded=folded,
    )
    assert world.resolved == "disk"


def test_a_patterns_literal_directory_is_made_real(world: World, tree: Path) -> None:
    assert world.directory(names(tree / "ws/out")) == names(tree / "outside")
    assert world.directory(names(tree / "ws/out/new/deeper")) == names(tree / "outside/new/deeper")
    (tree / "ws/loop").symlink_to("loop")
    assert world.directory(names(tree / "ws/loop/x")) == names(tree / "ws/loop/x")


def test_places_are_real_and_name_what_nobody_may_touch(tmp_path: Path) -> None:
    base = tmp_path.resolve()
    for name in ("ws", "real_home/.capsule", "data"):
        (base / name).mkdir(parents=True)
    (base / "home").symlink_to("real_home")
    (base / "real_home/.capsule/config.toml").symlink_to("../dotfiles/capsule.toml")
    (base / "real_home/.capsule/runs.db").symlink_to(base / "data/runs.db")
    (base / "policy.yaml").symlink_to("ws/policy.yaml")
    own = "real_home/.capsule"
    endings = ("", "-wal", "-shm", "-journal", "-reserve", "-locks")
    assert places_of(
        workdir=base / "ws",
        home=base / "home",
        capsule_home=base / "home/.capsule",
        db=base / "home/.capsule/runs.db",
        in_use=[base / "policy.yaml", base / "ws/plan.yaml"],
    ) == Places(
        workdir=names(base / "ws"),
        home=names(base / "real_home"),
        capsule_home=names(base / own),
        unreadable=tuple(
            names(base / name)
            for name in (
                f"{own}/key",
                f"{own}/config.toml",
                "real_home/dotfiles/capsule.toml",
                *(f"{own}/runs.db{ending}" for ending in endings),
                *(f"data/runs.db{ending}" for ending in endings),
            )
        ),
        unwritable=tuple(names(base / name) for name in ("policy.yaml", "ws/policy.yaml", "ws/plan.yaml")),
    )


def test_both_ways_of_opening_find_the_same(workdir: Path, beneath: Beneath, places: Places, tree: Path) -> None:
    with Anchors.open(workdir) as best, Anchors.open(workdir, beneath=beneath) as other:
        for text in ("file", "new", "out/file", "docs/up", "missing/..", "/", "/usr/bin", "~"):
            one = OnDisk(places, best).path(text, argument="path", access=Access.READ)
            assert one == OnDisk(places, other).path(text, argument="path", access=Access.READ)
