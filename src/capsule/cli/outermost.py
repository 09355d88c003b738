"""The outermost edge of the command line: every failure becomes one message and an exit code, never a traceback."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

from capsule.errors import CapsuleError
from capsule.screen import printable

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_DENIED = 3
EXIT_INTEGRITY = 4
EXIT_NO_BACK_END = 5
EXIT_INTERRUPTED = 130

_BY_FAMILY = {1: EXIT_DENIED, 3: EXIT_USAGE, 4: EXIT_INTEGRITY, 5: EXIT_NO_BACK_END, 8: EXIT_USAGE}
_BY_CODE = {2001: EXIT_USAGE, 2002: EXIT_USAGE, 4001: EXIT_USAGE, 5004: EXIT_INTEGRITY}


def exit_code_of(error: CapsuleError) -> int:
    return _BY_CODE.get(error.code, _BY_FAMILY.get(error.code // 1000, EXIT_FAILED))


def guarded(command: Callable[[], object], *, debug: bool) -> int:
    try:
        command()
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains again at exit
        return EXIT_FAILED
    except CapsuleError as error:
        if debug:
            traceback.print_exc()
        complain(error)
        return exit_code_of(error)
    except Exception as error:  # noqa: BLE001 - the outermost edge of a door
        if debug:
            traceback.print_exc()
        hint = "run it again with `capsule --debug …` and report what it prints"
        complain(CapsuleError(9001, f"unexpected {type(error).__name__}: {error}", hint=hint))
        return EXIT_FAILED
    return 0


def complain(error: CapsuleError) -> None:
    """One message; the hint on a line of its own."""
    sys.stderr.write(f"capsule: {printable(str(error))}\n")
    if error.hint:
        sys.stderr.write(f"  hint: {printable(error.hint)}\n")
