"""Concrete calls made by hand, as they would be resolved on paper: nothing is looked up, `..` goes by text alone."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from capsule.calls import (
    BUILTIN,
    Access,
    Components,
    ConcreteCall,
    ConcreteCommand,
    ConcretePath,
    ConcreteUrl,
    Guard,
    Places,
    Source,
)

ACCESS = {Guard.READ_PATH: Access.READ, Guard.WRITE_PATH: Access.WRITE}


def components(text: str) -> Components:
    return tuple(part for part in text.split("/") if part)


def places(workdir: str, home: str = "/home/user") -> Places:
    capsule_home = f"{home}/.capsule"
    return Places(
        workdir=components(workdir),
        home=components(home),
        capsule_home=components(capsule_home),
        unreadable=tuple(components(f"{capsule_home}/{name}") for name in ("key", "config.toml", "runs.db")),
        unwritable=(components(f"{workdir}/policy.yaml"), components(f"{workdir}/src/pack")),
    )


PAPER = places("/workdir")


def absolute(text: str, places: Places) -> Components:
    found: list[str] = []
    if text == "~" or text.startswith("~/"):
        found, text = [*places.home], text[1:]
    elif not text.startswith("/"):
        found = [*places.workdir]
    for part in text.split("/"):
        if part == "..":
            found = found[:-1]
        elif part not in ("", "."):
            found.append(part)
    return tuple(found)


def concrete_path(argument: str, access: Access, text: str, places: Places) -> ConcretePath:
    written = absolute(text, places)
    return ConcretePath(argument=argument, access=access, text=text, written=written, real=written)


def concrete_url(argument: str, text: str) -> ConcreteUrl:
    parts = urlsplit(text)
    host = parts.hostname or ""
    port = parts.port or {"http": 80, "https": 443, "ftp": 21}[parts.scheme]
    is_address = ":" in host or host.replace(".", "").isdigit()
    return ConcreteUrl(
        argument=argument,
        text=text,
        href=text,
        scheme=parts.scheme,
        host=host,
        port=port,
        path=parts.path or "/",
        query=parts.query,
        public=not is_address or ipaddress.ip_address(host).is_global,
        problem="user information in a URL is refused" if "@" in parts.netloc else None,
    )


def concrete_command(argument: str, argv: tuple[str, ...], places: Places) -> ConcreteCommand:
    found = absolute(argv[0], places) if "/" in argv[0] else None
    return ConcreteCommand(argument=argument, argv=argv, program=found, invoked=found)


def concrete(
    tool: str, args: Mapping[str, Any], *, places: Places = PAPER, source: Source = Source.API, **changes: Any
) -> ConcreteCall:
    definition = BUILTIN[tool]
    filled: dict[str, Any] = definition.defaults | dict(args)
    given = [(name, guard) for name, guard in definition.guards.items() if name in filled]
    content = filled.get(definition.payload) if definition.payload else None
    if content is not None:
        content = base64.b64decode(content) if filled["encoding"] == "base64" else content.encode()
    call = ConcreteCall(
        definition=definition,
        args=filled,
        source=source,
        resolved="paper",
        paths=tuple(
            concrete_path(name, ACCESS[guard], filled[name], places) for name, guard in given if guard in ACCESS
        ),
        urls=tuple(concrete_url(name, filled[name]) for name, guard in given if guard is Guard.URL),
        commands=tuple(
            concrete_command(name, tuple(filled[name]), places) for name, guard in given if guard is Guard.COMMAND
        ),
        payload_bytes=None if content is None else len(content),
    )
    return replace(call, **changes)
