"""The outermost edge of the command line: every failure becomes one message and an exit code, never a traceback."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable

from typer.exceptions import TyperException

from capsule.canon import Json
from capsule.cli.output import print_json
from capsule.cli.said import masked, masked_text, said
from capsule.errors import CapsuleError
from capsule.settings import Settings

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_DENIED = 3
EXIT_INTEGRITY = 4
EXIT_NO_BACK_END = 5
EXIT_INTERRUPTED = 130

_LOST = frozenset({errno.EPIPE, errno.ENOSPC, errno.EIO})  # what a write to a stream fails with

_BY_FAMILY = {1: EXIT_DENIED, 3: EXIT_USAGE, 4: EXIT_INTEGRITY, 5: EXIT_NO_BACK_END, 8: EXIT_USAGE}
_BY_CODE = {2001: EXIT_USAGE, 2002: EXIT_USAGE, 4001: EXIT_USAGE, 5004: EXIT_INTEGRITY}


def exit_code_of(error: CapsuleError) -> int:
    return _BY_CODE.get(error.code, _BY_FAMILY.get(error.code // 1000, EXIT_FAILED))


def guarded(command: Callable[[], object], *, debug: bool, as_json: bool) -> int:
    """Run a command; what it raises is told on standard error, and with `--json` as the one document too."""
    try:
        code = command()
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else EXIT_FAILED
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except TyperException as error:
        return _misused(error, as_json=as_json)
    except CapsuleError as error:
        return _failed(error, debug=debug, as_json=as_json)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _LOST:
            raise  # a standard stream cannot be written: nothing more can be said here
        hint = "run it again as `capsule --debug …` and report what it prints"
        unexpected = CapsuleError(9001, f"unexpected {type(error).__name__}: {error}", hint=hint)
        return _failed(unexpected, debug=debug, as_json=as_json)
    if code == EXIT_INTERRUPTED and as_json:
        _print_error(None, "interrupted", "interrupted", "`capsule list-runs --status interrupted` shows the run")
    return code if isinstance(code, int) else 0


def _failed(error: CapsuleError, *, debug: bool, as_json: bool) -> int:
    """One message; the hint on a line of its own."""
    if debug or _wants_tracebacks():
        sys.stderr.write(masked_text(traceback.format_exc()))
    sys.stderr.write(f"capsule: {said(str(error))}\n")
    if error.hint:
        sys.stderr.write(f"  hint: {said(error.hint)}\n")
    if as_json:
        _print_error(error.code, error.kind, error.message, error.hint)
    return exit_code_of(error)


def _wants_tracebacks() -> bool:
    try:
        return Settings.load(os.environ).debug
    except CapsuleError:
        return False


def _misused(error: TyperException, *, as_json: bool) -> int:
    """A mistake on the command line itself; a group without a command comes as its own help."""
    message = error.format_message().replace("Value error, ", "").replace("\n\t", " ")
    sys.stderr.write(message + "\n" if message.startswith("Usage:") else f"capsule: {said(message)}\n")
    context = getattr(error, "ctx", None)
    hint = f"`{context.command_path} --help` shows what it takes" if context else None
    if hint and not message.startswith("Usage:"):
        sys.stderr.write(f"  hint: {hint}\n")
    if as_json:
        _print_error(None, "usage_error", message, hint)
    return EXIT_USAGE


def _print_error(code: int | None, kind: str, message: str, hint: str | None) -> None:
    error: dict[str, Json] = {"code": code, "kind": kind, "message": message, "hint": hint}
    print_json({"error": masked(error)})
