"""Which addresses are public: an own table, because the standard library passes tunnels, multicast and more.

Sources: the IANA special-purpose registries for IPv4 and IPv6, and the RFCs of each way to write an IPv4 address
inside an IPv6 one. Whatever is not surely a host on the public Internet is not public.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network

_V4_LENGTH, _V6_LENGTH = 4, 16

NOT_PUBLIC_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier NAT, and the metadata of some clouds
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # a cloud's agent for its own machines: numbered publicly, answers only from inside
        "169.254.0.0/16",  # link-local, and the metadata of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; the two anycast exceptions serve no web pages
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4, withdrawn
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)

PUBLIC_V6 = IPv6Network(
    "2000::/3"
)  # all that IANA hands out; loopback, fc00::/7, fe80::/10, fec0::/10, ff00::/8 lie outside

NOT_PUBLIC_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo (its server and client are both hidden in it), ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)

# An address that only stands for an IPv4 one: it is as public as that.
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")  # not 64:ff9b:1::/48, which is for use inside one network
_6TO4 = IPv6Network("2002::/16")

_ISATAP = 0x5EFE  # in the interface identifier, after a word whose only bit says whether the address is unique
_UNIQUE_BIT = 0x0200


def is_public(address: str | bytes) -> bool:
    """Whether this is a host on the public Internet; text that is no address, or has a scope, is not."""
    try:
        packed = _packed(address)
    except AddressValueError:
        return False
    return _is_public_v4(packed) if isinstance(packed, IPv4Address) else _is_public_v6(packed)


def _packed(address: str | bytes) -> IPv4Address | IPv6Address:
    if isinstance(address, bytes):
        return IPv4Address(address) if len(address) == _V4_LENGTH else IPv6Address(address)
    if "%" in address:
        raise AddressValueError(address)
    return IPv6Address(address) if ":" in address else IPv4Address(address)


def _is_public_v4(address: IPv4Address) -> bool:
    return not any(address in network for network in NOT_PUBLIC_V4)


def _is_public_v6(address: IPv6Address) -> bool:
    if address in _MAPPED or address in _NAT64:
        return _is_public_v4(_embedded(address, shift=0))
    if address not in PUBLIC_V6 or any(address in network for network in NOT_PUBLIC_V6):
        return False
    if address in _6TO4 and not _is_public_v4(_embedded(address, shift=80)):
        return False
    return not _is_isatap(address) or _is_public_v4(_embedded(address, shift=0))


def _embedded(address: IPv6Address, *, shift: int) -> IPv4Address:
    return IPv4Address(int(address) >> shift & 0xFFFFFFFF)


def _is_isatap(address: IPv6Address) -> bool:
    upper, lower = int(address) >> 48 & 0xFFFF, int(address) >> 32 & 0xFFFF
    return lower == _ISATAP and upper & ~_UNIQUE_BIT == 0
