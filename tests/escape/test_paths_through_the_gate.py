"""Class A through the gate: the widest policies that a careless author writes, and the bytes on disk afterwards.

What a path leads to is tried without a policy in `test_paths_on_disk.py`, links that move meanwhile in `test_race.py`.
"""

from __future__ import annotations

import os
import stat
import time
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path

import pytest
from gated import bodies, code, db_of, gate_of, grown, kinds, read, tree, write

from capsule.calls import ToolCall
from capsule.canon import Json

ALL = """
rules:
  - {id: all, action: allow, tool: "fs.*", constraints: {paths: {pattern: "./**", hidden: allow}}}
"""
EVERYTHING = ALL.replace('pattern: "./**"', 'patterns: ["/**", "./**", "~/**"]')
MODES = ("create", "overwrite", "append")

linux = pytest.mark.skipif(not Path("/proc/self/root").exists(), reason="only Linux has it")


@pytest.fixture
def base(workdir: Path) -> Path:
    base = workdir.parent
    grown(base / "ws-evil", secret="evil")
    grown(base / "outside", secret="outside", sub__secret="outside")
    grown(base / "home", **{".ssh__id": "key", ".bashrc": "rc", "notes": "notes", "sub__secret": "hers"})
    grown(workdir, ok="ok", sub__ok="ok", sub__secrets__k="inside", **{".env": "env"})
    for name, target in {
        "file": "../outside/secret",
        "dir": "../outside",
        "sub/up": "../..",
        "new": "../outside/new",
    }.items():
        (workdir / name).symlink_to(target)
    return base


@pytest.fixture(autouse=True)
def home(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(base / "home"))
    monkeypatch.setenv("CAPSULE_HOME", str(base / "home/.capsule"))
    return base / "home"


def _untouched(base: Path) -> dict[str, bytes | str | None]:
    """All but what Capsule itself keeps."""
    return {name: held for name, held in tree(base).items() if not name.startswith(("journal", "home/.capsule"))}


def _every_way(path: str) -> list[ToolCall]:
    return [read(path), ToolCall(tool="fs.list", args={"path": path}), *_writes(path)]


def _writes(path: str) -> list[ToolCall]:
    """None to devices: should the gate be open one day, this machine must not suffer."""
    modes = () if path.startswith(("/dev", "/proc")) else MODES
    return [write(path, "EVIL", mode=mode, create_dirs=True) for mode in modes]


OUTSIDE = {
    "a1-sibling": "../ws-evil/secret",
    "a1-sibling-absolute": "{base}/ws-evil/secret",
    "a1-sibling-through-the-workdir": "{base}/ws/../ws-evil/secret",
    "a2-link-to-a-file": "file",
    "a2-link-to-a-directory": "dir/secret",
    "a2-link-in-a-directory": "sub/up/outside/secret",
    "a2-dangling-link": "new",
    "a2-through-nothing": "none/../../outside/secret",
    "a3-dots": "../outside/secret",
    "a3-dots-and-slashes": ".//sub/..//../outside/./secret",
    "a3-home": "~/notes",
    "a3-home-dots": "~/../outside/secret",
    "a3-absolute": "{base}/outside/secret",
    "a3-nul": "../outside/secret\0.md",
    "a3-nul-inside": "ok\0",
    "a3-proc-root": "/proc/self/root{base}/outside/secret",
    "a3-proc-cwd": "/proc/self/cwd",
    "a3-dev-fd": "/dev/fd/0",
    "a3-surrogate": "../outside/\udcff",
    "a3-long": "x/" * 40_000 + "../" * 40_000 + "../outside/secret",
    "a11-zero": "/dev/zero",
    "a11-mem": "/proc/self/mem",
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_nothing_outside_the_workdir(base: Path, workdir: Path, name: str) -> None:
    path = OUTSIDE[name].format(base=base)
    before = _untouched(base)
    calls = _every_way(path)
    with gate_of(workdir, ALL) as gate:
        begun = time.perf_counter()
        codes = {code(gate.call(call)) for call in calls}
        assert time.perf_counter() - begun < 2
    assert codes <= {1001, 2002}
    assert kinds(db_of(workdir)) == ["start", *["refused"] * len(calls), "end"]
    assert _untouched(base) == before


PROTECTED = {
    "a4-hook-of-no-repository": ".git/hooks/pre-commit",
    "a4-hook-below": "sub/none/.git/hooks/post-checkout",
    "a4-config": ".git/config",
    "a4-a-file-called-git": "sub/.git",
    "a4-through-a-link": "sub/up/ws/.git/config",
    "a4-dots": "sub/../.git/../.git/config",
    "a4-trailing": ".git/config/",
    "a4-ssh": "~/.ssh/authorized_keys",
    "a4-ssh-in-the-workdir": ".ssh/authorized_keys",
    "a4-aws": "~/.aws/credentials",
    "a4-gnupg": "sub/.gnupg/x",
    "a4-start-up": "~/.bashrc",
    "a4-start-up-that-is-not-there": "~/.zshenv",
    "a4-capsule": "~/.capsule/x",
}


@pytest.mark.parametrize("name", PROTECTED)
def test_a4_what_is_protected_is_never_written_also_where_it_does_not_exist_yet(
    base: Path, workdir: Path, name: str
) -> None:
    before = _untouched(base)
    with gate_of(workdir, EVERYTHING) as gate:
        results = [gate.call(call) for call in _writes(PROTECTED[name])]
    assert {code(result) for result in results} == {1001}
    assert _untouched(base) == before
    assert not (base / "home/.capsule/x").exists()


def test_a4_only_a_pattern_that_spells_it_and_says_so_writes_it(base: Path, workdir: Path) -> None:
    patterns = ("./.git/hooks/pre-commit", "./.git/hooks/*", "./.git/**")
    for pattern in patterns:
        for protected, allowed in (("", False), (", protected: allow", pattern == patterns[0])):
            constraint = f'{{path: {{pattern: "{pattern}"{protected}}}}}'
            policy = f"rules: [{{action: allow, tool: fs.write, constraints: {constraint}}}]"
            with gate_of(workdir, policy) as gate:
                result = gate.call(write(patterns[0], mode="overwrite", create_dirs=True))
            assert (pattern, protected, code(result)) == (pattern, protected, None if allowed else 1001)
            assert (workdir / patterns[0]).exists() is allowed
            if allowed:
                (workdir / patterns[0]).unlink()
                (workdir / ".git/hooks").rmdir()
                (workdir / ".git").rmdir()


@pytest.mark.parametrize("place", [".git", ".git/hooks", ".ssh"])
def test_a6_a_protected_directory_as_workdir_is_protected(base: Path, workdir: Path, place: str) -> None:
    inside = grown(workdir / place, config="old")
    before = _untouched(base)
    with gate_of(inside, ALL) as gate:
        for path in ("config", "new", "./deep/er"):
            assert [code(gate.call(call)) for call in _writes(path)] == [1001] * 3
    after = {name: held for name, held in _untouched(base).items() if "/journal" not in name}
    assert after == before


def test_a6_capsules_own_home_as_workdir(base: Path, home: Path) -> None:
    inside = grown(home / ".capsule", **{"config.toml": "", "notes": "n"})
    with gate_of(inside, ALL, clock=None) as gate:
        for path in ("config.toml", "key", "notes", "packs/x"):
            assert [code(gate.call(call)) for call in _writes(path)] == [1001] * 3
        assert code(gate.call(read("key"))) == 1001
        assert code(gate.call(read("config.toml"))) == 1001
        assert code(gate.call(read("notes"))) is None
    assert (inside / "config.toml").read_bytes() == b""
    assert (inside / "notes").read_bytes() == b"n"


@pytest.mark.parametrize(
    ("deny", "path", "denied"),
    [
        ("**/secrets", "sub/secrets/k", True),
        ("**/secrets", "{base}/ws/sub/secrets/k", True),
        ("**/secret", "{base}/outside/secret", True),
        ("**/secret", "~/sub/secret", True),
        ("**/secret", "../outside/sub/secret", True),
        ("**/secret", "dir/sub/secret", True),
        ("**/ws-evil", "../ws-evil/secret", True),
        ("**/outside/*", "{base}/outside/secret", True),
        ("**/id", "~/.ssh/id", True),
        ("**/.env", ".env", True),
        ("**/.env", "sub/../.env", True),
        ("**/.env", "sub/up/ws/.env", True),
        ("**/new", "new", True),
        ("./secret", "{base}/outside/secret", False),
        ("./sub", "~/sub/secret", False),
        ("~/sub", "~/sub/secret", True),
        ("~/sub", "{base}/home/sub/secret", True),
        ("~/sub", "../home/sub/secret", True),
        ("{base}/outside", "dir/secret", True),
        ("/**", "ok", True),
        ("**", "{base}/outside/secret", False),
        ("**", "sub/ok", True),
    ],
)
def test_a9_where_a_deny_is_anchored(base: Path, workdir: Path, deny: str, path: str, denied: bool) -> None:
    policy = (
        EVERYTHING
        + f'  - {{id: no, action: deny, tool: "*", constraints: {{paths: {{pattern: "{deny.format(base=base)}"}}}}}}\n'
    )
    with gate_of(workdir, policy) as gate:
        result = gate.call(read(path.format(base=base)))
    if denied:
        assert (code(result), result.output) == (1001, None)
        assert result.error is not None
        assert "rule no " in result.error.message
    else:
        assert code(result) in (None, 2003)


LATER = [
    "Makefile", "sub/GNUmakefile", "conftest.py", "sub/conftest.py", "setup.py", "pyproject.toml", "tox.ini",
    "noxfile.py", "package.json", ".npmrc", ".envrc", ".mcp.json", ".pre-commit-config.yaml",
    ".github/workflows/ci.yml", ".vscode/tasks.json", ".idea/x", ".venv/bin/python", "venv/lib/x.py",
    "sub/x.pth", "sitecustomize.py", ".gitlab-ci.yml", "sub/../Makefile", "./sub/.././conftest.py",
]  # fmt: skip


def test_a10_what_the_host_runs_later_needs_its_name_in_a_rule(base: Path, workdir: Path) -> None:
    patterns = '["./*", "./sub/*", "./Make*", "./*file"]'
    wide = ALL + f"  - {{action: allow, tool: fs.write, constraints: {{path: {{patterns: {patterns}}}}}}}\n"
    before = _untouched(base)
    with gate_of(workdir, wide) as gate:
        for path in LATER:
            for call in _writes(path):
                assert (path, code(gate.call(call))) == (path, 1001)
    assert _untouched(base) == before


def test_a10_named_it_is_written_and_flagged(base: Path, workdir: Path) -> None:
    for path in LATER:
        name = os.path.normpath(path)
        policy = f'rules: [{{action: allow, tool: fs.write, constraints: {{path: {{pattern: "./{name}"}}}}}}]'
        with gate_of(workdir, policy) as gate:
            result = gate.call(write(path, mode="overwrite", create_dirs=True))
        assert (path, code(result), result.flags) == (path, None, ("runs_later",))
        grant = bodies(db_of(workdir), "intent")[0]["grant"]
        assert isinstance(grant, Mapping)
        assert grant["runs_later"] is True
        assert (workdir / name).read_text() == "new"


def test_a10_not_through_a_link_to_its_name(base: Path, workdir: Path) -> None:
    """Either form counts: what the path is called, and what it leads to."""
    (workdir / "notes").symlink_to("Makefile")
    (workdir / "conftest.py").symlink_to("ok")
    with gate_of(workdir, ALL) as gate:
        for path in ("notes", "conftest.py"):
            assert [code(gate.call(call)) for call in _writes(path)] == [1001] * 3
    assert not (workdir / "Makefile").exists()
    assert (workdir / "ok").read_text() == "ok"


@pytest.mark.parametrize("kind", ["fifo", "socket", "directory", "sparse", "unreadable"])
def test_a11_odd_files_are_answered_at_once(base: Path, workdir: Path, kind: str) -> None:
    odd = workdir / "odd"
    if kind == "fifo":
        os.mkfifo(odd)
    elif kind == "socket":
        os.mknod(odd, stat.S_IFSOCK | 0o600)
    elif kind == "directory":
        odd.mkdir()
    else:
        odd.touch(0o600 if kind == "sparse" else 0)
        os.truncate(odd, 10**12 if kind == "sparse" else 0)
    begun = time.perf_counter()
    with gate_of(workdir, ALL + "  - {action: limit, tool: fs.read, constraints: {max_bytes: 1000}}") as gate:
        results = [gate.call(call) for call in _every_way("odd")]
    assert time.perf_counter() - begun < 3
    if kind in ("fifo", "socket"):
        assert {code(result) for result in results} == {2003}
    if kind == "sparse":
        output = results[0].output
        assert isinstance(output, Mapping)
        assert (output["truncated"], output["size"], b64decode(str(output["content"]))) == (True, 10**12, bytes(1000))
    assert stat.S_IFMT(odd.lstat().st_mode) == {
        "fifo": stat.S_IFIFO,
        "socket": stat.S_IFSOCK,
        "directory": stat.S_IFDIR,
    }.get(kind, stat.S_IFREG)


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_a12_never_through_a_hard_link(base: Path, workdir: Path, mode: str) -> None:
    (workdir / "hard").hardlink_to(base / "outside/secret")
    with gate_of(workdir, ALL) as gate:
        assert gate.call(write("hard", "EVIL", mode=mode)).ok
        assert code(gate.call(write("hard", "EVIL"))) == 2003
    assert (base / "outside/secret").read_text() == "outside"


def test_a_listing_shows_no_name_outside_and_nothing_denied(base: Path, workdir: Path) -> None:
    policy = ALL + '  - {action: deny, tool: "*", constraints: {paths: {patterns: ["**/secrets", "**/.env"]}}}\n'
    with gate_of(workdir, policy) as gate:
        output = gate.call(ToolCall(tool="fs.list", args={"path": "."})).output
    assert isinstance(output, Mapping)
    entries = output["entries"]
    assert isinstance(entries, list)
    shown: dict[Json, Json] = {entry["path"]: entry["type"] for entry in entries}
    assert shown == {"ok": "file", "sub": "directory", "sub/ok": "file"} | {
        name: "symlink" for name in shown if (workdir / str(name)).is_symlink()
    }


@pytest.mark.parametrize("pattern", ["../**", "/**", "~/**", "*/../../**", "sub/up/**"])
def test_d7_a_pattern_of_a_listing_leads_nowhere_else(base: Path, workdir: Path, pattern: str) -> None:
    with gate_of(workdir, ALL) as gate:
        result = gate.call(ToolCall(tool="fs.list", args={"path": ".", "pattern": pattern}))
    assert "secret" not in str(result.output).replace("secrets", "")
    assert "notes" not in str(result.output)


def test_a7_a_directory_chosen_by_the_caller_needs_a_rule(base: Path, workdir: Path) -> None:
    git = "constraints: {command: {executables: [git]}"
    for cwd, rule, number in (
        ("/", git + "}", 1001),
        ("~", git + "}", 1001),
        ("sub", git + "}", 1001),
        ("../outside", git + ', cwd: {pattern: "./**"}}', 1001),
        ("dir", git + ', cwd: {pattern: "./**"}}', 1001),
        ("sub", git + ', cwd: {pattern: "./**"}}', 2005),
    ):
        with gate_of(workdir, f"rules: [{{action: allow, tool: shell.run, {rule}}}]") as gate:
            result = gate.call(ToolCall(tool="shell.run", args={"command": ["git", "status"], "cwd": cwd}))
        assert (cwd, code(result)) == (cwd, number)
