"""The user's settings: Capsule's home, its `config.toml` and the `CAPSULE_…` variables, as one frozen value.

>>> from capsule.settings import Settings
>>> settings = Settings.load({"HOME": "/home/ada", "CAPSULE_APPROVE": "reads"})
>>> str(settings.db), settings.approve.value
('/home/ada/.capsule/runs.db', 'reads')

Nothing here creates a file or a directory, and nothing in a working directory is ever read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from capsule.canon import Json
from capsule.documents import error_at, read_text, schema, spell
from capsule.errors import PlanError

__all__ = ["CONFIG_SCHEMA", "Approve", "Settings"]


class Approve(StrEnum):
    """How an ask of the policy is answered."""

    ASK = "ask"
    READS = "reads"
    ALL = "all"
    DENY = "deny"


CONFIG_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "db": {"type": "string", "minLength": 1, "description": "Where runs are recorded."},
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
        config = home / "config.toml"
        given = _from_file(config) if config.exists() else {}
        given |= _from_variables(environ)
        return cls(
            user_home=user_home,
            home=home,
            db=home / _expanded(str(given.get("db", "runs.db")), user_home),
            approve=Approve(str(given.get("approve", Approve.ASK))),
            debug=bool(given.get("debug", False)),
        )


def _user_home(environ: Mapping[str, str]) -> Path:
    try:
        home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    except RuntimeError as error:
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
    text = read_text(config, kind="settings file")
    name = str(config)
    try:
        given: dict[str, Json] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise error_at(_before_mistake(text, error), name, f"not valid TOML: {_plain(error)}") from error
    for problem in schema.problems(given, CONFIG_SCHEMA):
        above = "" if problem.key else f"{problem.path[0]}: "
        before = text[: _offset(text, str(problem.path[0]))]
        raise error_at(before, name, f"{above}{problem.message}", hint=problem.hint, trail=problem.path)
    return given
