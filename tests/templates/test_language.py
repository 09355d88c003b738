"""What can be said in a template, and what cannot: refused before anything is evaluated."""

from __future__ import annotations

import time

import pytest

from capsule.canon import Json
from capsule.templates import BadTemplate, compile_value

D7_ATTACKS = [
    "{{ ''.__class__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ inputs['__class__'] }}",
    "{{ inputs.__init__.__globals__ }}",
    "{{ __builtins__ }}",
    "{{ self.__init__ }}",
    "{{ x._private }}",
    "{{ x['_private'] }}",
    "{{ x|attr('upper') }}",
    "{{ x|attr('__class__') }}",
    "{{ x|map(attribute='__class__') }}",
    "{{ x|format(y) }}",
    "{{ x|xmlattr }}",
    "{{ x|tojson|safe }}",
    "{{ x|select('string')|list }}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ cycler() }}",
    "{{ lipsum.__globals__ }}",
    "{{ lipsum() }}",
    "{{ joiner('x') }}",
    "{{ namespace(a=1) }}",
    "{{ dict(a=1) }}",
    "{{ range(99999999) }}",
    "{{ self() }}",
    "{{ caller() }}",
    "{{ super() }}",
    "{{ x.format(y) }}",
    "{{ '{0.__class__}'.format(x) }}",
    "{{ 'a'.join(x) }}",
    "{{ x.items() }}",
    "{{ (x)() }}",
    "{{ x[0]() }}",
    "{{ '%s' % x }}",
    "{{ 'a' * 99999999 }}",
    "{{ 9 ** 9 ** 9 }}",
    "{{ 9 / 3 }}",
    "{{ 9 // 3 }}",
    "{{ x is defined }}",
    "{{ x is string }}",
    "{{ x is not none }}",
    "{{ x[1:2] }}",
    "{{ x[:] }}",
    "{{ x[1, 2] }}",
    "{{ x, y }}",
    "{{ (x, y) }}",
    "{{ () }}",
    "{{ [x] }}",
    "{{ {'a': x} }}",
    "{{ {x: 1} }}",
    "{{ x = 1 }}",
    "{{ x if }}",
    "{{ if }}",
    "{{ not }}",
    "{{ x.if() }}",
    "{{ loop.index }} {% for i in x %}{% endfor %}",
    "{% set x = 1 %}",
    "{%- if x %}a{% endif %}",
    "{% raw %}{{ x }}{% endraw %}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{% macro m() %}{% endmacro %}",
    "{% print(x) %}",
    "{{ x; y }}",
    "{{ x := 1 }}",
    "{{ `x` }}",
    "{{ $x }}",
    "{{ x @ y }}",
    "{{ x & y }}",
    "{{ lambda: 1 }}",
    "{{ yield }} {{ x y }}",
]


@pytest.mark.parametrize("text", D7_ATTACKS)
def test_d7_what_could_reach_python_or_loop_is_no_template(text: str) -> None:
    with pytest.raises(BadTemplate):
        compile_value(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ a", "never ends"),
        ("{{ a } }", "nothing opened"),
        ("{{ a)", "nothing opened"),
        ("{{ (a }}", "nothing opened"),
        ("{{ 'a }}", "unexpected character"),
        ("{{ }}", "not part of the template language"),
        ("{# a", "a comment that never ends"),
        ("{{ a.b. }}", "expected a name"),
        ("{{ a.'b' }}", "expected a name"),
        ("{{ a[] }}", "not part of the template language"),
        ("{{ a[true] }}", "a key must be text or an integer"),
        ("{{ a[1.5] }}", "a key must be text or an integer"),
        ("{{ a|nosuch }}", "no filter 'nosuch'"),
        ("{{ a|'upper' }}", "no filter"),
        ("{{ a|upper.lower }}", "not part of the template language"),
        ("{{ a|upper(1) }}", "takes at most 0 arguments"),
        ("{{ a|replace }}", "needs old and new"),
        ("{{ a|replace(new='x') }}", "needs old"),
        ("{{ a|replace('x', old='y') }}", "has `old` twice"),
        ("{{ a|default('x', strict=true) }}", "no argument 'strict'"),
        ("{{ a|default(*b) }}", "not part of the template language"),
        ("{{ '\\x' }}", "escape"),
        ("{{ 1e999 }}", "a number that JSON does not keep"),
        ("{{ 9007199254740992 }}", "a number that JSON does not keep"),
        ("{{ " + "9" * 5000 + " }}", "a number of more than 400 characters"),
        ("{{ ١ }}", "expected a name"),
        ("{{ {1: 2} }}", "a key must be text"),
        ("{{ [a] }}", "hold constants only"),
    ],
)
def test_a_faulty_template_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(BadTemplate, match=message) as caught:
        compile_value(text)
    assert "at character" in caught.value.message


def test_the_place_of_a_fault_and_the_word_that_was_meant() -> None:
    with pytest.raises(BadTemplate) as caught:
        compile_value({"a": ["x", {"b": "one {{ name|uper }} two"}]})
    assert caught.value.path == ("a", 1, "b")
    assert caught.value.message == "there is no filter 'uper' at character 13 of 'one {{ name|uper }} two'"
    assert caught.value.hint == "did you mean `upper`?"


def test_a_fault_shows_nothing_that_a_terminal_obeys() -> None:
    with pytest.raises(BadTemplate) as caught:
        compile_value("{{ a \x1b[2J\u202e }}")
    assert caught.value.message.isascii()
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "{{ " + "(" * 40 + "1" + ")" * 40 + " }}",
        "{{ " + "not " * 40 + "a }}",
        "{{ " + "-" * 40 + "a }}",
        "{{ " + "[" * 40 + "]" * 40 + " }}",
        "{{ " + "a[" * 40 + "0" + "]" * 40 + " }}",
        "{{ " + "a if b else " * 40 + "c }}",
        "{{ " + "a|default(" * 40 + "1" + ")" * 40 + " }}",
        "{{ a" + ".b" * 500 + " }}",
        "{{ a" + " + a" * 500 + " }}",
        "{{ a" + "|upper" * 500 + " }}",
        "{{ a" + " ~ 'x'" * 500 + " }}",
        "{{ (" * 100_000,
        "{{ " + "1_" * 200_000 + " }}",
        "{{ " + "1" * 500_000 + " }}",
        "{{ 0b" + "1" * 500_000 + " }}",
        "{{ 1e" + "1" * 500_000 + " }}",
        "{{ '" + "\\'" * 200_000,
        "{{" * 200_000,
    ],
    ids=lambda text: text[:14],
)
def test_deep_or_endless_expressions_are_refused_at_once(text: str) -> None:
    begun = time.perf_counter()
    with pytest.raises(BadTemplate):
        compile_value(text)
    assert time.perf_counter() - begun < 1


@pytest.mark.parametrize("operator", ["+", "~", "-", "and", "or", "=="])
def test_the_longest_chain_that_is_a_template_can_be_rendered(operator: str) -> None:
    template = compile_value("{{ a" + f" {operator} a" * 199 + " }}")
    assert template.render({"a": 1}) is not None


def test_the_longest_path_that_is_a_template_can_be_rendered() -> None:
    value: Json = "end"
    for _ in range(199):
        value = {"b": value}
    assert compile_value("{{ a" + ".b" * 199 + " }}").render({"a": value}) == "end"


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("no template, {not} {one}", set()),
        ("{# {{ a }} #}", set()),
        ("{{ 'a' }}", set()),
        ("{{ a }}", {("a",)}),
        ("{{ a.b[0]['c'] }}", {("a", "b", 0, "c")}),
        ("{{ a.0.b }}", {("a", 0, "b")}),
        ("{{ a[b.c].d }}", {("a",), ("b", "c")}),
        ("{{ a.b[-1] }}", {("a", "b", -1)}),
        ("{{ (a.b).c }}", {("a", "b", "c")}),
        ("{{ (a|first).c }}", {("a",)}),
        ("{{ a + b - c ~ d }}", {("a",), ("b",), ("c",), ("d",)}),
        ("{{ not a and b or c in d }}", {("a",), ("b",), ("c",), ("d",)}),
        ("{{ a if b else c|default(d, boolean=e) }}", {("a",), ("b",), ("c",), ("d",), ("e",)}),
        ({"{{ key }}": ["{{ a }}", {"x": "{{ b }}-{{ c }}"}, 1, None]}, {("a",), ("b",), ("c",)}),
    ],
)
def test_names_are_what_a_value_uses(value: Json, names: set[tuple[str | int, ...]]) -> None:
    assert set(compile_value(value).names) == names


def test_a_name_tells_where_it_is_used_first() -> None:
    template = compile_value({"a": ["x", "{{ one.x }}{{ two }}"], "b": "{{ two }}"})
    assert template.names == {("one", "x"): ("a", 1), ("two",): ("a", 1)}
