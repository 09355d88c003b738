"""What holds for every rule, whatever it says: files that no tool touches, and files that need to be spelled.

The floor for hidden names is part of matching (`hidden=False` there), the one for addresses is in `addresses`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from capsule.calls import Access, Components, ConcretePath, Places
from capsule.canon import Json
from capsule.policy.addresses import NOT_PUBLIC_V4, NOT_PUBLIC_V6, PUBLIC_V6
from capsule.policy.folding import fold, fold_names
from capsule.policy.paths import BoundPattern, PathConstraint, is_within
from capsule.policy.segments import Literal, Segments, holds, star_text

REPOSITORY = (".git", "git~1")  # with the short name that FAT and NTFS give it

CREDENTIALS = (".aws", ".gnupg", ".ssh")

SHELL_STARTUP = (
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cshrc",
    ".inputrc",
    ".kshrc",
    ".login",
    ".logout",
    ".mkshrc",
    ".pam_environment",
    ".profile",
    ".shrc",
    ".tcshrc",
    ".xinitrc",
    ".xonshrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
)

SHELL_STARTUP_TREES = (
    (".config", "elvish"),
    (".config", "environment.d"),
    (".config", "fish"),
    (".config", "nushell"),
    (".config", "powershell"),
    (".config", "xonsh"),
)

SYSTEM_STARTUP = tuple(
    ("etc", name)
    for name in (
        "bash.bashrc",
        "bashrc",
        "csh.cshrc",
        "csh.login",
        "environment",
        "fish",
        "ksh.kshrc",
        "profile",
        "profile.d",
        "zprofile",
        "zsh",
        "zshenv",
        "zshrc",
    )
)

RUNS_LATER_NAMES = (
    "*.pth",
    ".appveyor.yml",
    ".cirrus.star",
    ".cirrus.yml",
    ".devcontainer.json",
    ".drone.yml",
    ".envrc",
    ".gitconfig",
    ".gitlab-ci.yml",
    ".mcp.json",
    ".npmrc",
    ".pre-commit-config.yaml",
    ".travis.yml",
    ".woodpecker.yaml",
    ".woodpecker.yml",
    "BSDmakefile",
    "GNUmakefile",
    "Jenkinsfile",
    "Makefile",
    "appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "conftest.py",
    "makefile",
    "noxfile.py",
    "package.json",
    "pyproject.toml",
    "pytest.ini",
    "setup.cfg",
    "setup.py",
    "sitecustomize.py",
    "tox.ini",
    "usercustomize.py",
)

RUNS_LATER_TREES = (
    (".buildkite",),
    (".circleci",),
    (".claude",),
    (".config", "autostart"),
    (".config", "git"),
    (".config", "systemd"),
    (".cursor",),
    (".devcontainer",),
    (".github", "actions"),
    (".github", "workflows"),
    (".husky",),
    (".idea",),
    (".venv",),
    (".vscode",),
    (".woodpecker",),
    ("venv",),
)

_PROTECTED = {
    **dict.fromkeys(REPOSITORY, "a repository's own directory is never written"),
    **dict.fromkeys(CREDENTIALS, "credentials are never written"),
    **dict.fromkeys(SHELL_STARTUP, "what a shell runs when it starts is never written"),
}
_RUNS_LATER = {name: name for name in RUNS_LATER_NAMES if "*" not in name}
_RUNS_LATER_FOLDED = {fold(name): name for name in _RUNS_LATER}
_RUNS_LATER_WILD = tuple((name, star_text(name)) for name in RUNS_LATER_NAMES if "*" in name)

Trees: TypeAlias = Mapping[str, tuple[Components, ...]]


def _by_first(trees: Iterable[Components]) -> Trees:
    return {first: tuple(group) for first, group in groupby(sorted(trees), key=lambda tree: tree[0])}


_STARTUP_TREES = _by_first(SHELL_STARTUP_TREES)
_RUNS_LATER_TREES = _by_first(RUNS_LATER_TREES)


def unreadable(path: ConcretePath, places: Places) -> str | None:
    """Why no tool reads or writes this, whatever a rule says."""
    for names, folded in _forms(path):
        if _within_any(names, places.unreadable, folded=folded):
            return "Capsule's key, settings and journal are out of every tool's reach"
    return None


def protected(path: ConcretePath, places: Places) -> str | None:
    """Why no tool writes this, but for `protected: allow` on a pattern without wildcards."""
    for names, folded in _forms(path):
        if _within_any(names, (places.capsule_home,), folded=folded):
            return "Capsule's home is never written"
        if _within_any(names, (*places.unwritable, *places.unreadable), folded=folded):
            return "the policy, the plan and the pack in use are never written"
        for name in names:
            if name in _PROTECTED:
                return f"{name}: {_PROTECTED[name]}"
        startup = [*_trees_in(names, _STARTUP_TREES), *(tree for tree in SYSTEM_STARTUP if is_within(names, tree))]
        if startup:
            return f"{'/'.join(startup[0])}: what a shell runs when it starts is never written"
    return None


def runs_later(components: Components, *, folded: bool = False) -> str | None:
    """The listed name or directory that makes the host run this later by itself."""
    names, trees = _listed(fold_names(components) if folded else components, folded=folded)
    return min(("/".join(tree) for tree in trees), default=None) or min(names, default=None)


def is_run_later(path: ConcretePath) -> bool:
    """In either of its forms."""
    return any(runs_later(names, folded=folded) is not None for names, folded in _forms(path))


def writable(path: ConcretePath, pattern: BoundPattern, constraint: PathConstraint, places: Places) -> bool:
    """Whether a pattern that matches the path also gets past the floors of writing."""
    if unreadable(path, places) is not None:
        return False
    if protected(path, places) is not None and not (constraint.protected and pattern.is_literal):
        return False
    return all(_spells_listed(pattern, names, folded=folded) for names, folded in _forms(path))


def held_back(path: ConcretePath, pattern: BoundPattern, constraint: PathConstraint, *, hangs: bool) -> str | None:
    """The floor, in words, that keeps a path from a pattern that covers it; None where there is none."""
    if not constraint.hidden and not pattern.matches(path.real, hidden=False, hangs=hangs):
        return "a name that begins with a dot must be spelled, or the rule say `hidden: allow`"
    for names, folded in _forms(path) if path.access is Access.WRITE else ():
        if not _spells_listed(pattern, names, folded=folded):
            later = runs_later(names, folded=folded)
            return f"{later} is run by the host later: only a pattern that spells it covers it"
    return None


def _forms(path: ConcretePath) -> Iterator[tuple[Components, bool]]:
    """The path as it is and as it was written, each folded too where the volume does not tell cases apart."""
    for names in (path.real,) if path.real == path.written else (path.real, path.written):
        yield names, False
        if path.folded:
            yield fold_names(names), True


def _within_any(names: Components, directories: Iterable[Components], *, folded: bool) -> bool:
    return any(is_within(names, fold_names(directory) if folded else directory) for directory in directories)


def _trees_in(names: Sequence[str | None], trees: Trees) -> list[Components]:
    """The trees whose names follow each other among these."""
    return [
        tree
        for at, name in enumerate(names)
        if name is not None and name in trees
        for tree in trees[name]
        if tuple(names[at : at + len(tree)]) == tree
    ]


def _listed(names: Components, *, folded: bool) -> tuple[set[str], set[Components]]:
    """All that the path falls under in the list of what runs later: names, and directories that it lies beneath."""
    if not names:
        return set(), set()
    last = names[-1]
    found = {name for name, pattern in _RUNS_LATER_WILD if holds(pattern, last)}
    exact = (_RUNS_LATER_FOLDED if folded else _RUNS_LATER).get(last)
    return found | ({exact} if exact else set()), set(_trees_in(names[:-1], _RUNS_LATER_TREES))


def _spells_listed(pattern: BoundPattern, names: Components, *, folded: bool) -> bool:
    """Nothing is listed, or the pattern spells all that is and ends in a name without wildcards."""
    listed, trees = _listed(names, folded=folded)
    if not listed and not trees:
        return True
    spelled = _spelled(pattern.segments[pattern.anchor_depth :], folded=folded)
    last = spelled[-1] if spelled else None
    if last is None:
        return False
    return listed <= _listed((last,), folded=folded)[0] and trees <= set(_trees_in(spelled, _RUNS_LATER_TREES))


def _spelled(segments: Segments, *, folded: bool) -> tuple[str | None, ...]:
    """The literal names of a pattern, with None where it has a wildcard."""
    texts = (part.text if isinstance(part, Literal) else None for part in segments)
    return tuple(fold(text) if folded and text is not None else text for text in texts)


def floor_document() -> Json:
    """What `capsule schema floor` prints."""
    return {
        "hidden": "a name that begins with a dot matches an allow or ask only where the pattern spells the dot,"
        " or with hidden: allow",
        "never_read_or_written": ["Capsule's key and config.toml", "the store in use and the files beside it"],
        "never_written": {
            "places": ["the rest of Capsule's home", "the policy, the plan and the pack in use"],
            "names": [*REPOSITORY, *CREDENTIALS, *SHELL_STARTUP],
            "trees": ["/".join(tree) for tree in SHELL_STARTUP_TREES],
            "system": ["/" + "/".join(tree) for tree in SYSTEM_STARTUP],
            "except": "protected: allow on a pattern without wildcards",
        },
        "runs_later": {
            "names": list(RUNS_LATER_NAMES),
            "trees": ["/".join(tree) for tree in RUNS_LATER_TREES],
            "written_only_by": "a pattern that spells the listed name or directory and whose last name has no wildcard",
        },
        "addresses": {
            "not_public": [str(network) for network in (*NOT_PUBLIC_V4, *NOT_PUBLIC_V6)],
            "public_ipv6": str(PUBLIC_V6),
            "also": "an address that carries an IPv4 address is as public as that one",
        },
    }
