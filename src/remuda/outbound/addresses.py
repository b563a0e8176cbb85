"""Which numeric addresses may be spoken to: those of the public Internet, and those an operator allows.

Python's own `is_global` changes with its releases and knows nothing of addresses inside addresses, so the ranges are
written out, after IANA's registries of special-purpose addresses. An IPv6 address that carries an IPv4 address is as
good as the one it carries: a translator or tunnel on our side would deliver it there.
"""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
"""A numeric address of either kind."""

Network: TypeAlias = IPv4Network | IPv6Network
"""A range of addresses of either kind."""

_INSIDE_IPV4 = (
    "0.0.0.0/8",  # this network
    "10.0.0.0/8",  # private
    "100.64.0.0/10",  # shared, behind a carrier's translator
    "127.0.0.0/8",  # this machine
    "169.254.0.0/16",  # this link, and where clouds tell their machines secrets
    "172.16.0.0/12",  # private
    "192.0.0.0/24",  # protocol assignments
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # relays that are no more
    "192.168.0.0/16",  # private
    "198.18.0.0/15",  # benchmarks
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, and broadcast
)
_OUTSIDE_IPV6 = ("2000::/3",)  # all that is assigned to the public Internet
_INSIDE_IPV6 = (
    "2001::/23",  # protocol assignments, tunnels among them
    "2001:db8::/32",  # documentation
    "3fff::/20",  # documentation
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_TRANSLATED = IPv6Network("64:ff9b::/96")
_TUNNELLED = IPv6Network("2002::/16")


@dataclass(frozen=True, slots=True)
class Reach:
    """Who may be spoken to beyond the public Internet: the networks an operator has allowed."""

    allowed: tuple[Network, ...] = ()

    def permits(self, address: Address) -> bool:
        """Tell whether this address may be spoken to."""
        plain = unmapped(address)
        return self._is_allowed(plain) or all(map(_is_outside, _with_those_inside(plain)))

    def _is_allowed(self, address: Address) -> bool:
        return any(address in network for network in self.allowed)


def unmapped(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address only spells differently, or the address itself."""
    return _carried(address) if isinstance(address, IPv6Address) and address in _MAPPED else address


def _with_those_inside(address: Address) -> Iterator[Address]:
    if isinstance(address, IPv6Address) and address in _TRANSLATED:
        yield _carried(address)
        return
    yield address
    if isinstance(address, IPv6Address) and address in _TUNNELLED:
        yield IPv4Address(address.packed[2:6])


def _carried(address: IPv6Address) -> IPv4Address:
    return IPv4Address(address.packed[-4:])


def _is_outside(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not _is_in(address, _INSIDE_IPV4)
    return address.scope_id is None and _is_in(address, _OUTSIDE_IPV6) and not _is_in(address, _INSIDE_IPV6)


def _is_in(address: Address, networks: tuple[str, ...]) -> bool:
    return any(address in ipaddress.ip_network(network) for network in networks)
