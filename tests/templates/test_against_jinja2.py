"""The language is Jinja2's: whatever both can read, both render the same, and what we read Jinja2 reads too."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from jinja2 import StrictUndefined, TemplateSyntaxError, Undefined
from jinja2.exceptions import SecurityError, UndefinedError
from jinja2.sandbox import SandboxedEnvironment

from capsule.canon import Json
from capsule.errors import PlanError
from capsule.templates import BadTemplate, compile_value

SCOPE: dict[str, Json] = {
    "a": 1,
    "b": True,
    "n": None,
    "s": "one, Two",
    "e": "",
    "half": 0.5,
    "l": [3, "x", None, [1, 2]],
    "o": {"items": 5, "k": {"z": [1, {"q": "deep"}]}},
    "t": "{{ a }}",
}
ERROR, NO_TEMPLATE = "cannot be rendered", "is no template"


class ItemFirst(SandboxedEnvironment):
    """Where plans differ: `x.items` is the item, because they hold data and not objects, and no key is undefined."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(argument, Undefined):
            raise UndefinedError
        try:
            return obj[argument]
        except (TypeError, LookupError):
            return self.undefined(obj=obj, name=argument)


ORACLE = ItemFirst(undefined=StrictUndefined, keep_trailing_newline=True, optimized=False)
ORACLE.filters["tojson"] = lambda value: json.dumps(value, sort_keys=True, ensure_ascii=False)
ORACLE.filters["from_json"] = json.loads


def ours(text: str) -> object:
    try:
        return compile_value(text).render(SCOPE)
    except BadTemplate:
        return NO_TEMPLATE
    except PlanError:
        return ERROR


def theirs(render: Callable[[], object]) -> object:
    try:
        return render()
    except TemplateSyntaxError:
        return NO_TEMPLATE
    except (UndefinedError, SecurityError, TypeError, ValueError, AttributeError, LookupError):
        return ERROR


def test_the_oracle_agrees_on_what_must_be_so() -> None:
    assert ours("{{ o.items ~ l[1] }}") == ORACLE.from_string("{{ o.items ~ l[1] }}").render(SCOPE) == "5x"
    assert theirs(lambda: ORACLE.from_string("{{ nope }}").render()) is ERROR


_ATOMS = (
    "a ; b ; n ; s ; e ; half ; l ; o ; t ; nope ; 1 ; 0 ; 2.5 ; 'x' ; \"q\" ; true ; None ; [] ; "
    "[1, 'x'] ; {'q': 1} ; 'a' 'b' ; 0x1f ; l[0] ; l.3 ; o.k.z[1].q ; o['items'] ; o.nope ; s[0] ; -a ; "
    "+a"
)
ATOMS = st.sampled_from(_ATOMS.split(" ; "))


def _extended(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    operators = ["+", "-", "~", "and", "or", "==", "!=", "<", "<=", ">", ">="]
    return st.one_of(
        st.builds("{0[0]} {1} {0[1]}".format, two, st.sampled_from(operators)),
        st.builds("{} {} {}".format, st.sampled_from(["a", "'x'", "n", "s"]), st.sampled_from(["in", "not in"]), inner),
        st.builds("({})".format, inner),
        st.builds("(not {})".format, inner),
        st.builds("-{}".format, inner),
        st.builds("{0[0]} if {0[1]} else {1}".format, two, inner),
        st.builds("{} < {} != {}".format, inner, inner, inner),
        st.builds("{}|{}".format, inner, FILTERED),
        st.builds("({})|default({})".format, inner, inner),
        st.builds("({})[{}]".format, inner, st.sampled_from(["0", "-1", "'k'", "a", "a - 1", "s", "nope", "l[0]"])),
        st.builds("({}).{}".format, inner, st.sampled_from(["items", "k", "z", "q", "0", "3"])),
    )


_FILTERED = (
    "length ; lower ; upper ; trim ; trim('x') ; first ; last ; string ; int ; int(7) ; int(default=2) ; join ; "
    "join(', ') ; join(d='-') ; default ; default('d', true) ; default(boolean=b, default_value=a) ; tojson ; "
    "replace('x', 'yy') ; replace(old='o', new='', count=1) ; tojson|from_json ; string|urlencode"
)
FILTERED = st.sampled_from(_FILTERED.split(" ; "))
EXPRESSIONS = st.recursive(ATOMS, _extended, max_leaves=12)


@given(EXPRESSIONS)
@example("a + 1 ~ 2")
@example("not a == 2 and b")
@example("a and not b or not n")
@example("-a|string")
@example("1 - -1 - +1")
@example("a if b else n if e else s")
@example("a in l == true")
def test_every_expression_of_the_language_means_what_it_means_in_jinja2(expression: str) -> None:
    expected = theirs(lambda: _value(expression))
    found = ours("{{ " + expression + " }}")
    assert (found, type(found)) == (expected, type(expected))


def _value(expression: str) -> object:
    """Strict too where an `if` has no `else`, which Jinja2 lets pass as nothing."""
    value = ORACLE.compile_expression(expression, undefined_to_none=False)(**SCOPE)
    if isinstance(value, Undefined):
        raise UndefinedError
    return value


_PIECES = (
    "{{ ¦ }}¦{{- ¦ -}}¦{# ¦ #}¦{#- ¦ -#}¦ text ¦\n¦ ¦a¦s¦'x'¦'}}'¦{¦}¦[¦]¦(¦)¦|¦upper¦.¦k¦o¦0¦1¦~¦+¦-¦if¦else¦"
    "not¦in¦,¦:¦==¦=¦é"
)
PIECES = st.sampled_from(_PIECES.split("¦"))
TEXTS = st.lists(PIECES, max_size=14).map("".join) | st.lists(EXPRESSIONS | PIECES, max_size=6).map("{{ a }}".join)


@given(TEXTS)
@example("{{ a }}\n")
@example("{{ '}}' }}{{ '{{' }} {")
@example("a {{- a -}} \n {#- c -#} b")
@example("{{ {'a': {'b': 1}}.a.b }}}")
def test_any_text_that_we_read_jinja2_reads_the_same(text: str) -> None:
    found = ours(text)
    expected = theirs(lambda: ORACLE.from_string(text).render(SCOPE))
    if found in (ERROR, NO_TEMPLATE):
        assert found == NO_TEMPLATE or expected == ERROR
    else:
        assert found == expected or compile_value(text).is_expression
