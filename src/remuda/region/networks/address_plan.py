"""How a network's addresses are divided, and which of them a server gets.

::

    base                                                          broadcast
    | provider range | storage range (maybe none) | DHCP pool         |
    10.0.0.0 … .15     .16 … .127                    .128 … .254   .255      a /24 with the default reservations

The first `2^(32 - provider_length)` addresses are the provider's own, among them the gateway, which is always the
first after the base; those up to `2^(32 - length)` are for storage; the rest is what servers get. A network that
reserves nothing for the provider still keeps base and gateway from storage.

A server's address is looked for from a place that its uid decides, so that many servers made at once rarely try the
same one, and a repeat tries the same ones again.
"""

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from itertools import chain

from remuda.kernel.errors import Invalid, Malformed
from remuda.resources.ipv4 import parse_address, parse_prefix

_LONGEST_MASK = 24
_BITS = 32


@dataclass(frozen=True, slots=True)
class Reservations:
    """How much of a network's beginning is kept from servers, each as the length of a prefix at its base."""

    length: int
    provider_length: int | None = None
    """None where the provider needs no more than the gateway."""


DEFAULT_RESERVATIONS = Reservations(25, 28)
"""What a network reserves that says nothing about it. Never stored: it is worked out whenever it is asked for."""


@dataclass(frozen=True, slots=True)
class AddressRange:
    """All addresses from the first to the last, both included; never empty."""

    first: IPv4Address
    last: IPv4Address

    def __len__(self) -> int:
        return int(self.last) - int(self.first) + 1

    def __contains__(self, address: IPv4Address) -> bool:
        return self.first <= address <= self.last

    def __iter__(self) -> Iterator[IPv4Address]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, place: int) -> IPv4Address:
        if not 0 <= place < len(self):
            raise IndexError(place)
        return self.first + place

    def beginning(self, count: int) -> "AddressRange":
        """Return the first addresses of this range, at most `count`, at least one."""
        return AddressRange(self.first, self[min(max(count, 1), len(self)) - 1])


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of one network."""

    network: IPv4Network
    reservations: Reservations

    @property
    def gateway(self) -> IPv4Address:
        """The router's address: the first after the base."""
        return self.network[1]

    @property
    def provider_range(self) -> AddressRange:
        """What belongs to the provider: base and gateway at least."""
        return AddressRange(self.network[0], self._behind_provider - 1)

    @property
    def storage_range(self) -> AddressRange | None:
        """Where storage is mounted from, or None where the provider has all that is reserved."""
        if self.reservations.provider_length == self.reservations.length:
            return None
        return AddressRange(self._behind_provider, self._behind_reserved - 1)

    @property
    def dhcp_pool(self) -> AddressRange:
        """What servers and load balancers get their addresses from."""
        return AddressRange(self._behind_reserved, self.network.broadcast_address - 1)

    @property
    def _behind_provider(self) -> IPv4Address:
        length = self.reservations.provider_length
        return self.network[2 if length is None else _size(length)]

    @property
    def _behind_reserved(self) -> IPv4Address:
        return self.network[_size(self.reservations.length)]


def plan_of(network: IPv4Network, reservations: Reservations | None = None) -> Plan:
    """Return a network's plan, with the default reservations where it has none of its own, or raise Invalid."""
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
    return Plan(network, effective)


def read_network_prefix(text: str) -> IPv4Network:
    """Return the prefix of a new network without its host bits, or raise Malformed."""
    network = parse_prefix(text, "unable to parse IPv4 prefix")
    if network.prefixlen > _LONGEST_MASK:
        raise Malformed(f"minimum network prefix size is /{_LONGEST_MASK}")
    return network


def read_nameserver(text: str) -> IPv4Address:
    """Return the address of a DNS server, or raise Malformed."""
    return parse_address(text, "unable to parse IPv4 address")


def read_route_prefix(text: str) -> IPv4Network:
    """Return where a route leads to, or raise Malformed."""
    return parse_prefix(text, "failed to parse route prefix")


def read_nexthop(text: str) -> IPv4Address:
    """Return whom a route passes on to, or raise Malformed."""
    return parse_address(text, "failed to parse route next-hop")


def read_vip(text: str, plan: Plan) -> IPv4Address:
    """Return the address a load balancer asks for, or raise Malformed or Invalid.

    The first, the last and the gateway's address are inside, but nobody can have them; what is reserved belongs to the
    provider or to storage, which do not ask who else is there.
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


def probe_order(pool: AddressRange, uid: str) -> Iterator[IPv4Address]:
    """Yield every address of a pool once, from a place that the uid decides."""
    start = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8]) % len(pool)
    for place in chain(range(start, len(pool)), range(start)):
        yield pool[place]


def free_address(pool: AddressRange, uid: str, used: Collection[IPv4Address]) -> IPv4Address | None:
    """Return the first address in a uid's probe order that nobody uses, or None where all are used.

    It looks at one more than are used at most, however large the pool is.
    """
    taken = frozenset(used)
    return next((address for address in probe_order(pool, uid) if address not in taken), None)


def mac_of(network_id: str, address: IPv4Address) -> str:
    """Return the MAC of an address: locally administered, the same each time, and unique where the address is.

    Its second byte keeps equal addresses of different networks apart in most cases, for whoever reads a capture.
    """
    network = hashlib.sha256(network_id.encode()).digest()[:1]
    return (b"\x02" + network + address.packed).hex(":")


def _size(length: int) -> int:
    return 1 << (_BITS - length)
