from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from capsule.canon import MAX_DEPTH, MAX_INTEGER, Json, NotCanonical, canonical, digest, digest_of

# Around the places where the order by code point and by UTF-16 unit, and the escapes, change.
TEXT = st.text() | st.text(alphabet=' a"\\/\x00\x08\t\n\x0c\r\x1f\x7f\x80\u2028\ud7ff\ue000\uffff\U00010000\U0010ffff')
INTEGERS = st.integers(-MAX_INTEGER, MAX_INTEGER)
FLOATS = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(10**22), 10**22).map(float)
    | st.builds(lambda digits, power: digits * 10.0**power, INTEGERS, st.integers(-30, 30))
)
SCALARS = st.none() | st.booleans() | INTEGERS | FLOATS | TEXT
VALUES = st.recursive(SCALARS, lambda part: st.lists(part) | st.dictionaries(TEXT, part), max_leaves=30)


@given(VALUES)
def test_equal_to_the_reference_package(value: Json) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(FLOATS)
@example(5e-324)
@example(1.7976931348623157e308)
@example(-0.0)
@example(1e21)
@example(999999999999999900000.0)
@example(1e-6)
@example(1e-7)
@example(9007199254740994.0)
@example(123456789012345680000.0)
def test_numbers_are_written_as_ecmascript_does(number: float) -> None:
    assert canonical(number) == rfc8785.dumps(number)
    assert float(canonical(number)) == number


def number(digits: str) -> int | float:
    """As ECMAScript reads: a float that is whole and large was written without an exponent."""
    return int(digits) if abs(int(digits)) <= MAX_INTEGER else float(digits)


@given(VALUES)
def test_read_back_it_is_the_same_value_with_the_same_form(value: Json) -> None:
    data = canonical(value)
    read = json.loads(data, parse_int=number)
    assert read == value
    assert canonical(read) == data


@pytest.mark.parametrize(
    ("bits", "written"),
    [
        # RFC 8785, appendix B
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers_of_the_standard(bits: str, written: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(number).decode() == written


def test_keys_are_ordered_by_utf16_units() -> None:
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\x80", "\xf6"]
    assert list(json.loads(canonical(dict.fromkeys(keys)))) == [
        "\r",
        "1",
        "\x80",
        "\xf6",
        "\u20ac",
        "\U0001f600",
        "\ufb33",
    ]


class Word(StrEnum):
    YES = "yes"


class Ten(int):
    def __repr__(self) -> str:
        return "ten"


class Half(float):
    def __repr__(self) -> str:
        return "half"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (("a", ("b",)), ["a", ["b"]]),
        (MappingProxyType({"b": 1, "a": MappingProxyType({})}), {"a": {}, "b": 1}),
        ({"a": MappingProxyType({"x": (1.0, 2)})}, {"a": {"x": [1, 2]}}),
        (range(3), [0, 1, 2]),
        ([Word.YES, {Word.YES: Word.YES}], ["yes", {"yes": "yes"}]),
        ([Ten(10), Half(0.5)], [10, 0.5]),
    ],
)
def test_any_mapping_and_sequence(value: Json, plain: Json) -> None:
    assert canonical(value) == canonical(plain)


def deep(levels: int) -> Json:
    value: Json = []
    for _ in range(levels - 1):
        value = [value]
    return value


def cycle() -> Json:
    value: list[Json] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "$: nan has no JSON form"),
        ({"a": [0, float("-inf")]}, "$['a'][1]: -inf has no JSON form"),
        ([MAX_INTEGER + 1], "$[0]: an integer beyond ±(2^53-1) is not kept exactly; give it as text"),
        (-MAX_INTEGER - 1, "$: an integer beyond ±(2^53-1) is not kept exactly; give it as text"),
        ([10**5000], "$[0]: an integer beyond ±(2^53-1) is not kept exactly; give it as text"),
        (["x", "\ud83d\ude00"], "$[1]: half of a surrogate pair (U+D83D) is not text"),
        ({"\udfff": 1}, "$: half of a surrogate pair (U+DFFF) is not text"),
        ({"a": {"b": {1: 2}}}, "$['a']['b']: a key must be text, found int"),
        ({None: 2}, "$: a key must be text, found NoneType"),
        ({True: 2, "a": 1}, "$: a key must be text, found bool"),
        ([b"bytes"], "$[0]: bytes is not a JSON value"),
        ({"a": {1, 2}}, "$['a']: set is not a JSON value"),
        ({"\x1b[31m": object()}, "$['\\x1b[31m']: object is not a JSON value"),
    ],
)
def test_what_has_no_canonical_form(value: Json, message: str) -> None:
    with pytest.raises(NotCanonical) as refused:
        canonical(value)
    assert str(refused.value) == message


@pytest.mark.parametrize("value", [deep(MAX_DEPTH + 1), [1.0, deep(MAX_DEPTH)], deep(100_000), cycle()])
def test_too_deep(value: Json) -> None:
    with pytest.raises(NotCanonical, match=f"nested deeper than {MAX_DEPTH} levels"):
        canonical(value)


@pytest.mark.parametrize("leaf", [1, 1.0])
def test_as_deep_as_allowed(leaf: Json) -> None:
    value: Json = leaf
    for _ in range(MAX_DEPTH):
        value = [value]
    assert canonical(value) == b"[" * MAX_DEPTH + b"1" + b"]" * MAX_DEPTH


def test_a_path_in_a_message_is_short() -> None:
    value: Json = float("nan")
    for _ in range(5):
        value = {"k" * 1000: value}
    with pytest.raises(NotCanonical) as refused:
        canonical(value)
    assert len(str(refused.value)) < 500


@given(VALUES)
def test_digests(value: Json) -> None:
    assert digest_of(value) == digest(canonical(value)) == hashlib.sha256(canonical(value)).hexdigest()


def test_the_digest_does_not_see_order_or_container() -> None:
    one: Mapping[str, Json] = {"a": (1, 2), "b": 1.0}
    other: Sequence[tuple[str, Json]] = [("b", 1), ("a", [1, 2])]
    assert digest_of(one) == digest_of(dict(other))
