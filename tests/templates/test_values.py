"""What templates become: their types, their text, what is undefined, what is too large."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from capsule.canon import Json
from capsule.errors import PlanError
from capsule.templates import MAX_RESULT, compile_value

SCOPE: dict[str, Json] = {
    "one": 1,
    "half": 0.5,
    "whole": 2.0,
    "yes": True,
    "nothing": None,
    "empty": "",
    "word": "Straße",
    "listed": "[1, 2]",
    "list": [3, "b", None],
    "object": {"items": 5, "b": {"tag name": "v1"}, "a": [{"q": "deep"}]},
    "template": "{{ one }}",
    "python": "__class__",
    "format": "{0.__class__} %s",
    "deep": json.loads("[" * 300 + "]" * 300),
    "long": "x" * 1_100_000,
}


def render(value: Json) -> Json:
    return compile_value(value).render(SCOPE)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ one }}", 1),
        ("{{one}}", 1),
        ("{{- one -}}", 1),
        ("{{ yes }}", True),
        ("{{ nothing }}", None),
        ("{{ half }}", 0.5),
        ("{{ list }}", [3, "b", None]),
        ("{{ object.b }}", {"tag name": "v1"}),
        ("{{ listed }}", "[1, 2]"),
        ("{{ template }}", "{{ one }}"),
        ("{{ format }}", "{0.__class__} %s"),
        ("{{ one == 1 }}", True),
        ("{{ [1, 'a', {'k': none}] }}", [1, "a", {"k": None}]),
        ("{{ listed|from_json }}", [1, 2]),
    ],
)
def test_one_whole_expression_keeps_its_type(text: str, value: Json) -> None:
    rendered = render(text)
    assert rendered == value
    assert type(rendered) is type(value)
    assert compile_value(text).is_expression


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" {{ one }}", " 1"),
        ("{{ one }}\n", "1\n"),
        ("{{ one }}{# note #}", "1"),
        ("{{ one }}{{ one }}", "11"),
        ("{{ listed }}{{ empty }}", "[1, 2]"),
        ("a {{- one -}} \n b", "a1b"),
        ("a {#- note -#} b", "ab"),
        ("{{ '{{' }} {{ '}}' }}", "{{ }}"),
        ("x: {{ list }}", "x: [3, 'b', None]"),
        ("x: {{ object }}", "x: {'a': [{'q': 'deep'}], 'b': {'tag name': 'v1'}, 'items': 5}"),
        ("x: {{ yes }} {{ nothing }} {{ whole }} {{ half }}", "x: True None 2 0.5"),
        ("{{ one }}\r\n", "1\r\n"),
        ("{not} {one} }} %} #}", "{not} {one} }} %} #}"),
    ],
)
def test_anything_else_is_text(text: str, value: str) -> None:
    assert render(text) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("object.items", 5),
        ("object['items']", 5),
        ("object.b['tag name']", "v1"),
        ("object.a[0].q", "deep"),
        ("object.a.0.q", "deep"),
        ("list[-1]", None),
        ("list[one]", "b"),
        ("word[0]", "S"),
        ("-one", -1),
        ("+one", 1),
        ("one + whole - half", 2.5),
        ("word + '!'", "Straße!"),
        ("list + [4]", [3, "b", None, 4]),
        ("one ~ word ~ list", "1Straße[3, 'b', None]"),
        ("one + one ~ one", 12),
        ("'a' 'b'", "ab"),
        (r"'\n\x41\u00e9'", "\nAé"),
        ("0x10 + 0b11 + 1_000 + 1e1", 1029),
        ("1 < one + one <= 2 != 3", True),
        ("1 < 2 > 5", False),
        ("'tr' in word and 3 in list and 'items' in object", True),
        ("4 not in list", True),
        ("not one in list", True),
        ("empty or nothing or 'x'", "x"),
        ("one and list", [3, "b", None]),
        ("'a' if one > 3 else 'b' if one else 'c'", "b"),
        ("list == [3, 'b', none]", True),
    ],
)
def test_expressions(expression: str, value: Json) -> None:
    if expression == "one + one ~ one":  # `~` binds tighter than `+`, as in Jinja2
        with pytest.raises(PlanError, match="cannot take"):
            render("{{ " + expression + " }}")
    else:
        assert render("{{ " + expression + " }}") == value


def test_values_that_templates_produce_are_no_templates() -> None:
    assert render("{{ template ~ template }}") == "{{ one }}{{ one }}"
    assert render({"a": "{{ template }}"}) == {"a": "{{ one }}"}


def test_keys_are_never_templates_and_other_values_stay_as_they_are() -> None:
    value: Json = {"{{ one }}": "{{ one }}", "n": 1.5, "deep": [[None, {"x": "a{{ yes }}"}]]}
    assert render(value) == {"{{ one }}": 1, "n": 1.5, "deep": [[None, {"x": "aTrue"}]]}


def test_a_value_without_templates_is_given_back_itself() -> None:
    value: Json = {"a": ["b", {"c": 1}]}
    assert render(value) is value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ nope }}", "`nope` is not defined"),
        ("a {{ nope }}", "`nope` is not defined"),
        ("{{ object.nope }}", "`object.nope` is not defined: the object has 'a', 'b', 'items'"),
        ("{{ object.nope.deeper }}", "`object.nope` is not defined"),
        ("{{ object['tag name'] }}", r"`object\['tag name'\]` is not defined"),
        ("{{ nope.x|default(1) }}", "`nope` is not defined"),
        ("{{ nothing.x }}", "`nothing.x` is not defined: `nothing` is null"),
        ("{{ list[9] }}", r"`list\[9\]` is not defined: the list has 3 items"),
        ("{{ list.x }}", "`list.x` is not defined: `list` is a list"),
        ("{{ object[0] }}", "not defined"),
        ("{{ empty|first }}", "there is no first item"),
        ("{{ []|last }}", "there is no last item"),
        ("{{ 'x' if empty }}", "no `else`"),
        ("{{ nope == 1 }}", "`nope` is not defined"),
        ("{{ not nope }}", "`nope` is not defined"),
        ("{{ nope or 1 }}", "`nope` is not defined"),
        ("{{ 1 in nope }}", "`nope` is not defined"),
        ("{{ nope|length }}", "`nope` is not defined"),
        ("{{ word|replace(nope, 'x') }}", "`nope` is not defined"),
        ("{{ nope|default(nope) }}", "`nope` is not defined"),
        ("{{ object[python] }}", "begins with an underscore"),
        ("{{ object['_' ~ '_class__'] }}", "begins with an underscore"),
        ("{{ object[list] }}", "not defined"),
        ("{{ one + 'a' }}", "`[+]` cannot take a number and text"),
        ("{{ list - list }}", "`-` cannot take a list and a list"),
        ("{{ -word }}", "`-` needs a number, found text"),
        ("{{ 1 < 'a' }}", "cannot compare a number with text"),
        ("{{ [1] < ['a'] }}", "cannot compare a list with a list"),
        ("{{ 1 in 2 }}", "`in` cannot look for a number in a number"),
        ("{{ 1 in 'a' }}", "`in` cannot look for a number in text"),
        ("{{ 9007199254740991 + 1 }}", "not kept exactly"),
        ("{{ 1.7e308 + 1.7e308 }}", "too large"),
        ("{{ one|length }}", "a number has no items"),
        ("{{ nothing|join }}", "null has no items"),
        ("{{ word|replace('a', 'b', 'c') }}", "`count` must be an integer"),
        ("{{ list|tojson(indent=99) }}", "indents by 0 to 8"),
        ("{{ '{'|from_json }}", "not JSON"),
        ("{{ '[NaN]'|from_json }}", "NaN is not a number"),
        ("{{ '[1e999]'|from_json }}", "too large"),
        ("{{ '[9007199254740992]'|from_json }}", "not kept exactly"),
        ('{{ \'{"a":1,"a":2}\'|from_json }}', "a key twice"),
        ("{{ one|from_json }}", "takes text, found a number"),
        ("{{ ['a']|urlencode }}", "pairs"),
        ("{{ (word ~ ' ')|urlencode|replace('%', '{{')|from_json }}", "not JSON"),
        ("{{ deep }}", "nested deeper than 200 levels"),
        ("{{ long|urlencode }}", "at most 1024 KiB"),
        (r"{{ '\ud800'|urlencode }}", "surrogate"),
        ("{{ '12345678901234567890'|int }}", "not kept exactly"),
        ("{{ word|extract_github_owner }}", "names no GitHub repository"),
    ],
)
def test_what_cannot_be_filled_in_is_3003(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message) as caught:
        render(text)
    assert caught.value.code == 3003


def test_an_error_names_its_place_in_the_value() -> None:
    value: Json = {"headers": [1, {"x": "{{ nope }}"}]}
    with pytest.raises(PlanError, match=r"^headers\[1\]\.x: `nope` is not defined"):
        render(value)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("nope|default('d')", "d"),
        ("nope|default", ""),
        ("object.nope|default(list)|length", 3),
        ("empty|default('d')", ""),
        ("empty|default('d', true)", "d"),
        ("empty|default(default_value='d', boolean=yes)", "d"),
        ("nope|default(other)|default('e')", "e"),
        ("list|join", "3bNone"),
        ("list|join(', ')", "3, b, None"),
        ("word|join('-')", "S-t-r-a-ß-e"),
        ("object|join(',')", "a,b,items"),
        ("list|length + object|length + word|length", 12),
        ("word|upper ~ word|lower", "STRASSEstraße"),
        ("word|replace('a', 'A')", "StrAße"),
        ("'aaa'|replace('a', 'b', 2)", "bba"),
        ("'ab'|replace('', '-')", "-a-b-"),
        ("' x '|trim ~ '--y-'|trim('-')", "xy"),
        ("object|first ~ object|last ~ list|first ~ word|last", "aitems3e"),
        ("object.b|tojson", '{"tag name": "v1"}'),
        ("{'b': 1.0, 'a': \"<é'\"}|tojson", '{"a": "<é\'", "b": 1}'),
        ("[1, 2,]|join('-',)", "1-2"),
        ("{'a': 1,}|length", 1),
        ("[1]|tojson(indent=2)", "[\n  1\n]"),
        ("'a b/ü&'|urlencode", "a%20b/%C3%BC%26"),
        ("{'q': 'a b', 'n': 1}|urlencode", "n=1&q=a+b"),
        ("[['q', 'a/b']]|urlencode", "q=a%2Fb"),
        ("'42'|int + ' 7 '|int + '3.9'|int", 52),
        ("'x'|int(5) + nothing|int(1) + 'ff'|int(0, 16)", 261),
        ("half|string ~ yes|string", "0.5True"),
        ("one|string", "1"),
    ],
)
def test_filters(expression: str, value: Json) -> None:
    assert render("{{ " + expression + " }}") == value


@pytest.mark.parametrize(
    ("text", "owner", "repo"),
    [
        ("octocat/hello-world", "octocat", "hello-world"),
        ("https://github.com/octocat/Hello.World", "octocat", "Hello.World"),
        ("https://github.com/octocat/hello.git", "octocat", "hello"),
        ("http://www.github.com/octocat/hello/tree/main?x=1#y", "octocat", "hello"),
        ("https://user:token@github.com:443/octocat/hello/", "octocat", "hello"),
        ("git@github.com:octocat/hello.git", "octocat", "hello"),
        ("ssh://git@github.com/octocat/hello.git", "octocat", "hello"),
        ("github.com/octocat/hello?tab=readme", "octocat", "hello"),
        (" octocat/hello \n", "octocat", "hello"),
        ("https://example.com/octocat/hello", None, None),
        ("https://github.com@example.com/octocat/hello", None, None),
        ("https://github.com.example.com/octocat/hello", None, None),
        ("https://github.com/octocat", None, None),
        ("octocat/hello/tree", None, None),
        ("octocat/..", None, None),
        ("../etc/passwd", None, None),
        ("-x/y", None, None),
        ("octocat/he llo", None, None),
        ("", None, None),
    ],
)
def test_github_names(text: str, owner: str | None, repo: str | None) -> None:
    template = compile_value(["{{ url|extract_github_owner }}", "{{ url|extract_github_repo }}"])
    if owner is None:
        with pytest.raises(PlanError, match="names no GitHub repository"):
            template.render({"url": text})
    else:
        assert template.render({"url": text}) == [owner, repo]


BIG = "x" * (6 * 1024 * 1024)


@pytest.mark.parametrize(
    "value",
    [
        "{{ big + big + big }}",
        "{{ big ~ big ~ big }}",
        "{{ " + "big ~ " * 150 + "big }}",
        "{{ big }}{{ big }}{{ big }}",
        ["{{ big }}", "{{ big }}", "{{ big }}"],
        "{{ [1,2,3]|join(big) ~ big }}",
        "{{ big|join(', ') }}",
        "{{ big|replace('x', 'yyyy') }}",
        "{{ big|replace('', big) }}",
        "{{ big|urlencode }}",
        "{{ [[[[]]]]|tojson(indent=8) ~ big ~ big ~ big }}",
        "{{ many + many + many }}",
        "{{ many|join(big) }}",
        "{{ deep|tojson(indent=8) }}",
        "{{ brackets|from_json }}",
        "{{ nested|from_json }}",
        "x{{ shared }}",
        "{{ shared }}",
        "{{ shared|tojson }}",
        "{{ sharp|upper }}",
        "{{ big|trim(big) }}",
    ],
)
def test_what_grows_beyond_16_mib_is_refused_before_it_is_there(value: Json) -> None:
    shared: Json = ["y" * 1024]
    for _ in range(20):
        shared = [shared, shared]
    deep: Json = [1] * 100_000
    for _ in range(150):
        deep = [deep]
    scope: dict[str, Json] = {
        "deep": deep,
        "big": BIG,
        "many": [1] * 900_000,
        "brackets": "[" + "[]," * 2_000_000 + "[]]",
        "nested": "[" * 100_000,
        "shared": shared,
        "sharp": "ΐ" * (4 * 1024 * 1024),
    }
    template = compile_value(value)
    tracemalloc.start()
    try:
        with pytest.raises(PlanError) as caught:
            template.render(scope)
        assert tracemalloc.get_traced_memory()[1] < 5 * MAX_RESULT
    finally:
        tracemalloc.stop()
    assert caught.value.code == 3003


def test_the_largest_tool_output_passes() -> None:
    content = "eHg=" * (10 * 1024 * 1024 // 3)
    assert compile_value({"content": "{{ c }}"}).render({"c": content}) == {"content": content}
