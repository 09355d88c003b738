"""From words to one command: only the module of the command that is named is imported."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from capsule._version import __version__
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
  --show-completion     Print the completion script; of another shell: `--show-completion zsh`.
  --help                This list; `capsule COMMAND --help` for one command.
"""


def start(words: list[str]) -> int:
    """Run one command line and return its exit code."""
    ours = _ours(words)
    debug = "--debug" in ours
    words = [*(word for word in ours if word != "--debug"), *words[len(ours) :]]
    if _COMPLETE in os.environ:  # first: a shell that completes gives no words at all
        return _finish(COMMANDS, words, debug=debug)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("--help", "-h"):
        sys.stdout.write(_help())
        return 0 if words else EXIT_USAGE
    if words[0] in ("--version", "-V"):
        return _version(words)
    if words[0] in ("--install-completion", "--show-completion"):
        return _complete(words, debug=debug)
    if words[0] not in COMMANDS:
        return _unknown(words[0])
    return _finish((words[0],), words, debug=debug)


def _ours(words: list[str]) -> list[str]:
    """What stands behind `--` is another program's."""
    return words[: words.index("--")] if "--" in words else words


def _help() -> str:
    width = max(len(name) for name in COMMANDS)
    lines = [f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items()]
    return _GLOBAL_HELP.format(commands="\n".join(lines))


def _version(words: list[str]) -> int:
    """Alone, `__main__` has answered it; this is `capsule --debug --version`, or one word too many."""
    if len(words) > 1:
        sys.stderr.write(f"capsule: {words[0]} takes no word\n")
        return EXIT_USAGE
    sys.stdout.write(f"capsule {__version__}\n")
    return 0


def _complete(words: list[str], *, debug: bool) -> int:
    """Typer finds out which shell this is; the script of another one is asked for by its name."""
    if words[0] == "--show-completion" and len(words) > 1:
        os.environ[_COMPLETE] = f"source_{words[1]}"
    elif len(words) > 1:
        sys.stderr.write(f"capsule: {words[0]} takes no word: call it from the shell that is to complete\n")
        return EXIT_USAGE
    return _finish(COMMANDS, words[:1], debug=debug)


def _unknown(word: str) -> int:
    from capsule.cli.said import masked_text  # noqa: PLC0415 - only a mistake needs it
    from capsule.documents import suggest  # noqa: PLC0415 - the same

    near = suggest(word, COMMANDS)
    hint = f"did you mean `capsule {near}`?" if near else "`capsule --help` lists the commands"
    what = "option" if word.startswith("-") else "command"
    sys.stderr.write(f"capsule: no {what} {masked_text(word)!r}; {hint}\n")
    return EXIT_USAGE


def _finish(names: Iterable[str], words: list[str], *, debug: bool) -> int:
    from capsule.cli.interrupts import INTERRUPTS  # noqa: PLC0415 - 40 ms that `--help` and `--version` do not need

    with INTERRUPTS.caught():
        from capsule.cli.outermost import guarded  # noqa: PLC0415 - the same

        def command() -> object:
            app = _app_of(names)
            INTERRUPTS.let_through()
            return app(args=words, prog_name="capsule", standalone_mode=False)

        return guarded(command, debug=debug, as_json="--json" in _ours(words))


def _app_of(names: Iterable[str]) -> typer.Typer:
    """A Typer application of these commands; each module has `add_to(app)`."""
    gc.disable()  # nothing that is imported is ever garbage, and looking for it takes a tenth of the start
    import typer  # noqa: PLC0415 - what `--help` and `--version` do not need

    app = typer.Typer(
        name="capsule",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_nothing)  # so that one command is still a sub-command
    for name in names:
        import_module(COMMANDS[name].module).add_to(app)
    gc.freeze()
    gc.enable()
    return app


def _nothing() -> None:
    """The gate between an agent and a machine."""
