"""A masked value never comes back in, whatever was done to it on the way."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from capsule.calls.marker import has_marker
from capsule.canon import Json
from capsule.screen import Screen
from capsule.templates import compile_value

MARKER = "⟦redacted:github_token:1⟧"


@pytest.mark.parametrize(
    "value",
    [
        MARKER,
        f"a {MARKER} b",
        {"a": [1, {"b": MARKER}]},
        {MARKER: 1},
        MARKER.upper(),
        json.dumps(MARKER),
        json.dumps({"a": MARKER}),
        quote(MARKER),
        quote(MARKER).lower(),
        quote(MARKER, safe=":"),
        *(base64.b64encode(b"x" * n + MARKER.encode()).decode() for n in range(3)),
        *(base64.b64encode(b"x" * n + MARKER.encode("utf-16-le")).decode() for n in range(3)),
        *(base64.b64encode(b"x" * n + MARKER.encode("utf-16-be")).decode() for n in range(3)),
        *(base64.urlsafe_b64encode(b"\xff" * n + MARKER.encode() + b"\xff").decode() for n in range(3)),
    ],
)
def test_a_marker_is_known_again(value: Json) -> None:
    assert has_marker(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "⟦⟧",
        "redacted:github_token:1",
        "⟦redacted:TYPE:n⟧",
        "[redacted:x:1]",
        "⟦redacted::1⟧",
        1,
        None,
        [],
        {},
        "\ud800",
    ],
)
def test_what_only_speaks_of_markers_is_none(value: Json) -> None:
    assert not has_marker(value)


@pytest.mark.parametrize(
    "template",
    [
        "{{ o.content }}",
        "x {{ o.content }}",
        "{{ o|tojson }}",
        "{{ o|tojson(indent=2) }}",
        "{{ o.content|upper }}",
        "{{ o.content|lower|trim }}",
        "{{ o.content|urlencode }}",
        "{{ o|urlencode }}",
        "{{ o }} text",
        "{{ [1]|join(o.content) ~ o.content }}",
        "{{ o.content|replace('_', '-') }}",
    ],
)
def test_no_template_makes_a_marker_unknown_by_accident(template: str) -> None:
    assert has_marker(compile_value(template).render({"o": {"content": f"text {MARKER}"}}))


def test_what_the_screen_masks_is_refused_as_an_argument() -> None:
    token = "ghp_" + "aB3dE5gH7jK9" * 3
    assert has_marker(Screen(key=b"k").screen({"content": token}).value)
