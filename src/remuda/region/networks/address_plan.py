"""Address plan of a network: its ranges, and the addresses that servers and load balancers get.

::

    base                                                          broadcast
    | provider range | storage range (maybe none) | DHCP pool         |
    10.0.0.0 … .15     .16 … .127                    .128 … .254   .255      a /24 with the default reservations

The first `2^(32 - provider_length)` addresses belong to the provider, among them the gateway, which is always the first
after the base; those up to `2^(32 - length)` are for storage, and the rest is the pool for servers. Without a range for
the provider, base and gateway are still kept from storage.

The search for a server's address starts at a position derived from its uid: concurrent creates rarely try the same
address, and a retry tries the same ones again.
"""

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from itertools import chain

from remuda.kernel.errors import Invalid, Malformed
from remuda.resources.ipv4 import parse_address, parse_prefix

_MAX_MASK = 24
_BITS = 32


@dataclass(frozen=True, slots=True)
class ReservedLengths:
    """The reserved ranges at the base of a network, each as a prefix length."""

    length: int
    provider_length: int | None = None
    """None if the provider needs only the gateway."""


DEFAULT_RESERVATIONS = ReservedLengths(25, 28)
"""The reservations of a network without its own. They are never stored."""


@dataclass(frozen=True, slots=True)
class Ipv4Range:
    """The addresses from the first to the last, inclusive; never empty."""

    first: IPv4Address
    last: IPv4Address

    def __len__(self) -> int:
        return int(self.last) - int(self.first) + 1

    def __contains__(self, address: IPv4Address) -> bool:
        return self.first <= address <= self.last

    def __iter__(self) -> Iterator[IPv4Address]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> IPv4Address:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.first + index


@dataclass(frozen=True)
class AddressPlan:
    """The ranges of one network."""

    network: IPv4Network
    reservations: ReservedLengths

    @property
    def gateway(self) -> IPv4Address:
        """The router's address: the first after the base."""
        return self.network[1]

    @property
    def provider_range(self) -> Ipv4Range:
        """The range of the provider: at least base and gateway."""
        return Ipv4Range(self.network[0], self._provider_end - 1)

    @property
    def storage_range(self) -> Ipv4Range | None:
        """The range of file storage, or None if the provider has the whole reservation."""
        if self.reservations.provider_length == self.reservations.length:
            return None
        return Ipv4Range(self._provider_end, self._reserved_end - 1)

    @cached_property
    def dhcp_pool(self) -> Ipv4Range:
        """The range of servers; each new one needs it."""
        return Ipv4Range(self._reserved_end, self.network.broadcast_address - 1)

    @property
    def _provider_end(self) -> IPv4Address:
        length = self.reservations.provider_length
        return self.network[2 if length is None else _size(length)]

    @property
    def _reserved_end(self) -> IPv4Address:
        return self.network[_size(self.reservations.length)]


def address_plan(network: IPv4Network, reservations: ReservedLengths | None = None) -> AddressPlan:
    """Return the plan of a network, by default with the default reservations, or raise Invalid."""
    effective = reservations or DEFAULT_RESERVATIONS
    if effective.length <= network.prefixlen:
        raise Invalid(
            "spec.reservations.prefixLength",
            "the address reservation prefix length must be greater than the network prefix length",
        )
    if effective.provider_length is not None and effective.provider_length < effective.length:
        raise Invalid(
            "spec.reservations.providerReservedPrefixLength",
            "the provider reserved prefix length must be greater than or equal to the reservation prefix length",
        )
    return AddressPlan(network, effective)


def parse_network_prefix(text: str) -> IPv4Network:
    """Return the prefix of a new network without its host bits, or raise Malformed."""
    network = parse_prefix(text, "unable to parse IPv4 prefix")
    if network.prefixlen > _MAX_MASK:
        raise Malformed(f"minimum network prefix size is /{_MAX_MASK}")
    return network


def parse_nameserver(text: str) -> IPv4Address:
    """Return the address of a DNS server, or raise Malformed."""
    return parse_address(text, "unable to parse IPv4 address")


def parse_route_prefix(text: str) -> IPv4Network:
    """Return the destination of a route, or raise Malformed."""
    return parse_prefix(text, "failed to parse route prefix")


def parse_next_hop(text: str) -> IPv4Address:
    """Return the next hop of a route, or raise Malformed."""
    return parse_address(text, "failed to parse route next-hop")


def parse_vip(text: str, plan: AddressPlan) -> IPv4Address:
    """Return the requested address of a load balancer, or raise Malformed or Invalid.

    Base, gateway and broadcast address are never assigned, and provider and storage use their ranges without asking.
    """
    address, network = parse_address(text, "vipAddress must be a valid IPv4 address"), plan.network
    if address not in network:
        raise Invalid("spec.vipAddress", "vipAddress must be within the selected network CIDR")
    if address in (network[0], network[1], network[-1]):
        raise Invalid(
            "spec.vipAddress",
            "is the network's base, gateway or broadcast address",
            remedy="choose another, or leave it out to get a free one",
        )
    pool = plan.dhcp_pool
    if address not in pool:
        raise Invalid(
            "spec.vipAddress",
            "is in the range that the network reserves for its provider and for file storage",
            remedy=f"choose one from {pool.first} to {pool.last}, or leave it out to get a free one",
        )
    return address


def probe_order(pool: Ipv4Range, uid: str) -> Iterator[IPv4Address]:
    """Yield every address of a pool once, from a position derived from the uid."""
    size = len(pool)
    start = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8]) % size
    for index in chain(range(start, size), range(start)):
        yield pool.first + index


def free_address(pool: Ipv4Range, uid: str, used: Collection[IPv4Address]) -> IPv4Address | None:
    """Return the first unused address in a uid's probe order, or None. It probes at most one more than are used."""
    taken = frozenset(used)
    return next((address for address in probe_order(pool, uid) if address not in taken), None)


def mac_of(network_id: str, address: IPv4Address) -> str:
    """Return the MAC of an address: locally administered, deterministic, and unique on the network of the address.

    Its second byte is derived from the network, which helps to read packet captures of several networks.
    """
    network = hashlib.sha256(network_id.encode()).digest()[:1]
    return (b"\x02" + network + address.packed).hex(":")


def _size(length: int) -> int:
    return 1 << (_BITS - length)
