"""The command `capsule`. What can be said without the command line's libraries is said before they are imported."""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> None:
    """Answer `--version` at once, which scripts ask often; leave the rest to the command that is named."""
    words = sys.argv[1:] if arguments is None else arguments
    if words in (["--version"], ["-V"]):
        from capsule._version import __version__  # noqa: PLC0415 - the only import that this answer needs

        sys.stdout.write(f"capsule {__version__}\n")
        return
    from capsule.cli import start  # noqa: PLC0415 - see above

    sys.exit(start(words))


if __name__ == "__main__":
    main()
