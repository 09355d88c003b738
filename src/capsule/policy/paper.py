"""The world on paper: nothing is looked up, links are not followed, `..` is removed by text alone."""

from __future__ import annotations

from capsule.calls import Access, Components, ConcreteCommand, ConcretePath, Places
from capsule.calls.concrete import Resolved

MAX_PATH_BYTES = 4096  # PATH_MAX of Linux; a longer path names nothing
MAX_NAME_BYTES = 255  # NAME_MAX

PAPER_PLACES = Places(
    workdir=("workdir",),
    home=("home", "user"),
    capsule_home=("home", "user", ".capsule"),
    unreadable=(("home", "user", ".capsule", "key"), ("home", "user", ".capsule", "config.toml")),
)


def lexical(text: str, places: Places) -> Components:
    """The absolute path that a text spells: from the root, the home or the workdir; `.` and `..` removed by text."""
    if text == "~" or text.startswith("~/"):
        parts, rest = list(places.home), text[1:]
    elif text.startswith("/"):
        parts, rest = [], text
    else:
        parts, rest = list(places.workdir), text
    for name in rest.split("/"):
        if name == "..":
            del parts[-1:]
        elif name not in ("", "."):
            parts.append(name)
    return tuple(parts)


def path_problem(text: str) -> str | None:
    """Why a text can name no file on any system, whatever lies on the disk."""
    if "\0" in text:
        return "a path cannot hold NUL"
    if len(text) > MAX_PATH_BYTES:  # before anything that costs more than a look at the length
        return f"the path is longer than {MAX_PATH_BYTES} bytes"
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return "the path is not text: it holds a lone surrogate"
    if len(data) > MAX_PATH_BYTES:
        return f"the path is longer than {MAX_PATH_BYTES} bytes"
    if len(data) > MAX_NAME_BYTES and any(len(name) > MAX_NAME_BYTES for name in data.split(b"/")):
        return f"a name in the path is longer than {MAX_NAME_BYTES} bytes"
    return None


def argument_problem(text: str) -> str | None:
    """Why a program can be given no such argument."""
    if "\0" in text:
        return "an argument cannot hold NUL"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "an argument is not text: it holds a lone surrogate"
    return None


class OnPaper:
    """Implements `calls.World` for examples, tests and every decision that is not about a run."""

    resolved: Resolved = "paper"

    def __init__(self, places: Places = PAPER_PLACES) -> None:
        self.places = places

    def path(self, text: str, *, argument: str, access: Access) -> ConcretePath:
        problem = path_problem(text)
        real = () if problem else lexical(text, self.places)
        return ConcretePath(argument=argument, access=access, text=text, written=real, real=real, problem=problem)

    def command(self, argv: tuple[str, ...], *, argument: str, search: tuple[str, ...]) -> ConcreteCommand:  # noqa: ARG002 - nothing is searched on paper
        name = argv[0]
        problem = path_problem(name) or next(filter(None, map(argument_problem, argv)), None)
        invoked = (
            lexical(f"./{name}" if name.startswith("~") else name, self.places) if "/" in name and not problem else None
        )
        return ConcreteCommand(argument=argument, argv=argv, invoked=invoked, problem=problem)

    def folds(self, real: Components) -> bool:  # noqa: ARG002 - on paper every name is its own
        return False

    def directory(self, components: Components) -> Components:
        return components
