from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.calls import ConcreteUrl
from capsule.canon import Json
from capsule.policy.addresses import is_public
from capsule.policy.urls import MAX_URL, UrlConstraint, UrlIndex, parse_url

CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "ssrf.jsonl"


def parse(text: str) -> ConcreteUrl:
    return parse_url(text, argument="url")


def allows(url: str, **constraint: Json) -> bool:
    return UrlConstraint.read(constraint, deny=False).mismatch(parse(url)) is None


def denies(url: str, **constraint: Json) -> bool:
    return UrlConstraint.read(constraint, deny=True).mismatch(parse(url)) is None


def test_a_url_is_parsed_into_what_is_decided_and_fetched() -> None:
    assert parse("HTTP://Good.COM.:8080/a/../b%2fc?q=1#top") == ConcreteUrl(
        argument="url",
        text="HTTP://Good.COM.:8080/a/../b%2fc?q=1#top",
        href="http://good.com:8080/b%2fc?q=1",
        scheme="http",
        host="good.com",
        port=8080,
        path="/b%2Fc",
        query="q=1",
    )


@pytest.mark.parametrize(
    ("text", "host", "port", "path"),
    [
        ("https://example.com", "example.com", 443, "/"),
        ("http://example.com\\@evil.com/", "example.com", 80, "/@evil.com/"),
        ("http:example.com", "example.com", 80, "/"),
        ("  https://example.com/ ", "example.com", 443, "/"),
        ("https://bücher.example/ä", "xn--bcher-kva.example", 443, "/%C3%A4"),
        ("http://[2A00::1]/", "2a00::1", 80, "/"),
        ("http://0x08.8.2056/", "8.8.8.8", 80, "/"),
        ("ws://example.com/x", "example.com", 80, "/x"),
        ("https://example.com:443/%2e%2e/x", "example.com", 443, "/x"),
    ],
)
def test_what_a_browser_would_see(text: str, host: str, port: int, path: str) -> None:
    url = parse(text)
    assert (url.problem, url.host, url.port, url.path, url.public) == (None, host, port, path, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a URL"),
        ("example.com", "not a URL"),
        ("http://", "not a URL"),
        ("http://a b/", "not a URL"),
        ("http://exa%00mple.com/", "not a URL"),
        ("http://a:99999/", "not a URL"),
        ("http://[fe80::1%25eth0]/", "not a URL"),
        ("http://good.com@127.0.0.1/", "user name"),
        ("http://user:pass@good.com/", "user name"),
        ("gopher://a/", "not fetched"),
        ("file:///etc/passwd", "not fetched"),
        ("javascript:alert(1)", "not fetched"),
        ("mailto:a@b", "not fetched"),
        ("http://good.com/\r\nX: y", "U+000D"),
        ("http://good\t.com/", "U+0009"),
        ("http://good.com/\0", "U+0000"),
        ("http://good.com/\x7f", "U+007F"),
        ("http://\ud800/", "surrogate"),
        ("http://a../", "host"),
        ("http://./", "host"),
        ("http://..a/", "host"),
        ("http://*.good.com/", "host"),
        ("http://{a}/", "host"),
        ("http://a/" + "x" * MAX_URL, "characters"),
    ],
)
def test_what_cannot_be_fetched_has_a_problem_and_is_under_no_constraint(text: str, said: str) -> None:
    problem = parse(text).problem
    assert problem is not None
    assert said in problem
    assert not allows(text, pattern="**")


LOCAL = [
    *("http://127.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/"),
    *("http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/"),
    *("http://[64:ff9b::7f00:1]/", "http://[64:ff9b:1::1]/", "http://[2002:7f00:1::]/", "http://[fd00:ec2::254]/"),
    *("http://169.254.169.254/", "http://100.100.100.200/", "http://0.0.0.0/", "http://127.0.0.1./"),
    *("http://①②⑦.⓪.⓪.①/", "http://%31%32%37.0.0.1/", "http://localhost/", "http://LOCALHOST./", "http://a.localhost/"),
    *("http://224.0.0.1/", "http://[ff02::1]/", "http://192.168.0.1/"),
]


@pytest.mark.parametrize("text", LOCAL)
def test_an_address_that_is_not_public_needs_a_rule_that_names_it(text: str) -> None:
    host = parse(text).host
    assert not parse(text).public
    assert not allows(text, pattern="**")
    assert not allows(text, domains=[host])
    assert allows(text, domains=[host], private_networks="allow")
    assert denies(text, pattern="**")


def test_private_networks_is_for_hosts_named_without_wildcards() -> None:
    assert allows("http://10.0.0.1:8080/x", pattern="http://10.0.0.1:8080/**", private_networks="allow")
    some = UrlConstraint.read({"domains": ["*.localhost", "10.0.0.1"], "private_networks": "allow"}, deny=False)
    assert some.mismatch(parse("http://10.0.0.1/")) is None
    assert some.mismatch(parse("http://a.localhost/")) is not None
    assert some.names_private(parse("http://10.0.0.1/"))
    assert not some.names_private(parse("http://a.localhost/"))


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"schemes": ["https"]},
        {"pattern": "**", "private_networks": "allow"},
        {"domains": ["*.a.com"], "private_networks": "allow"},
        {"domains": ["a/b"]},
        {"domains": ["a.com"], "schemes": ["gopher"]},
        {"pattern": "a.com"},
    ],
)
def test_a_constraint_that_could_not_mean_what_it_says_is_refused(raw: dict[str, Json]) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        UrlConstraint.read(raw, deny=False)


def test_only_an_allow_can_open_a_private_network() -> None:
    with pytest.raises(ValueError, match="private_networks"):
        UrlConstraint.read({"domains": ["a.com"], "private_networks": "allow"}, deny=True)


@pytest.mark.parametrize(
    ("url", "constraint", "allow", "deny"),
    [
        ("https://a.com/", {"domains": ["a.com"]}, True, True),
        ("https://x.a.com/", {"domains": ["a.com"]}, False, True),
        ("https://a.com./", {"domains": ["a.com"]}, True, True),
        ("https://a.com.evil.net/", {"domains": ["a.com"]}, False, False),
        ("https://evila.com/", {"domains": ["a.com", "*.a.com"]}, False, False),
        ("https://A.com/", {"domains": ["a.COM"]}, True, True),
        ("https://xn--bcher-kva.example/", {"domains": ["bücher.example"]}, True, True),
        ("https://a.com:8443/", {"domains": ["a.com"]}, False, True),
        ("https://a.com:8443/", {"domains": ["a.com"], "ports": [8443]}, True, True),
        ("https://a.com/", {"domains": ["a.com"], "ports": [8443]}, False, False),
        ("https://a.com/", {"domains": ["a.com"], "ports": []}, False, False),
        ("https://a.com:8443/x", {"pattern": "https://a.com:8443/**"}, True, True),
        ("https://a.com:8444/x", {"pattern": "https://a.com:8443/**"}, False, False),
        ("https://a.com:8443/x", {"pattern": "https://a.com/**"}, False, True),
        ("ws://a.com/", {"domains": ["a.com"]}, False, True),
        ("ws://a.com/", {"domains": ["a.com"], "schemes": ["ws"]}, True, True),
        ("http://a.com/", {"domains": ["a.com"], "schemes": ["HTTPS"]}, False, False),
        ("http://a.com/", {"domains": ["a.com"], "schemes": []}, False, False),
        ("http://a.com/", {"domains": []}, False, False),
        ("http://a.com/", {"patterns": []}, False, False),
        ("http://a.com/", {"domains": [], "pattern": "**"}, False, False),
        ("http://a.com/x", {"domains": ["a.com"], "pattern": "http://b.com/**"}, False, False),
        ("http://a.com/x", {"domains": ["a.com"], "pattern": "**"}, True, True),
        ("http://a.com/x?q=1", {"pattern": "http://a.com/x"}, True, True),
        ("http://a.com/x?q=1", {"pattern": "http://a.com/x", "query": {}}, False, True),
        ("http://a.com/x?q=1", {"pattern": "http://a.com/x", "query": {"q": "1"}}, True, True),
        ("http://a.com/x?q=2", {"pattern": "http://a.com/x", "query": {"q": ["1"]}}, False, False),
    ],
)
def test_what_a_constraint_covers(url: str, constraint: dict[str, Json], *, allow: bool, deny: bool) -> None:
    assert allows(url, **constraint) is allow
    assert denies(url, **constraint) is deny


def test_a_deny_may_leave_out_every_host() -> None:
    assert denies("http://a.com:99/", ports=[99])
    assert denies("http://a.com:99/")


def test_a_mismatch_says_what_does_not_fit() -> None:
    constraint = UrlConstraint.read({"domains": ["a.com"]}, deny=False)
    said = [constraint.mismatch(parse(url)) for url in ("ws://a.com/", "http://b.com/", "http://a.com:81/")]
    assert said == [
        "the scheme ws is not one of http, https",
        "the host b.com is not one of the domains",
        "the port 81 is not one of 80, 443",
    ]


HOSTS = st.sampled_from(["a.com", "x.a.com", "y.x.a.com", "b.org", "10.0.0.1", "localhost", "[::1]"])
CONSTRAINTS = st.fixed_dictionaries(
    {},
    optional={
        "domains": st.lists(
            st.sampled_from(["a.com", "*.a.com", "x.a.com", "b.org", "10.0.0.1", "localhost"]), max_size=3
        ),
        "patterns": st.lists(
            st.sampled_from(
                [
                    *("**", "http://a.com/**", "https://*.a.com/x/*", "http://x.a.com:81/**/y", "http://b.org/x"),
                    *("http://[::1]/**", "http://localhost/{x,y}", "http://a.com/x//y", "https://a.com/%41"),
                ]
            ),
            max_size=3,
        ),
        "schemes": st.lists(st.sampled_from(["http", "https"]), max_size=2),
        "ports": st.lists(st.sampled_from([80, 81, 443]), max_size=2),
        "query": st.sampled_from([{}, {"q": "1"}]),
        "private_networks": st.just("allow"),
    },
)
URLS = st.builds(
    "{}://{}{}{}{}".format,
    st.sampled_from(["http", "https", "ws"]),
    HOSTS,
    st.sampled_from(["", ":81", "."]),
    st.sampled_from(["", "/", "/x", "/x/y", "/x//y", "/x/z/y", "/%41", "/A"]),
    st.sampled_from(["", "?q=1", "?q=2"]),
)


@given(raws=st.lists(CONSTRAINTS, max_size=8), text=URLS, deny=st.booleans())
def test_the_index_equals_asking_every_constraint(raws: list[dict[str, Json]], text: str, *, deny: bool) -> None:
    constraints = []
    for raw in raws:
        try:
            constraints.append(UrlConstraint.read(raw, deny=deny))
        except ValueError:
            continue
    url = parse(text)
    expected = {number for number, constraint in enumerate(constraints) if constraint.mismatch(url) is None}
    assert (
        UrlIndex.build((constraint, number) for number, constraint in enumerate(constraints)).matches(url) == expected
    )


def test_thousands_of_constraints_are_told_apart() -> None:
    index = UrlIndex.build(
        (UrlConstraint.read({"pattern": f"https://h{number % 50}.com/repo{number}/**"}, deny=False), number)
        for number in range(2000)
    )
    assert index.matches(parse("https://h17.com/repo1017/x")) == {1017}
    assert index.matches(parse("https://h18.com/repo1017/x")) == set()


def needs_the_net(row: dict[str, Any]) -> bool:
    """Whether the verdict lies in an answer of a name server or in a redirect, which no decision knows."""
    answers = (row.get("dns") or {}).get(parse(row["url"]).host, ())
    return bool(row.get("redirect")) or not all(map(is_public, answers))


def test_the_corpus_of_forged_addresses() -> None:
    """Each row is asked with every URL allowed, and with only the names allowed that its name server knows."""
    if not CORPUS.exists():
        pytest.skip(f"the corpus of forged addresses is not here: {CORPUS}")
    with CORPUS.open() as lines:
        rows = [json.loads(line) for line in lines]
    refused = {True: 0, False: 0}
    for row in rows:
        names = list(row.get("dns") or {})
        allowed = allows(row["url"], pattern="**") and (not names or allows(row["url"], domains=names))
        if row["deny"] is False and not names:
            assert allowed, row
        if row["deny"] is True and not needs_the_net(row):
            assert not allowed, row
            refused[True] += 1
        refused[False] += row["deny"] is False and not allows(row["url"], pattern="**")
    assert refused[True] > 250
    assert refused[False] == 0
