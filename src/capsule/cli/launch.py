"""From words to one command: only the module of the command that is named is imported."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from capsule.cli.table import COMMANDS

if TYPE_CHECKING:
    import typer

EXIT_USAGE = 2

_COMPLETE = "_CAPSULE_COMPLETE"  # the variable that completion scripts set
_GLOBAL_HELP = """\
Usage: capsule [--debug] COMMAND …

The gate between an agent and a machine: a policy decides every tool call, a journal proves it.

Commands:
{commands}

Options:
  --version             Print the version.
  --debug               Show tracebacks.
  --install-completion  Complete commands and options in this shell.
  --show-completion     Print the completion script.
  --help                This list; `capsule COMMAND --help` for one command.
"""


def start(words: list[str]) -> int:
    """Run one command line and return its exit code."""
    debug = words[:1] == ["--debug"]
    words = words[1:] if debug else words
    if words in ([], ["--help"], ["-h"], ["help"]):
        sys.stdout.write(_help())
        return 0 if words else EXIT_USAGE
    if _COMPLETE in os.environ or words[0] in ("--install-completion", "--show-completion"):
        return _finish(_whole_app(), words, debug=debug)
    if words[0] not in COMMANDS:
        return _unknown(words[0])
    return _finish(_app_of(words[0]), words, debug=debug)


def _help() -> str:
    width = max(len(name) for name in COMMANDS)
    lines = [f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items()]
    return _GLOBAL_HELP.format(commands="\n".join(lines))


def _unknown(word: str) -> int:
    from capsule.documents import suggest  # noqa: PLC0415 - only a mistake needs it

    near = suggest(word, COMMANDS)
    hint = f"did you mean `capsule {near}`?" if near else "`capsule --help` lists the commands"
    sys.stderr.write(f"capsule: no command {word!r}; {hint}\n")
    return EXIT_USAGE


def _app_of(*names: str, completion: bool = False) -> typer.Typer:
    """A Typer application of these commands; each module has `add_to(app)`."""
    import typer  # noqa: PLC0415 - 40 ms that `--help` and `--version` do not need

    app = typer.Typer(name="capsule", add_completion=completion, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback()(_nothing)  # so that one command is still a sub-command
    for name in names:
        import_module(COMMANDS[name].module).add_to(app)
    return app


def _nothing() -> None:
    """The gate between an agent and a machine."""


def _whole_app() -> typer.Typer:
    return _app_of(*COMMANDS, completion=True)


def _finish(app: typer.Typer, words: list[str], *, debug: bool) -> int:
    from capsule.cli.outermost import guarded  # noqa: PLC0415 - see above

    return guarded(lambda: app(args=words, prog_name="capsule"), debug=debug)
