from __future__ import annotations

import pytest
from ada_url import URL
from hypothesis import given
from hypothesis import strategies as st

from capsule.policy.hosts import HostPattern, HostSet, normal_host, parents


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("example.com", "example.com"),
        ("Example.COM.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("ｅｘａｍｐｌｅ.com", "example.com"),
        ("127.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("[::1]", "::1"),
        ("::1", "::1"),
        ("2A00:0::1", "2a00::1"),
        ("_dmarc.a-b.example", "_dmarc.a-b.example"),
    ],
)
def test_a_host_has_one_form(text: str, host: str) -> None:
    assert normal_host(text) == host


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", "a..b", ".a", "a/b", "a b", "a\tb", "a@b", "a:80", "[::1]:80", "*", "*.a", "a.*", "a%2eb"),
        *("1.2.3.256", "a\0b", "a" * 300, "a#b", "a?b", "a\\b", "{a,b}.com", "xn--a-ecp.ru\x7f"),
    ],
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host"):
        normal_host(text)


@given(st.text(alphabet="abxn-_.0129fFé", min_size=1, max_size=12))
def test_a_host_is_what_a_parsed_url_has(text: str) -> None:
    try:
        host = normal_host(text)
    except ValueError:
        return
    assert URL(f"http://{text}/").hostname.removesuffix(".") == host


@pytest.mark.parametrize(
    ("pattern", "host", "allow", "deny"),
    [
        ("example.com", "example.com", True, True),
        ("example.com", "a.example.com", False, True),
        ("example.com", "evilexample.com", False, False),
        ("example.com", "example.com.evil.net", False, False),
        ("*.example.com", "a.example.com", True, True),
        ("*.example.com", "a.b.example.com", True, True),
        ("*.example.com", "example.com", False, False),
        ("*.example.com", "evilexample.com", False, False),
        ("*.Example.com.", "a.example.com", True, True),
        ("10.0.0.1", "10.0.0.1", True, True),
    ],
)
def test_a_host_pattern(pattern: str, host: str, *, allow: bool, deny: bool) -> None:
    parsed = HostPattern.parse(pattern)
    assert parsed.holds(host, as_deny=False) is allow
    assert parsed.holds(host, as_deny=True) is deny
    assert HostSet.of([parsed]).holds(host, as_deny=False) is allow
    assert HostSet.of([parsed]).holds(host, as_deny=True) is deny


@pytest.mark.parametrize("text", ["*", "*.", "*.*.com", "a.*.com", "*.10.0.0.1", "*.1", "*.[::1]", "*example.com"])
def test_a_host_pattern_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"host|address"):
        HostPattern.parse(text)


def test_an_address_lies_below_nothing() -> None:
    assert list(parents("a.b.c")) == ["b.c", "c"]
    assert list(parents("::ffff:1.2.3.4")) == []
