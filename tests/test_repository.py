"""House rules of everything beside the source: links, layers, locks, and what a public repository does not name."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
TOPS = (".ci", ".github", "bench", "docs", "examples", "locks", "scripts", "src", "tests", "tools")
TEXTS = sorted(
    path
    for path in [*ROOT.glob("*"), *ROOT.glob(".[egiy]*"), *(path for top in TOPS for path in ROOT.glob(f"{top}/**/*"))]
    if path.is_file() and not path.name.startswith(("uv.lock", ".coverage")) and "__pycache__" not in path.parts
)
# Package hosts and this checkout; put together here, so that this file does not name them either.
UNNAMED = [f"{host}.{top}" for host, top in (("pypi", "org"), ("pythonhosted", "org"))] + [f"{ROOT}/"]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_file_names_this_machine_or_a_package_host() -> None:
    assert len(TEXTS) > 50
    found = [(name(path), unnamed) for path in TEXTS for unnamed in UNNAMED if unnamed.encode() in path.read_bytes()]
    assert found == []


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if link.startswith(("https:", "mailto:")):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in PAGES if path.is_relative_to(ROOT / "docs")]
    assert [page for page in pages if page not in navigation] == []


def test_the_layer_picture_is_current() -> None:
    drawn = subprocess.run([sys.executable, ROOT / "tools" / "layers.py"], capture_output=True, text=True, check=False)
    assert (drawn.stdout, drawn.returncode) == ("", 0)


def test_rooms_in_parentheses_are_not_built() -> None:
    contract = (ROOT / ".importlinter").read_text(encoding="utf-8")
    built = {path.stem for path in (ROOT / "src" / "capsule").iterdir()}
    assert built & set(re.findall(r"\((\w+)\)", contract)) == set()


def locked(lock: str) -> dict[str, Version]:
    text = (ROOT / "locks" / f"{lock}.txt").read_text(encoding="utf-8")
    return {
        package: Version(version) for package, version in re.findall(r"^([a-z0-9-]+)==([^\s;]+)", text, re.MULTILINE)
    }


@pytest.mark.parametrize(
    ("lock", "groups"), [("run", ["build"]), ("dev", ["build", "test", "dev"]), ("docs", ["docs"])]
)
def test_locks_hold_what_the_project_asks_for(lock: str, groups: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [] if lock == "docs" else list(project["project"]["dependencies"])
    wanted += [entry for group in groups for entry in project["dependency-groups"][group] if isinstance(entry, str)]
    versions = locked(lock)
    unmet = [
        text
        for text in wanted
        if (need := Requirement(text)).name not in versions or versions[need.name] not in need.specifier
    ]
    assert unmet == [], "run `just lock`"


def test_the_readme_says_how_much_is_installed() -> None:
    said = re.findall(r"locks/(\w+)\.txt\) \((\d+) packages\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert said == [(lock, str(len(locked(lock)))) for lock in ("run", "dev")]
