from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.policy.addresses import is_public

PRIVATE_V4 = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255"),
    *("127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255"),
    *("192.0.0.1", "192.0.0.9", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1"),
    *("198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1"),
    "255.255.255.255",
]
PUBLIC_V4 = [
    *("1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "126.255.255.255", "128.0.0.1"),
    *("169.253.255.255", "172.15.255.255", "172.32.0.1", "192.0.1.1", "192.167.255.255", "192.169.0.1"),
    *("198.17.255.255", "198.20.0.1", "223.255.255.255", "9.255.255.255", "11.0.0.1", "168.63.129.17"),
]


@pytest.mark.parametrize("address", PRIVATE_V4)
def test_an_ipv4_address_that_is_not_public(address: str) -> None:
    assert not is_public(address)
    assert not is_public(IPv4Address(address).packed)


@pytest.mark.parametrize("address", PUBLIC_V4)
def test_an_ipv4_address_that_is_public(address: str) -> None:
    assert is_public(address)
    assert is_public(IPv4Address(address).packed)


@pytest.mark.parametrize(
    "address", ["2606:2800:220:1:248:1893:25c8:1946", "2a00::1", "2001:200::1", "2001:4860:4860::8888"]
)
def test_an_ipv6_address_that_is_public(address: str) -> None:
    assert is_public(address)
    assert is_public(IPv6Address(address).packed)


@pytest.mark.parametrize(
    "address",
    [
        *("::", "::1", "::2", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "fdff:ffff::1", "ff02::1", "ff0e::1"),
        *("100::1", "64:ff9b:1::1", "64:ff9b:1::8.8.8.8", "4000::1", "5f00::1", "8000::1"),
        *("2001::1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:2::1", "2001:10::1", "2001:20::1", "2001:1ff::1"),
        *("2001:db8::1", "2001:db8:ffff::1", "3fff::1", "3fff:fff::1"),
        *("::8.8.8.8", "::ffff:0:8.8.8.8"),  # forms that no host on the Internet has
    ],
)
def test_an_ipv6_address_that_is_not_public(address: str) -> None:
    assert not is_public(address)
    assert not is_public(IPv6Address(address).packed)


def inside(form: str, address: str) -> str:
    number = int(IPv4Address(address))
    return form.format(dotted=address, hex=f"{number >> 16:x}:{number & 0xFFFF:x}")


CARRIERS = ["::ffff:{dotted}", "::ffff:{hex}", "64:ff9b::{dotted}", "64:ff9b::{hex}"]
TUNNELS = ["2002:{hex}::1", "2a00:1::5efe:{dotted}", "2a00:1::200:5efe:{hex}"]


@pytest.mark.parametrize("form", [*CARRIERS, *TUNNELS, "::{dotted}", "::ffff:0:{dotted}", "fe80::5efe:{dotted}"])
@pytest.mark.parametrize("address", PRIVATE_V4)
def test_no_way_to_carry_an_address_makes_it_public(form: str, address: str) -> None:
    assert not is_public(inside(form, address))


@pytest.mark.parametrize("form", [*CARRIERS, *TUNNELS])
def test_a_public_address_stays_public_when_it_is_carried(form: str) -> None:
    assert is_public(inside(form, "93.184.216.34"))


@pytest.mark.parametrize(
    "text",
    [
        *("", "localhost", "example.com", "127.1", "0x7f000001", "2130706433", "010.0.0.1", "1.2.3", "1.2.3.4.5"),
        *("8.8.8.8 ", "8.8.8.8%1", "[2a00::1]", "2a00::1%eth0", "::1%1", "2a00:::1", "8.8.8.8\0"),
    ],
)
def test_what_is_no_plain_address_is_not_public(text: str) -> None:
    assert not is_public(text)


@pytest.mark.parametrize("data", [b"", b"123", b"12345", b"1" * 15, b"1" * 17])
def test_bytes_of_another_length_are_not_public(data: bytes) -> None:
    assert not is_public(data)


@given(st.ip_addresses())
def test_an_address_that_the_standard_library_keeps_back_is_not_public(address: IPv4Address | IPv6Address) -> None:
    kept_back = address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
    carried = isinstance(address, IPv6Address) and (address.ipv4_mapped or address.sixtofour) is not None
    assert not (kept_back and not carried and is_public(str(address)))
    assert is_public(str(address)) == is_public(address.packed)
