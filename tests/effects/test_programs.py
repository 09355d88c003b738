from __future__ import annotations

from pathlib import Path

import pytest
from granted import names

from capsule.calls import ConcreteCommand, World
from capsule.effects import Anchors, OnDisk, places_of


@pytest.fixture
def base(workdir: Path) -> Path:
    base = workdir.parent
    for name in ("bin/git", "bin/ls", "bin2/git", "bin2/only", "ws/git", "ws/tool", "ws/sub/tool", "libexec/real"):
        (base / name).parent.mkdir(exist_ok=True)
        (base / name).touch(mode=0o755)
    (base / "bin/only").touch(mode=0o644)  # not executable, so it is passed over
    (base / "bin/folder").mkdir()
    for name, target in {
        "bin/alias": "../libexec/real",
        "bin/planted": "../ws/tool",
        "bin/dangling": "nowhere",
        "bin/loop": "loop",
        "linked": "bin",
        "ws/sub/linked": "../../libexec",
    }.items():
        (base / name).symlink_to(target)
    return base


@pytest.fixture
def world(base: Path, workdir: Path, anchors: Anchors) -> World:
    places = places_of(workdir=workdir, home=base / "home", capsule_home=base / "capsule", db=base / "runs.db")
    return OnDisk(places, anchors)


def search(base: Path) -> tuple[str, ...]:
    return (f"{base}/missing", f"{base}/ws", f"{base}/ws/sub", f"{base}/linked", f"{base}/bin2")


@pytest.mark.parametrize(
    ("name", "invoked", "program"),
    [
        ("git", "bin/git", "bin/git"),  # never the one in the workdir, though that is on the path
        ("only", "bin2/only", "bin2/only"),
        ("alias", "bin/alias", "libexec/real"),
        ("./tool", "ws/tool", "ws/tool"),
        ("sub/../tool", "ws/tool", "ws/tool"),
        ("sub/linked/real", "libexec/real", "libexec/real"),
        ("{base}/bin/alias", "bin/alias", "libexec/real"),
        ("{base}/linked/git", "bin/git", "bin/git"),
        ("{base}/linked/planted", "bin/planted", "ws/tool"),
    ],
)
def test_what_is_found(world: World, base: Path, name: str, invoked: str, program: str) -> None:
    argv = (name.format(base=base), "--version")
    assert world.command(argv, argument="command", search=search(base)) == ConcreteCommand(
        argument="command", argv=argv, program=names(base / program), invoked=names(base / invoked)
    )


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        ((), "no program"),
        (("",), "no program"),
        (("missing",), "no program missing"),
        (("tool",), "no program tool"),
        (("planted",), "into the workdir"),
        (("folder",), "no program folder"),
        (("dangling",), "no program dangling"),
        (("loop",), "links"),
        (("..",), "no program"),
        (("./missing",), "not an executable"),
        (("./sub",), "not an executable"),
        (("sub/",), "not an executable"),
        (("sub/..",), "not an executable"),
        (("missing/../tool",), "no directory"),
        (("~/tool",), "not an executable"),
        (("/proc/self/exe",), "proc"),
        (("git\0",), "NUL"),
        (("git", "a\0b"), "NUL"),
        (("git", "\udc80"), "surrogate"),
        (("x" * 1_000_000,), "longer"),
    ],
)
def test_what_is_not_found_says_why(world: World, base: Path, argv: tuple[str, ...], problem: str) -> None:
    found = world.command(argv, argument="command", search=search(base))
    assert (found.program, found.invoked) == (None, None)
    assert found.problem is not None
    assert problem in found.problem


def test_an_empty_search_path_finds_nothing(world: World) -> None:
    assert world.command(("git",), argument="command", search=()).problem == "no program git in an empty search path"


def test_a_relative_search_path_is_in_the_workdir_and_so_is_passed_over(world: World) -> None:
    assert world.command(("tool",), argument="command", search=(".", "sub")).problem is not None
