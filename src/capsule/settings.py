"""The user's settings: Capsule's home, its `config.toml` and the `CAPSULE_…` variables, as one frozen value.

>>> from capsule.settings import Settings
>>> settings = Settings.load({"HOME": "/home/ada", "CAPSULE_APPROVE": "reads"})
>>> str(settings.db), settings.approve.value
('/home/ada/.capsule/runs.db', 'reads')

Nothing here creates a file or a directory, and nothing in a working directory is ever read.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from capsule.canon import Json
from capsule.documents import error_at, read_text, schema, shown, spell_name
from capsule.errors import PlanError

__all__ = ["CONFIG_SCHEMA", "Approve", "Settings"]

MAX_CHARACTERS = 64 * 1024  # of config.toml: three settings need three lines
MAX_DOTS = 64  # on one of its lines


class Approve(StrEnum):
    """How an ask of the policy is answered."""

    ASK = "ask"
    READS = "reads"
    ALL = "all"
    DENY = "deny"


CONFIG_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "db": {"type": "string", "minLength": 1, "pattern": r"^[^\x00]*$", "description": "Where runs are recorded."},
        "approve": {"type": "string", "enum": [mode.value for mode in Approve]},
        "debug": {"type": "boolean", "description": "Show tracebacks."},
    },
    "additionalProperties": False,
}

_VARIABLES = {"db": "CAPSULE_DB", "approve": "CAPSULE_APPROVE", "debug": "CAPSULE_DEBUG"}
_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}

_TOML_PLACE = re.compile(r"\(at line ([0-9]+), column ([0-9]+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    user_home: Path
    home: Path  # Capsule's own directory
    db: Path
    approve: Approve
    debug: bool

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> Settings:
        """PlanError 3001 for whatever is not understood in the file or in a variable; a variable wins over the file."""
        user_home = _user_home(environ)
        home = _home(environ, user_home)
        given = {**_from_file(home / "config.toml"), **_from_variables(environ)}
        beside = Path() if environ.get("CAPSULE_DB") else home  # what a relative path hangs from
        return cls(
            user_home=user_home,
            home=home,
            db=beside / _expanded(str(given.get("db", "runs.db")), user_home),
            approve=Approve(str(given.get("approve", Approve.ASK))),
            debug=bool(given.get("debug", False)),
        )


def _user_home(environ: Mapping[str, str]) -> Path:
    try:
        # Path.home() would take an empty HOME for the root
        home = Path(environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError as error:
        raise PlanError(3001, "HOME: found nothing, allowed: your home directory", hint="set HOME") from error
    return _absolute(home, "HOME")


def _home(environ: Mapping[str, str], user_home: Path) -> Path:
    named = environ.get("CAPSULE_HOME")
    return _absolute(_expanded(named, user_home), "CAPSULE_HOME") if named else user_home / ".capsule"


def _absolute(path: Path, variable: str) -> Path:
    """A relative home would be another one in every directory, and be read from wherever an agent works."""
    if not path.is_absolute():
        message = f"{variable}: found {shown(str(path))}, allowed: an absolute path"
        raise PlanError(3001, message, hint=f"set {variable} to a path that begins with /")
    return path


def _expanded(written: str, user_home: Path) -> Path:
    return user_home / written[1:].lstrip("/") if written == "~" or written.startswith("~/") else Path(written)


def _from_file(config: Path) -> dict[str, Json]:
    try:
        config.lstat()
    except FileNotFoundError:
        return {}
    except OSError:
        pass  # reading it says why
    name = spell_name(str(config))
    text = read_text(config, kind="settings file")
    _check_size(text, name)
    import tomllib  # noqa: PLC0415 - 3 ms that users without a config.toml need not pay

    try:
        given: dict[str, Json] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        place = _TOML_PLACE.search(str(error))
        said = "nested too deeply" if isinstance(error, RecursionError) else _TOML_PLACE.sub("", str(error)).strip()
        message = f"not valid TOML: {said[0].lower()}{said[1:]}"
        raise error_at(_before(text, place), name, message) from error
    for problem in schema.problems(given, CONFIG_SCHEMA):
        key = str(problem.path[0])
        message = problem.message if problem.key else f"{key}: {problem.message}"
        before = text[: _offset(text, key, of_key=problem.key)]
        raise error_at(before, name, message, hint=problem.hint, trail=problem.path)
    return given


def _check_size(text: str, name: str) -> None:
    """Before tomllib sees it: its memory grows with the square of the parts of a dotted key."""
    if len(text) > MAX_CHARACTERS:
        raise error_at(text[:MAX_CHARACTERS], name, f"too large: allowed are {MAX_CHARACTERS:,} characters")
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if line.count(".") > MAX_DOTS:
            before = "".join(f"{line}\n" for line in lines[:index])
            raise error_at(before, name, f"more than {MAX_DOTS} dots on one line", hint="no setting needs that")


def _before(text: str, place: re.Match[str] | None) -> str:
    """The text up to the place that tomllib names, which is the end where it names none."""
    if place is None:
        return text
    line, column = (int(number) for number in place.groups())
    lines = text.split("\n")
    return "\n".join([*lines[: line - 1], lines[line - 1][: column - 1]])


def _offset(text: str, key: str, *, of_key: bool) -> int:
    """Where a key, its value or its table stands, found by its look: tomllib keeps no places."""
    name = rf"(?P<name>([\"']?){re.escape(key)}\2)"
    found = re.search(rf"^[ \t]*\[*[ \t]*{name}[ \t]*(?:=[ \t]*|[.\]])", text, re.MULTILINE)
    if found is None:
        return 0
    return found.start("name") if of_key else found.end()


def _from_variables(environ: Mapping[str, str]) -> dict[str, Json]:
    """A variable that is empty counts as not set."""
    given: dict[str, Json] = {}
    for key, variable in _VARIABLES.items():
        written = environ.get(variable)
        if written:
            given[key] = _SWITCHES.get(written.lower(), written) if key == "debug" else written
    for problem in schema.problems(given, CONFIG_SCHEMA):
        variable = _VARIABLES[str(problem.path[0])]
        allowed = f"found {shown(environ[variable])}, allowed: {', '.join(_SWITCHES)}"
        message = allowed if variable == "CAPSULE_DEBUG" else problem.message
        raise PlanError(3001, f"{variable}: {message}", f"unset {variable}, or correct it", {"variable": variable})
    return given
