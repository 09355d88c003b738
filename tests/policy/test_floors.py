from __future__ import annotations

import pytest

from capsule.calls import Access, Components, ConcretePath, Places
from capsule.policy import floors
from capsule.policy.paths import BoundPattern, PathConstraint, PathPattern

PLACES = Places(
    workdir=("w",),
    home=("home", "u"),
    capsule_home=("home", "u", ".capsule"),
    unreadable=(("home", "u", ".capsule", "key"), ("var", "runs.db"), ("var", "runs.db-wal")),
    unwritable=(("w", "policy.yaml"), ("w", "packs", "mine")),
)


def components(path: str) -> Components:
    return tuple(name for name in path.split("/") if name)


def concrete(path: str, *, written: str | None = None, folded: bool = False) -> ConcretePath:
    return ConcretePath(
        argument="path",
        access=Access.WRITE,
        text=path,
        real=components(path),
        written=components(written or path),
        folded=folded,
    )


def bound(pattern: str) -> BoundPattern:
    [first, *_] = PathPattern.parse(pattern, unanchored_allowed=False).bind(PLACES, lambda names: names)
    return first


def writable(path: ConcretePath, pattern: str, *, protected: bool = False) -> bool:
    each = bound(pattern)
    assert each.matches(path.real)
    return floors.writable(path, each, PathConstraint(patterns=(), protected=protected), PLACES)


@pytest.mark.parametrize("path", ["/home/u/.capsule/key", "/var/runs.db", "/var/runs.db-wal"])
def test_capsules_own_secrets_and_store_are_out_of_reach(path: str) -> None:
    assert floors.unreadable(concrete(path), PLACES)
    assert floors.unreadable(concrete("/w/link", written=path), PLACES)
    assert not writable(concrete(path), path, protected=True)


@pytest.mark.parametrize("path", ["/home/u/.capsule/runs", "/var/runs.db-x", "/var", "/w/key"])
def test_what_stands_beside_them_can_be_read(path: str) -> None:
    assert floors.unreadable(concrete(path), PLACES) is None


@pytest.mark.parametrize(
    "path",
    [
        *("/home/u/.capsule", "/home/u/.capsule/packs/x", "/w/policy.yaml", "/w/packs/mine/SKILL.md", "/var/runs.db"),
        *("/w/.git", "/w/.git/hooks/pre-commit", "/w/sub/.git/config", "/w/git~1/config"),
        *("/home/u/.bashrc", "/home/u/.zshenv", "/home/u/.profile", "/home/u/.kshrc", "/home/u/.cshrc", "/w/.bashrc"),
        *("/home/u/.config/fish/config.fish", "/etc/profile", "/etc/profile.d/x.sh", "/etc/zsh/zshrc"),
        *("/home/u/.ssh/authorized_keys", "/home/u/.aws/credentials", "/w/.gnupg/x"),
    ],
)
def test_what_is_never_written_but_by_a_spelled_pattern(path: str) -> None:
    assert floors.protected(concrete(path), PLACES)
    assert floors.protected(concrete("/w/x", written=path), PLACES)
    assert not writable(concrete(path), path)
    assert not writable(concrete(path), "/**", protected=True)
    assert writable(concrete(path), path, protected=True) is (floors.unreadable(concrete(path), PLACES) is None)


@pytest.mark.parametrize(
    "path",
    [
        *("/w/a", "/w/.gitignore", "/w/git", "/w/x.git/a", "/home/u/.capsule2", "/w/policy.yaml.bak", "/w/packs/other"),
        *("/w/etc/profile", "/w/bashrc", "/home/u/.config/x/config.fish", "/w/.ssh2"),
    ],
)
def test_what_only_looks_like_it_can_be_written(path: str) -> None:
    assert floors.protected(concrete(path), PLACES) is None
    assert writable(concrete(path), "/**")


@pytest.mark.parametrize("path", ["/w/.GIT/config", "/w/.Git.", "/w/.g\u200cit/x", "/HOME/U/.capsule/x", "/w/.BashRC"])
def test_a_volume_that_does_not_tell_cases_apart_is_compared_folded(path: str) -> None:
    assert floors.protected(concrete(path, folded=True), PLACES)
    assert floors.protected(concrete(path), PLACES) is None


@pytest.mark.parametrize(
    ("path", "listed"),
    [
        ("/w/Makefile", "Makefile"),
        ("/w/a/b/GNUmakefile", "GNUmakefile"),
        ("/w/conftest.py", "conftest.py"),
        ("/w/setup.py", "setup.py"),
        ("/w/pyproject.toml", "pyproject.toml"),
        ("/w/tox.ini", "tox.ini"),
        ("/w/noxfile.py", "noxfile.py"),
        ("/w/package.json", "package.json"),
        ("/w/.npmrc", ".npmrc"),
        ("/w/.envrc", ".envrc"),
        ("/w/.mcp.json", ".mcp.json"),
        ("/w/.pre-commit-config.yaml", ".pre-commit-config.yaml"),
        ("/w/.gitlab-ci.yml", ".gitlab-ci.yml"),
        ("/w/.github/workflows/ci.yml", ".github/workflows"),
        ("/w/.vscode/tasks.json", ".vscode"),
        ("/w/.idea/x", ".idea"),
        ("/w/.venv/bin/python", ".venv"),
        ("/w/venv/lib/Makefile", "venv"),
        ("/w/lib/x.pth", "*.pth"),
        ("/w/sitecustomize.py", "sitecustomize.py"),
        ("/w/makefile.txt", None),
        ("/w/Makefile/x", None),
        ("/w/.github/x", None),
        ("/w/workflows/x", None),
        ("/w/venv", None),
        ("/w/MAKEFILE", None),
        ("/", None),
    ],
)
def test_what_the_host_runs_later(path: str, listed: str | None) -> None:
    assert floors.runs_later(components(path)) == listed


def test_what_runs_later_is_found_folded() -> None:
    assert floors.runs_later(("w", "MAKEFILE"), folded=True)
    assert floors.runs_later(("w", ".VENV", "x"), folded=True) == ".venv"


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("/w/Makefile", "./Makefile", True),
        ("/w/Makefile", "./{Makefile,x}", True),
        ("/w/a/Makefile", "**/Makefile", True),
        ("/w/a/Makefile", "./*/Makefile", True),
        ("/w/Makefile", "./*", False),
        ("/w/Makefile", "./Makefil?", False),
        ("/w/Makefile", "./Make*", False),
        ("/w/Makefile", "**", False),
        ("/w/.github/workflows/ci.yml", "./.github/workflows/ci.yml", True),
        ("/w/.github/workflows/ci.yml", "./.github/workflows/*.yml", False),
        ("/w/.github/workflows/ci.yml", "./.github/*/ci.yml", False),
        ("/w/.github/workflows/ci.yml", "./.github/**", False),
        ("/w/.venv/bin/python", "./.venv/**/python", True),
        ("/w/.venv/bin/python", "./.venv/**", False),
        ("/w/.venv/bin/python", "./.v*/bin/python", False),
        ("/w/venv/setup.py", "**/setup.py", False),
        ("/w/venv/setup.py", "./venv/setup.py", True),
        ("/w/a/x.pth", "**/x.pth", True),
        ("/w/a/x.pth", "**/*.pth", False),
        ("/w/a.txt", "**", True),
    ],
)
def test_what_runs_later_is_written_only_where_it_is_spelled(path: str, pattern: str, *, expected: bool) -> None:
    assert writable(concrete(path), pattern) is expected


def test_the_anchor_of_a_pattern_spells_nothing() -> None:
    places = Places(workdir=("x", "venv", "w"), home=("h",), capsule_home=("h", ".capsule"))
    [relative] = PathPattern.parse("./a", unanchored_allowed=False).bind(places, lambda names: names)
    [absolute] = PathPattern.parse("/x/venv/w/a", unanchored_allowed=False).bind(places, lambda names: names)
    nothing = PathConstraint(patterns=())
    assert not floors.writable(concrete("/x/venv/w/a"), relative, nothing, places)
    assert floors.writable(concrete("/x/venv/w/a"), absolute, nothing, places)


def test_the_path_as_written_counts_too() -> None:
    assert not writable(concrete("/w/out/x", written="/w/Makefile"), "./out/x")
    assert not writable(concrete("/w/out/tox.ini", written="/w/Makefile"), "./out/tox.ini")
    assert writable(concrete("/w/out/Makefile", written="/w/Makefile"), "./out/Makefile")
    assert not writable(concrete("/w/MAKEFILE", folded=True), "./*")
    assert writable(concrete("/w/MAKEFILE", folded=True), "./MAKEFILE")


def test_the_floor_can_be_printed() -> None:
    document = floors.floor_document()
    assert isinstance(document, dict)
    assert document.keys() == {"hidden", "never_read_or_written", "never_written", "runs_later", "addresses"}
