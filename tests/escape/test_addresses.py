"""Classes C1, C5 and C6 as a decision sees them: hosts that look like another, and all spellings of what is not public.

Nothing here reaches the network: what would be let through is answered 2005, or decided on paper alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from gated import bodies, code, db_of, gate_of

from capsule.calls import ToolCall
from capsule.canon import Json
from capsule.errors import PlanError
from capsule.policy import Policy


def _policy(*constraints: str, action: str = "allow") -> Policy:
    rules = [f"  - {{action: {action}, tool: http.get, constraints: {{url: {text}}}}}\n" for text in constraints]
    return Policy.parse("rules:\n" + "".join(rules))


def _loaded(constraint: str) -> Policy | None:
    """None where the policy is refused."""
    try:
        return _policy(constraint)
    except PlanError:
        return None


def _get(url: str, **headers: str) -> ToolCall:
    sent: dict[str, Json] = dict(headers)
    return ToolCall(tool="http.get", args={"url": url, **({"headers": sent} if sent else {})})


NAMED = _policy('{domains: [good.com, "*.example.org", bücher.example]}')
ALL = _policy('{pattern: "**"}')
PRIVATE = _policy('{domains: [localhost, 127.0.0.1, "10.0.0.5"], private_networks: allow, ports: [80, 8080]}')

C1_ALLOWED = [
    "http://good.com",
    "https://good.com/",
    "https://GOOD.com/x?y#z",
    "https://good.com:443/",
    "http://good.com:80",
    "https://good.com./",
    "https://g%6fod.com/",
    "https://ＧＯＯＤ.com/",
    "https://a.example.org/",
    "https://a.b.example.org/",
    "https://bücher.example/",
    "https://xn--bcher-kva.example/",
    "https://BÜCHER.example/",
    "https:good.com/",
    "https:/good.com/",
    "https://good.com\\x",
    " https://good.com/ ",
    "https://good.com/@evil.net/",
    "https://good.com?evil.net",
    "https://good.com#@evil.net",
    "https://good.com/%2e%2e/x",
]

C1_DENIED = [
    "https://evil.net/",
    "https://good.com.evil.net/",
    "https://evilgood.com/",
    "https://good.comevil.net/",
    "https://good.co/",
    "https://good.com.br/",
    "https://notgood.com/",
    "https://www.good.com/",
    "https://good-com/",
    "https://good.com@evil.net/",
    "https://good.com:x@evil.net/",
    "https://good.com%40evil.net/",
    "https://evil.net/good.com",
    "https://evil.net?good.com",
    "https://evil.net#good.com",
    "https://evil.net\\@good.com/",
    "https://evil.net\\.good.com/",
    "https://user@good.com/",
    "https://user:pass@good.com/",
    "https://example.org/",
    "https://badexample.org/",
    "https://a.example.org.evil.net/",
    "https://.example.org/",
    "https://..example.org/",
    "https://a..example.org/",
    "https://good.com:8080/",
    "https://good.com:0/",
    "https://good.com:65536/",
    "https://good.com:-443/",
    "https://good.com:44 3/",
    "ftp://good.com/",
    "file:///etc/passwd",
    "file://good.com/etc/passwd",
    "javascript:alert(1)//good.com",
    "data:text/plain,good.com",
    "gopher://good.com/",
    "ws://good.com/",
    "//good.com/",
    "good.com",
    "/good.com",
    "https://",
    "https:///",
    "https://gооd.com/",  # Cyrillic letters
    "https://good。com.evil.net/",
    "https://good.com\u200b.evil.net/",
    "https://good.com\0.evil.net/",
    "https://good.com%00.evil.net/",
    "https://good.com%0d%0aHost:evil.net/",
    "https://go\nod.com/",
    "https://good.com\t@evil.net/",
    "https://[good.com]/",
    "https://good.com,evil.net/",
    "https://good.com;evil.net/",
    "https://good.com|evil.net/",
    "https://good.com evil.net/",
    "https://xn--evil\u00ad.com/",
    "https://" + "a" * 300 + ".example.org/",
    "https://good.com/" + "a" * 100_000,
    "",
    "https://*.example.org/",
    "https://*/",
    "https://good.com\udcff/",
]


@pytest.mark.parametrize("url", C1_ALLOWED)
def test_c1_what_a_browser_would_take_for_the_named_host(url: str) -> None:
    assert NAMED.decide(_get(url)).effect == "allow"


@pytest.mark.parametrize("url", C1_DENIED, ids=lambda url: ascii(url[:60]))
def test_c1_another_host_that_looks_like_it(workdir: Path, url: str) -> None:
    with gate_of(workdir, NAMED) as gate:
        result = gate.call(_get(url))
    assert code(result) in (1002, 2002)
    assert len(bodies(db_of(workdir), "refused")) == 1


def test_c1_a_deny_covers_what_lies_below_its_host_and_every_port_and_scheme() -> None:
    denying = Policy.parse(
        'rules: [{action: allow, tool: http.get, constraints: {url: {pattern: "**", ports: [80, 443, 8443]}}},'
        " {action: deny, tool: http.get, constraints: {url: {domains: [evil.net]}}}]"
    )
    for url in (
        "http://evil.net/",
        "https://EVIL.net./",
        "https://evil.net:8443/",
        "https://a.b.evil.net/",
        "https://ev%69l.net/",
        "https://good.com\\@evil.net/".replace("good.com\\@", ""),
    ):
        assert denying.decide(_get(url)).effect == "deny"
    for url in ("https://notevil.net/", "https://evil.net.good.com/", "https://good.com/evil.net"):
        assert denying.decide(_get(url)).effect == "allow"


NOT_PUBLIC = [
    "127.0.0.1", "127.1", "127.0.1", "127.255.255.254", "2130706433", "0x7f000001", "0x7f.1", "0x7F.0x0.0x0.0x1",
    "017700000001", "0177.0.0.1", "0177.0x0.0.1", "127.0.0.1.", "%31%32%37.0.0.1", "①②⑦.⓪.⓪.①", "127。0。0。1", "0",
    "0.0.0.0", "0x0", "0.1.2.3", "10.0.0.1", "10.1", "167772161", "172.16.0.1", "172.31.255.255", "192.168.0.1",
    "192.168.1", "0xc0a80001", "3232235521", "169.254.169.254", "169.254.43518", "2852039166", "0xA9FEA9FE",
    "0251.0376.0251.0376", "169.16689662", "100.64.0.1", "100.127.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1",
    "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "4294967295", "[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::]", "[::127.0.0.1]", "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:10.0.0.1]", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[2002:c0a8:101::1]",
    "[2001::1]", "[2001:0:0:0:0:0:80ff:fffe]", "[2001:db8::1]", "[2001:10::1]", "[3fff::1]", "[fc00::1]",
    "[fd00:ec2::254]", "[fdff::1]", "[fe80::1]", "[febf::1]", "[fec0::1]", "[ff02::1]", "[ff0e::1]", "[100::1]",
    "[5f00::1]", "[::a9fe:a9fe]", "[2001:db8::5efe:127.0.0.1]", "[2a00::5efe:10.0.0.1]",
    "[2a00::200:5efe:a9fe:a9fe]", "[4000::1]", "[1::1]",
]  # fmt: skip

PUBLIC = ["8.8.8.8", "1.1.1.1", "134744072", "0x08080808", "172.32.0.1", "100.128.0.1", "198.20.0.1", "[2a00:1450::1]"]


@pytest.mark.parametrize("host", NOT_PUBLIC)
def test_c5_no_spelling_of_what_is_not_public(workdir: Path, host: str) -> None:
    """Whatever the rule: any URL, or the very host by name."""
    for scheme in ("http", "https"):
        assert ALL.decide(_get(f"{scheme}://{host}/")).code in (1002, 2002)
    with gate_of(workdir, ALL) as gate:
        assert code(gate.call(_get(f"http://{host}:80/latest/meta-data"))) == 1002


@pytest.mark.parametrize("host", PUBLIC)
def test_c5_what_is_public_can_be_allowed(host: str) -> None:
    assert ALL.decide(_get(f"https://{host}/")).effect == "allow"


@pytest.mark.parametrize(
    "host", ["[fe80::1%25eth0]", "[::1%lo]", "[::1", "::1", "127.0.0.1:80:80", "256.0.0.1", "1.2.3.4.5"]
)
def test_c5_what_is_no_address_at_all(host: str) -> None:
    assert ALL.decide(_get(f"http://{host}/")).effect == "deny"


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://127.0.0.1/", True),
        ("http://0x7f.1/", True),
        ("http://127.0.0.1:8080/", True),
        ("http://10.0.0.5/", True),
        ("http://127.0.0.2/", False),
        ("http://10.0.0.6/", False),
        ("http://[::1]/", False),
        ("http://127.0.0.1:22/", False),
        ("http://169.254.169.254/", False),
        ("http://localhost.evil.net/", False),
    ],
)
def test_c5_private_networks_are_reached_by_name_alone(url: str, allowed: bool) -> None:
    assert (PRIVATE.decide(_get(url)).effect == "allow") is allowed


@pytest.mark.parametrize(
    "constraint", ['{pattern: "**", private_networks: allow}', '{domains: ["*.internal"], private_networks: allow}']
)
def test_c5_private_networks_with_a_wildcard_reach_none(constraint: str) -> None:
    policy = _loaded(constraint)
    for host in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]"):
        assert policy is None or policy.decide(_get(f"http://{host}/")).code == 1002


@pytest.mark.parametrize(
    "constraint",
    [
        "{domains: []}",
        "{patterns: []}",
        "{domains: [], patterns: []}",
        "{domains: [], private_networks: allow}",
        "{domains: [good.com], schemes: []}",
        "{domains: [good.com], ports: []}",
        "{domains: [good.com], patterns: []}",
        "{}",
        "{schemes: [https]}",
        "{ports: [443]}",
    ],
)
def test_c6_f5_an_empty_list_is_not_all(workdir: Path, constraint: str) -> None:
    """Refused at load, or it matches nothing."""
    policy = _loaded(constraint)
    for url in ("https://good.com/", "http://good.com", "https://evil.net/", "https://8.8.8.8/"):
        assert policy is None or policy.decide(_get(url)).effect == "deny"


def test_c6_an_empty_query_is_not_every_query() -> None:
    policy = _policy("{domains: [good.com], query: {}}")
    assert policy.decide(_get("https://good.com/")).effect == "allow"
    assert policy.decide(_get("https://good.com/?secret=1")).effect == "deny"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Host", "evil.net"),
        ("connection", "upgrade"),
        ("Content-Length", "0"),
        ("TRANSFER-ENCODING", "chunked"),
        ("te", "trailers"),
        ("Upgrade", "h2c"),
        ("Expect", "100-continue"),
        ("Proxy-Authorization", "Basic eDp5"),
        ("proxy-connection", "close"),
        ("x", "one\r\nHost: evil.net"),
        ("x", "one\ntwo"),
        ("x", "one\0"),
        ("x\r\nHost", "evil.net"),
        ("Host ", "evil.net"),
        ("x:", "evil.net"),
        ("", "evil.net"),
    ],
)
def test_c11_a_header_cannot_change_the_request_it_is_part_of(workdir: Path, name: str, value: str) -> None:
    policy = (
        "rules: [{action: allow, tool: http.get, constraints: {url: {domains: [good.com]}, headers: {type: object}}}]"
    )
    with gate_of(workdir, policy) as gate:
        result = gate.call(_get("https://good.com/", **{name: value}))
    assert code(result) == 2002


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"accept": "*/*"}, True),
        ({"Authorization": "x"}, False),
        ({"authorization": "x"}, False),
        ({"AUTHORIZATION": "x"}, False),
        ({"Cookie": "x"}, False),
        ({"x-key": "x"}, True),
    ],
)
def test_c3_credentials_need_a_rule_of_their_own(headers: dict[str, str], allowed: bool) -> None:
    assert (NAMED.decide(_get("https://good.com/", **headers)).effect == "allow") is allowed
