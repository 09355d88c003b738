"""The pages are true: what they say to type is run, and what there is, is on a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import Project, blocks, is_alike
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from capsule.cli import COMMANDS, launch
from capsule.documents import units
from capsule.errors import KINDS, RETRIABLE
from capsule.plans import PLAN_SCHEMA
from capsule.policy import POLICY_SCHEMA
from capsule.settings import CONFIG_SCHEMA
from capsule.templates.filters import FILTERS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
TRIED_ELSEWHERE = {DOCS / "reference" / "record-format.md"}
PAGES = sorted(
    page
    for page in [ROOT / "README.md", EXAMPLES / "README.md", *DOCS.glob("**/*.md")]
    if page not in TRIED_ELSEWHERE and page.parent != DOCS / "adr"
)

# What a block of `sh` may begin with: setting up the reader's own machine is all that is not tried.
SETS_UP = ("pip install ", "scripts/", "capsule --install-completion", "mkdir -p ~/.capsule ")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def read(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_is_as_it_is_written(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path, beside=EXAMPLES if page.parent == EXAMPLES else None)
    monkeypatch.chdir(project.directory)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CAPSULE_HOME")
    assert "\n\n".join(problem for block in blocks(page) for problem in project.try_out(block)) == ""


def test_every_example_is_on_its_page() -> None:
    named = set(re.findall(r"^## (\w+)$", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert named == {path.name for path in EXAMPLES.iterdir() if path.is_dir()}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_only_set_up_is_not_tried(page: Path) -> None:
    lines = [line for block in blocks(page) if block.language == "sh" for line in block.text.splitlines()]
    assert [line for line in lines if not line.startswith(SETS_UP)] == []


@pytest.mark.parametrize(
    ("written", "printed", "alike"),
    [
        ("a\n", "a\n", True),
        ("a\n", "a  \n\n", True),
        ("a\n", "b\n", False),
        ("a\n", "a\nb\n", False),
        ("", "", True),
        ("", "a\n", False),
        ("a ... c\n", "a b c\n", True),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nd\n", True),
        ("a\n...\nd\n", "a\nb\n", False),
        ("took 1 ms\n", "took 23 ms\n", True),
        ("run 0011aabb\n", "run ffee9988\n", True),
        ("a.b\n", "axb\n", False),
    ],
)
def test_what_is_printed_is_compared(written: str, printed: str, alike: bool) -> None:
    assert is_alike(written, printed) is alike


def commands() -> Iterator[tuple[str, TyperCommand]]:
    app = get_command(launch._app_of(COMMANDS))
    assert isinstance(app, TyperGroup)
    for top, command in app.commands.items():
        leaves = (
            {f"{top} {below}": leaf for below, leaf in command.commands.items()}
            if isinstance(command, TyperGroup)
            else {top: command}
        )
        for path, leaf in leaves.items():
            assert isinstance(leaf, TyperCommand)
            yield path, leaf


def section(command: str) -> str:
    """The text beneath the heading that names a command."""
    found = re.search(rf"^## [^\n]*`capsule {command}\b[^\n]*\n(.*?)(?=^## |\Z)", read(COMMAND_LINE), re.M | re.S)
    assert found, f"no heading names `capsule {command}`"
    return found[1]


COMMAND_LINE = "reference/command-line.md"


@pytest.mark.parametrize(
    ("command", "leaf"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_command_and_option_is_documented(command: str, leaf: TyperCommand) -> None:
    named = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", section(command)))
    written = {option for parameter in leaf.params for option in (*parameter.opts, *parameter.secondary_opts)}
    options = {option for option in written if option.startswith("-")} - {"--help"}
    assert options - named == set()
    assert named - options == set(), "the page names options that are not there"


@pytest.mark.parametrize("option", ["--help", "--version", "--debug", "--install-completion", "--show-completion"])
def test_every_option_of_all_commands_is_documented(option: str) -> None:
    assert option in read(COMMAND_LINE).partition("## For all commands")[2]


def test_every_code_is_documented_with_its_class() -> None:
    rows = re.findall(r"^\| \*?(\d{4})\*? \|(.*)\|$", read("reference/errors.md"), re.M)
    assert [int(code) for code, _ in rows] + [9001] == list(KINDS)
    assert "## 9001" in read("reference/errors.md")
    assert {int(code) for code, row in rows if row.rstrip().endswith("| yes")} == RETRIABLE
    kinds = re.findall(r"[Kk]ind `(\w+)`|\| `(\w+)` \|", read("reference/errors.md"))
    assert {first or second for first, second in kinds} == set(KINDS.values())


def keys(schema: object) -> Iterator[str]:
    """Every key that a document may have, at any depth."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            yield from properties
        for value in schema.values():
            yield from keys(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from keys(value)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("reference/plan.md", {*keys(PLAN_SCHEMA), *FILTERS}),
        ("reference/policy.md", {*keys(POLICY_SCHEMA), *units._SIZES, *units._DURATIONS}),
        (
            "reference/files.md",
            {*keys(CONFIG_SCHEMA), "CAPSULE_DB", "CAPSULE_APPROVE", "CAPSULE_DEBUG", "CAPSULE_HOME"},
        ),
    ],
)
def test_every_word_of_a_document_is_documented(page: str, words: set[str]) -> None:
    assert [word for word in sorted(words) if not re.search(rf"(?<![A-Za-z]){word}\b", read(page))] == []
