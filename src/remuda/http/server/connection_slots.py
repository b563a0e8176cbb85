"""Slots of connections, shared between the addresses of clients.

One address (an IPv6 /64 network) has at most half of the slots. When all are taken, a new connection of an address
with fewer gets the slot of an idle connection of the address with most, so idle connections keep no other client out.
Addresses of forwarding proxies stand for many clients: they have no share, and keep their connections.
"""

from typing import Protocol

from remuda.http.ratelimit import client_network
from remuda.kernel.errors import RemudaError, TooMany, Unavailable

_RETRY_AFTER_S = 5
_SEARCHED = 64
"""Connections of one address that are looked at in search of an idle one."""


class TooManyConnections(TooMany):
    """Raised when an address has too many open connections; close some of them."""

    def __init__(self, most: int) -> None:
        super().__init__(
            _RETRY_AFTER_S,
            f"This address has {most} open connections, which is the most for one: close some, or wait "
            f"{_RETRY_AFTER_S} s. A proxy in front must be named in server.forwarding_proxies.",
        )


class NoFreeConnection(Unavailable):
    """Raised when all connections are taken, by clients that have no more than this one; retry later."""

    retry_after_s = _RETRY_AFTER_S

    def __init__(self) -> None:
        super().__init__("The server accepts no more connections at the moment. Try again later.")


class HostSet(Protocol):
    """A set of hosts, such as those in some networks."""

    def __contains__(self, host: str, /) -> bool:
        """Return whether a host is one of them."""


class AdmittedConnection(Protocol):
    """A connection, as the slots see it."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress."""

    def displace(self) -> None:
        """Close the idle connection because another client needs its slot."""


class ConnectionSlots:
    """The slots of one server."""

    def __init__(self, count: int, *, exempt: HostSet = ()) -> None:
        self._count, self._share, self._exempt = count, max(1, count // 2), exempt
        self._networks: dict[AdmittedConnection, str] = {}
        """The network of each connection that has a slot, empty for exempt ones."""
        self._by_network: dict[str, dict[AdmittedConnection, None]] = {}
        """The connections of each network, those looked at least recently first."""
        self._levels: dict[int, dict[str, None]] = {}
        """The networks by the number of their connections."""
        self._most = 0

    def __len__(self) -> int:
        return len(self._networks)

    def take(self, connection: AdmittedConnection, host: str | None) -> tuple[str, RemudaError] | None:
        """Give a slot to a connection, or return the reason why not, for metrics, and the error for the client."""
        network = "" if host is None or host in self._exempt else client_network(host)
        if network and len(self._by_network.get(network, ())) >= self._share:
            return "address_connections", TooManyConnections(self._share)
        if len(self) >= self._count and not self._displace_for(network):
            return "connections", NoFreeConnection()
        self._networks[connection] = network
        if network:
            connections = self._by_network.setdefault(network, {})
            connections[connection] = None
            self._move(network, len(connections) - 1, len(connections))
        return None

    def release(self, connection: AdmittedConnection) -> None:
        """Free the slot of a connection, if it has one."""
        network = self._networks.pop(connection, None)
        if network:
            connections = self._by_network[network]
            del connections[connection]
            self._move(network, len(connections) + 1, len(connections))
            if not connections:
                del self._by_network[network]

    def _displace_for(self, network: str) -> bool:
        """Free a slot of the network with most connections, if this one has fewer even with one more."""
        if self._most <= len(self._by_network.get(network, ())) + 1:
            return False
        connections = self._by_network[next(iter(self._levels[self._most]))]
        for _ in range(min(_SEARCHED, len(connections))):
            connection = next(iter(connections))
            if connection.is_idle:
                self.release(connection)
                connection.displace()
                return True
            del connections[connection]
            connections[connection] = None  # looked at last
        return False

    def _move(self, network: str, before: int, after: int) -> None:
        if before:
            del self._levels[before][network]
            if not self._levels[before]:
                del self._levels[before]
        if after:
            self._levels.setdefault(after, {})[network] = None
        self._most = max(self._most, after)
        if self._most and self._most not in self._levels:
            self._most -= 1
