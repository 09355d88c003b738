"""The command `capsule`. What can be said without the command line's libraries is said before they are imported."""

from __future__ import annotations

import gc
import os
import sys
from io import TextIOWrapper


def main(arguments: list[str] | None = None) -> None:
    """Answer, and exit with the code of the answer; 1 where the answer could not be written."""
    _open_streams()
    code = 0
    try:
        code = _answer(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:  # also while the command is still being imported
        code = 130
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # which only says that nobody reads on
            sys.stderr.write(f"capsule: standard output: {error.strerror}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains again at exit
        code = code or 1
    gc.freeze()  # or the interpreter, ending, would search all that was imported for garbage: a tenth of a run
    sys.exit(code)


def _answer(words: list[str]) -> int:
    """`--version` at once, which scripts ask often; the rest is left to the command that is named."""
    if words in (["--version"], ["-V"]):
        from capsule._version import __version__  # noqa: PLC0415 - the only import that this answer needs

        sys.stdout.write(f"capsule {__version__}\n")
        return 0
    import signal  # noqa: PLC0415 - see above

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Until a command catches it, Ctrl-C just ends the process: what Python raises within an import may be lost.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from capsule.cli import start  # noqa: PLC0415 - see above

    return start(words)


def _open_streams() -> None:
    """Where a standard stream was closed, the next file to be opened would take its place: a journal, for one.

    All that is written is UTF-8, as JSON must be; in a locale that knows fewer letters nothing is lost or fails.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - for the whole life
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    main()
