"""Canonical JSON against the reference implementation in Python, on what the journal writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import rfc8785

from bench.place import Place
from bench.rows import Row
from bench.timing import Effort, in_turns, shown
from capsule.canon import Json, canonical

_SECONDS = 3.0
_DOCUMENT: Json = {
    "steps": [
        {
            "id": f"step_{number}",
            "tool": "fs.read",
            "args": {"path": f"docs/{number}.md", "offset": number, "ratio": 0.5},
        }
        for number in range(200)
    ]
}


def canonical_json(effort: Effort, place: Place) -> Iterator[Row]:
    assert canonical(_DOCUMENT) == rfc8785.dumps(_DOCUMENT)
    taken = in_turns(
        {
            "ours": partial(canonical, _DOCUMENT),
            "rfc8785": partial(rfc8785.dumps, _DOCUMENT),
            "json": partial(json.dumps, _DOCUMENT, sort_keys=True),
        },
        seconds=effort.seconds(_SECONDS),
    )
    how = f"{shown(taken['ours'])}; {taken['ours'] / taken['json']:.2f} × json.dumps(sort_keys=True)"
    yield Row(what="canonical JSON ÷ rfc8785", measured=taken["ours"] / taken["rfc8785"], goal=1 / 3, how=how)
