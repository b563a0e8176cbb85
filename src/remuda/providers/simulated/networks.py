"""Networks."""

import ipaddress
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from remuda.kernel.ids import random_id
from remuda.providers.contract.common import Handle
from remuda.providers.contract.errors import InUse, Refused
from remuda.providers.contract.networks import Network, NetworkSpec
from remuda.providers.simulated.ground import Ground
from remuda.providers.simulated.shelf import Shelf, encode
from remuda.providers.simulated.tenancies import check_tenancy


class SimNetworks:
    """Keeps networks."""

    def __init__(self, ground: Ground) -> None:
        self._storage, self._desk, self._randomness = ground.storage, ground.desk, ground.randomness
        self.shelf = Shelf(ground.storage, "networks", "network", Network)
        """Where they are."""
        self._desk.past.readers["network"] = self.shelf.read

    async def converge_network(self, wanted: NetworkSpec) -> Network:
        """Make a network, or bring its name servers and routes up to date."""
        return await self._desk.change("converge_network", lambda: self._converge(wanted))

    async def find_network(self, handle: Handle) -> Network | None:
        return await self._desk.find("find_network", "network", handle, self.shelf.read)

    async def remove_network(self, handle: Handle) -> None:
        """Remove a network, or raise InUse while anything has an address on it or is attached to it."""
        await self._desk.change("remove_network", lambda: self._remove(handle))

    def networks(self) -> AsyncIterator[Sequence[Network]]:
        return self._desk.parts("networks", "network", self.shelf.page, lambda each: each.spec.handle)

    def _converge(self, wanted: NetworkSpec) -> Network:
        check_tenancy(self._storage, wanted.handle.tenancy)
        present = self.shelf.read(wanted.handle)
        if present is None:
            return self._make(wanted)
        if present.spec == wanted:
            return present
        if replace(present.spec, nameservers=wanted.nameservers, routes=wanted.routes) != wanted:
            raise Refused(f"the network {wanted.handle.name} keeps its prefix, gateway, pool and segment")
        mended = replace(present, spec=wanted)
        self._storage.touch("network", wanted.handle)
        self._storage.run(
            "UPDATE networks SET document = ? WHERE tenancy = ? AND name = ?",
            (encode(mended), wanted.handle.tenancy, wanted.handle.name),
        )
        return mended

    def _make(self, wanted: NetworkSpec) -> Network:
        _check(wanted)
        if wanted.vlan is not None and self._storage.has("SELECT 1 FROM networks WHERE vlan = ?", (wanted.vlan,)):
            raise InUse("VLAN", str(wanted.vlan))
        made = Network(spec=wanted, id=random_id(self._randomness), subnet_id=random_id(self._randomness))
        self._storage.touch("network", wanted.handle)
        self._storage.run(
            "INSERT INTO networks VALUES (?, ?, ?, ?)",
            (wanted.handle.tenancy, wanted.handle.name, wanted.vlan, encode(made)),
        )
        self._desk.made("network", wanted.handle)
        return made

    def _remove(self, handle: Handle) -> None:
        if self.shelf.read(handle) is None:
            return
        where = (handle.tenancy, handle.name)
        for table in ("addresses", "attachments"):
            if self._storage.has(f"SELECT 1 FROM {table} WHERE tenancy = ? AND network = ? LIMIT 1", where):  # noqa: S608  ours
                raise InUse("network", handle.name)
        self._storage.touch("network", handle)
        self.shelf.remove(handle)


def _check(wanted: NetworkSpec) -> None:
    try:
        prefix = ipaddress.IPv4Network(wanted.prefix)
        inside = [ipaddress.IPv4Address(each) for each in (wanted.gateway, wanted.pool.first, wanted.pool.last)]
    except ValueError:
        raise Refused("a network needs an IPv4 prefix, and a gateway and a pool of IPv4 addresses") from None
    if any(each not in prefix for each in inside) or inside[1] > inside[2]:
        raise Refused("the gateway and the pool of a network are inside its prefix")
