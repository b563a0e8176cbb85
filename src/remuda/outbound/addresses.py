"""Targets of outbound requests: parsing of URLs, resolution of names, and the IP addresses that are allowed.

Allowed are the public Internet, by IANA's registries of special-purpose addresses, and networks that an operator
allows. Python's `is_global` changes with its releases and ignores embedded addresses: an IPv6 address that embeds an
IPv4 address is treated like the latter, where a translator would deliver. URL parsers disagree about unusual URLs, so
one parser serves check and connection, and rejects credentials, backslashes, unusual IPv4 addresses and IPv6 zones.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from threading import Thread
from typing import Protocol, TypeAlias
from urllib.parse import urljoin

IpAddress: TypeAlias = IPv4Address | IPv6Address

IpNetwork: TypeAlias = IPv4Network | IPv6Network

_INSIDE_IPV4 = (
    "0.0.0.0/8",  # this network
    "10.0.0.0/8",  # private
    "100.64.0.0/10",  # shared, behind a carrier's translator
    "127.0.0.0/8",  # this machine
    "169.254.0.0/16",  # link-local, and the metadata services of clouds
    "172.16.0.0/12",  # private
    "192.0.0.0/24",  # protocol assignments
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # deprecated 6to4 relays
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
class AddressPolicy:
    """Policy of allowed addresses: the public Internet, and the networks that an operator has allowed."""

    allowed: tuple[IpNetwork, ...] = ()

    def allows(self, address: IpAddress) -> bool:
        plain = unmapped(address)
        is_listed = any(plain in network for network in self.allowed)
        return is_listed or all(map(_is_public, _with_embedded(plain)))


def unmapped(address: IpAddress) -> IpAddress:
    """Return the IPv4 address of an IPv4-mapped IPv6 address, or the address itself."""
    return _embedded(address) if isinstance(address, IPv6Address) and address in _MAPPED else address


def _with_embedded(address: IpAddress) -> Iterator[IpAddress]:
    if isinstance(address, IPv6Address) and address in _TRANSLATED:
        yield _embedded(address)
        return
    yield address
    if isinstance(address, IPv6Address) and address in _TUNNELLED:
        yield IPv4Address(address.packed[2:6])


def _embedded(address: IPv6Address) -> IPv4Address:
    return IPv4Address(address.packed[-4:])


def _is_public(address: IpAddress) -> bool:
    if isinstance(address, IPv4Address):
        return not _is_in(address, _INSIDE_IPV4)
    return address.scope_id is None and _is_in(address, _OUTSIDE_IPV6) and not _is_in(address, _INSIDE_IPV6)


def _is_in(address: IpAddress, networks: tuple[str, ...]) -> bool:
    return any(address in ipaddress.ip_network(network) for network in networks)


class Resolver(Protocol):
    """Port that resolves names; a simulation and tests implement their own."""

    async def __call__(self, host: str, port: int) -> Sequence[IpAddress]:
        """Return all IP addresses of a host, best first, or raise OSError."""


class SystemResolver:
    """Resolver of the operating system. Its caller limits the number of concurrent lookups.

    A lookup of a name whose servers are silent keeps its thread for many seconds, and cannot be cancelled. So each has
    a thread of its own: those of the event loop are free for files, and the end of the process waits for no lookup.
    """

    async def __call__(self, host: str, port: int) -> Sequence[IpAddress]:
        found: asyncio.Future[Sequence[IpAddress]] = asyncio.get_running_loop().create_future()
        Thread(target=_resolve, args=(host, port, found), name="lookup", daemon=True).start()
        return await found


def _resolve(host: str, port: int, found: "asyncio.Future[Sequence[IpAddress]]") -> None:
    """Resolve a name in a thread, and set the result unless nothing waits for it any more."""
    addresses: Sequence[IpAddress] = ()
    error: Exception | None = None
    try:
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(ip_address(address[0]) for *_, address in resolved))
    except (OSError, ValueError) as raised:  # also a name that has no encoding
        error = raised

    def deliver() -> None:
        if found.done():
            return
        if error is None:
            found.set_result(addresses)
        else:
            found.set_exception(error)

    with suppress(RuntimeError):  # the loop is closed
        found.get_loop().call_soon_threadsafe(deliver)


_DNS_PORT = 53


def read_name_server(text: str) -> tuple[str, int]:
    """Return address and port of a name server, such as `9.9.9.9` or `[::1]:5353`, or raise ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or (":" in host and not host.endswith("]")):
        host, port = text, str(_DNS_PORT)
    number = int(port)
    if not 0 < number <= _MAX_PORT:
        raise ValueError("the port is not between 1 and 65535")
    return str(ip_address(host.removeprefix("[").removesuffix("]"))), number


_DEFAULT_PORTS = {"http": 80, "https": 443}
_LONGEST = 4096
_MAX_PORT = 65535
_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<host>[^\x00-\x20\x7f/?#@\\:\[\]%]+))"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<rest>[/?][^\x00-\x20\x7f#\\]*)?"
    r"(?:#.*)?",
    re.IGNORECASE | re.ASCII,
)
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.(?!-)[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class Target:
    """Target of a request: `host` is a name in lower case or an IP address, which is then also `literal`."""

    scheme: str
    host: str
    port: int
    path: str
    literal: IpAddress | None = None

    @property
    def authority(self) -> str:
        """Host as in the Host header, with a port other than the default."""
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return _bracketed(self.host) + port

    def at(self, address: IpAddress) -> str:
        return f"{self.scheme}://{_bracketed(str(address))}:{self.port}{self.path}"

    def redirected(self, location: str) -> "Target | None":
        """Return the target of a redirect, or None if the location is invalid."""
        base = f"{self.scheme}://{self.authority}{self.path}"
        try:
            return read_target(urljoin(base, location))
        except ValueError:
            return None


def read_target(url: str) -> Target | None:
    """Parse a URL, or return None if it is not an acceptable one."""
    found = _URL.fullmatch(url) if len(url) <= _LONGEST else None
    if found is None:
        return None
    scheme = found["scheme"].lower()
    port = int(found["port"] or _DEFAULT_PORTS[scheme])
    host = _host(found["host"], found["six"])
    if host is None or not 0 < port <= _MAX_PORT:
        return None
    rest = found["rest"] or "/"
    path = rest if rest.startswith("/") else f"/{rest}"
    return Target(scheme, str(host), port, path, host if not isinstance(host, str) else None)


def _host(written: str | None, six: str | None) -> str | IpAddress | None:
    try:
        if written is None:
            return IPv6Address(six)
        name = written.encode("idna").decode().lower().removesuffix(".")
        if _NUMBER.fullmatch(name.rpartition(".")[2]):
            return IPv4Address(name)
    except ValueError:
        return None
    return name if _NAME.fullmatch(name) else None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
