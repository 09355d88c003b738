from __future__ import annotations

import pytest

from capsule.policy.url_patterns import UrlPattern
from capsule.policy.urls import UrlConstraint, parse_url


def holds(pattern: str, url: str, *, deny: bool = False) -> bool:
    constraint = UrlConstraint.read({"pattern": pattern, "ports": [80, 443, 8080]}, deny=deny)
    return constraint.mismatch(parse_url(url, argument="url")) is None


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("**", ["http://a/", "https://b.c/x?y"], []),
        ("https://a.com/**", ["https://a.com/", "https://a.com/x/y"], ["http://a.com/", "https://b.com/"]),
        ("HTTPS://A.COM/**", ["https://a.com/x"], []),
        ("https://a.com/", ["https://a.com", "https://a.com/?q"], ["https://a.com/x"]),
        ("https://a.com/x/**", ["https://a.com/x/", "https://a.com/x/y/z"], ["https://a.com/x", "https://a.com/xy"]),
        ("https://a.com/x/*", ["https://a.com/x/y", "https://a.com/x/"], ["https://a.com/x/y/z", "https://a.com/x/y/"]),
        ("https://a.com/**/z", ["https://a.com/z", "https://a.com/x/y/z"], ["https://a.com/z/"]),
        ("https://a.com/{x,y}?.json", ["https://a.com/x1.json"], ["https://a.com/z1.json", "https://a.com/x.json"]),
        ("https://*.a.com/**", ["https://x.a.com/"], ["https://a.com/", "https://xa.com/"]),
        ("http://a.com:8080/**", ["http://a.com:8080/x"], ["http://a.com/x"]),
        ("http://a.com:80/**", ["http://a.com/x", "http://a.com:80/x"], ["http://a.com:8080/x"]),
        ("http://[::FFFF:8.8.8.8]/**", ["http://[::ffff:808:808]/"], ["http://8.8.8.8/"]),
        ("https://a.com/é b", ["https://a.com/é b", "https://a.com/%C3%A9%20b", "https://a.com/%c3%a9%20b"], []),
        ("https://a.com/a%2fb", ["https://a.com/a%2Fb", "https://a.com/a%2fb"], ["https://a.com/a/b"]),
        ("https://a.com/a/b", ["https://a.com/x/../a/b", "https://a.com/a/%2e/b"], ["https://a.com/a%2fb"]),
        ("https://a.com/\\{x\\}", ["https://a.com/{x}"], []),
        ("https://a.com/.x/*", ["https://a.com/.x/.y"], []),
        ("https://a.com/*", ["https://a.com/.env"], ["https://a.com//x"]),
        ("https://a.com/[ab]", ["https://a.com/a"], ["https://a.com/c"]),
    ],
)
def test_what_a_pattern_allows(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [url for url in yes if not holds(pattern, url)] == []
    assert [url for url in no if holds(pattern, url)] == []


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("https://a.com", ["https://a.com/", "https://x.a.com/y"], ["https://b.com/"]),
        (
            "https://a.com/admin/**",
            ["https://a.com/%61dmin/x", "https://a.com//admin/x", "https://x.a.com/admin/x"],
            [],
        ),
        ("https://a.com/x%2fy", ["https://a.com/x%2fy"], ["https://a.com/x/y"]),
    ],
)
def test_what_a_pattern_denies(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [url for url in yes if not holds(pattern, url, deny=True)] == []
    assert [url for url in no if holds(pattern, url, deny=True)] == []


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", "scheme://host/path"),
        ("a.com/**", "scheme://host/path"),
        ("*://a.com/", "scheme://host/path"),
        ("gopher://a.com/", "scheme://host/path"),
        ("https://a.com", "names no path"),
        ("https://u@a.com/", "user name"),
        ("https://a.com:x/", "not a port"),
        ("https://a.com:0/", "not a port"),
        ("https://a.com:65536/", "not a port"),
        ("https://*/", "not a host"),
        ("https://{a,b}.com/", "not a host"),
        ("https:///x", "not a host"),
        ("https://a.com/x?y=*", "query"),
        ("https://a.com/x#y", "never sent"),
        ("https://a.com/../x", "'..'"),
        ("https://a.com/[é]", "ASCII"),
        ("https://a.com/[x", "not closed"),
    ],
)
def test_a_bad_pattern_is_refused_with_what_is_wrong(pattern: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        UrlPattern.parse(pattern, deny=False)
    assert said in str(caught.value)
