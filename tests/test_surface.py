"""House rules of the source that a machine can see. The lists of exceptions are whole: a stale entry fails too."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from inspect import isclass, isroutine
from pathlib import Path

import pytest

import capsule
from capsule.cli import COMMANDS

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "capsule"
FILES = {path.relative_to(SRC).as_posix(): path.read_text(encoding="utf-8") for path in sorted(SRC.rglob("*.py"))}
TREES = {name: ast.parse(text) for name, text in FILES.items()}
ROOMS = sorted({name.partition("/")[0].removesuffix(".py") for name in FILES} - {"__init__", "__main__", "_version"})

# The contracts in .importlinter keep clock, disk, network and chance out of these; this test, the builtins.
PURE_ROOMS = ("calls/", "canon.py", "policy/", "screen/", "templates/")
IMPURE_BUILTINS = {"__import__", "breakpoint", "compile", "eval", "exec", "input", "open", "print"}

# Where everything is caught: around deciding, around foreign code, at the outermost edge of a door. At most three.
BROAD_EXCEPTS = {"policy/decide.py": 1, "gate/foreign.py": 1, "cli/outermost.py": 1}

# Imports inside functions, for what costs too much to load before it is needed.
LAZY_IMPORTS = {
    "__main__.py": {"capsule._version", "capsule.cli", "signal"},
    "cli/launch.py": {
        "capsule.cli.interrupts",
        "capsule.cli.outermost",
        "capsule.cli.said",
        "capsule.documents",
        "typer",
    },
    "documents/document.py": {"capsule.documents.from_yaml"},
    "documents/schema.py": {"re2"},
    "documents/wording.py": {"difflib"},
    "policy/hosts.py": {"ada_url"},
    "settings.py": {"tomllib"},
}


def walk() -> Iterator[tuple[str, ast.AST]]:
    return ((name, node) for name, tree in TREES.items() for node in ast.walk(tree))


def test_public_names_are_listed_and_say_what_they_are() -> None:
    ours = {name for name, value in vars(capsule).items() if getattr(value, "__module__", "").startswith("capsule")}
    assert {name for name in ours if name[0] != "_"} <= set(capsule.__all__)
    assert set(capsule.__all__) <= set(dir(capsule)), "a prompt completes them"
    for name in capsule.__all__:
        value = getattr(capsule, name)
        written = (value.__doc__ or "").startswith(f"{name}(") is False  # @dataclass fills in the signature
        assert not (isclass(value) or isroutine(value)) or (value.__doc__ and written), name


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_opens_with_what_it_is_and_its_names(room: str) -> None:
    module = importlib.import_module(f"capsule.{room}")
    assert module.__doc__, f"capsule.{room} does not say what it is"
    assert [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)] == []
    tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert tried.failed == 0
    assert tried.attempted or not hasattr(module, "__path__"), f"capsule.{room} shows no example"


def test_rooms_are_in_the_architecture() -> None:
    drawn = set(re.findall(r"`(\w+)`", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")))
    assert set(ROOMS) <= drawn


def test_commands_are_in_the_docs() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/**/*.md"))
    assert [command for command in COMMANDS if f"`capsule {command}" not in pages] == []


def test_modules_are_short_and_named_for_what_they_hold() -> None:
    assert [name for name, text in FILES.items() if text.count("\n") > 500] == []
    vague = re.compile(r"(^|/)(utils?|helpers?|common|misc|core|base_\w+)(\.py|/)")
    assert [name for name in FILES if vague.search(name)] == []


def test_nothing_is_defined_twice() -> None:
    """By name; private functions, and those of `cli`, which are called like their commands, by what they do."""
    places = defaultdict(set)
    for name, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name[:2] != "__":
                named = isinstance(node, ast.ClassDef) or not (node.name[0] == "_" or name.startswith("cli/"))
                places[node.name if named else ast.dump(ast.Module(node.body, []))].add(f"{name}:{node.name}")
    assert [sorted(twins) for twins in places.values() if len(twins) > 1] == []


def test_what_catches_everything_is_listed() -> None:
    found: Counter[str] = Counter()
    for name, node in walk():
        if isinstance(node, ast.ExceptHandler):
            caught = ast.unparse(node.type) if node.type else "Exception"
            found[name] += bool(re.search(r"\b(Base)?Exception\b", caught))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            found[name] += any(re.search(r"\b(Base)?Exception\b", ast.unparse(caught)) for caught in node.args)
    assert {name: count for name, count in found.items() if count} == BROAD_EXCEPTS
    assert sum(BROAD_EXCEPTS.values()) <= 3


def test_late_imports_are_listed() -> None:
    found = defaultdict(set)
    for name, function in walk():
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    found[name].add(node.module)
                elif isinstance(node, ast.Import):
                    found[name].update(alias.name for alias in node.names)
    assert found == LAZY_IMPORTS


def test_pure_rooms_use_no_impure_builtin() -> None:
    used = ((name, node.id) for name, node in walk() if isinstance(node, ast.Name) and name.startswith(PURE_ROOMS))
    assert [(name, builtin) for name, builtin in used if builtin in IMPURE_BUILTINS] == []
