"""Tenancies, networks, security groups, addresses and ports of the simulated cloud.

An address is assigned once within its network; public addresses come from the pool, the first free one.
"""

import ipaddress
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from remuda.kernel.errors import AlreadyExists, NotFound
from remuda.kernel.ids import random_id
from remuda.providers.contract.common import Handle, InUse, NoCapacity, Rejected
from remuda.providers.contract.networks import CloudNetwork, CloudNetworkSpec, CloudSecurityGroup, Tenancy
from remuda.providers.contract.servers import CloudPort, CloudPortSpec
from remuda.providers.simulated.catalogue import SimCatalogue
from remuda.providers.simulated.database import CloudDatabase
from remuda.providers.simulated.gateway import PAGE_SIZE, CloudContext, DocumentTable, encode

_CHILD_TABLES = ("networks", "groups")  # everything else is on a network
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Tenancy).decode


class SimTenancies:
    """Tenancies of the simulated cloud."""

    def __init__(self, context: CloudContext) -> None:
        self._storage, self._gateway = context.storage, context.gateway
        self._gateway.stale_reads.readers["tenancy"] = lambda handle: self.read(handle.name)

    async def converge_tenancy(self, desired: Tenancy) -> None:
        await self._gateway.write("converge_tenancy", lambda: self._converge(desired))

    async def find_tenancy(self, name: str) -> Tenancy | None:
        return await self._gateway.find("find_tenancy", "tenancy", Handle("", name), lambda each: self.read(each.name))

    async def remove_tenancy(self, name: str) -> None:
        """Remove a tenancy, or raise InUse while it contains anything."""
        await self._gateway.write("remove_tenancy", lambda: self._remove(name))

    def tenancies(self) -> AsyncIterator[Sequence[Tenancy]]:
        return self._gateway.pages("tenancies", "tenancy", self._page, lambda each: Handle("", each.name))

    def read(self, name: str) -> Tenancy | None:
        row = self._storage.row("SELECT document FROM tenancies WHERE name = ?", (name,))
        return None if row is None else _decode(row[0])

    def _page(self, position: Any) -> tuple[list[Tenancy], Any]:
        rows = self._storage.rows(
            "SELECT name, document FROM tenancies WHERE name > ? ORDER BY name LIMIT ?", (position or "", PAGE_SIZE)
        )
        return [_decode(document) for _, document in rows], rows[-1][0] if len(rows) == PAGE_SIZE else None

    def _converge(self, desired: Tenancy) -> None:
        present, handle = self.read(desired.name), Handle("", desired.name)
        if present == desired:
            return
        self._storage.record_change("tenancy", handle)
        self._storage.run("INSERT OR REPLACE INTO tenancies VALUES (?, ?)", (desired.name, _encode(desired)))
        if present is None:
            self._gateway.record_created("tenancy", handle)

    def _remove(self, name: str) -> None:
        if self.read(name) is None:
            return
        for table in _CHILD_TABLES:
            if self._storage.has(f"SELECT 1 FROM {table} WHERE tenancy = ? LIMIT 1", (name,)):  # noqa: S608  constants
                raise InUse("tenancy", name)
        self._storage.record_change("tenancy", Handle("", name))
        self._storage.run("DELETE FROM tenancies WHERE name = ?", (name,))


def check_tenancy(storage: CloudDatabase, name: str) -> None:
    if not storage.has("SELECT 1 FROM tenancies WHERE name = ?", (name,)):
        raise NotFound("tenancy", name)


class SimNetworks:
    """Networks of the simulated cloud."""

    def __init__(self, context: CloudContext) -> None:
        self._storage, self._gateway, self._randomness = context.storage, context.gateway, context.randomness
        self.table = DocumentTable(context.storage, "networks", "network", CloudNetwork)
        self._gateway.stale_reads.readers["network"] = self.table.read

    async def converge_network(self, desired: CloudNetworkSpec) -> CloudNetwork:
        """Create a network, or update its name servers and routes."""
        return await self._gateway.write("converge_network", lambda: self._converge(desired))

    async def find_network(self, handle: Handle) -> CloudNetwork | None:
        return await self._gateway.find("find_network", "network", handle, self.table.read)

    async def remove_network(self, handle: Handle) -> None:
        """Remove a network, or raise InUse while anything has an address on it or is attached to it."""
        await self._gateway.write("remove_network", lambda: self._remove(handle))

    def networks(self) -> AsyncIterator[Sequence[CloudNetwork]]:
        return self._gateway.pages("networks", "network", self.table.page, lambda each: each.spec.handle)

    def _converge(self, desired: CloudNetworkSpec) -> CloudNetwork:
        check_tenancy(self._storage, desired.handle.tenancy)
        present = self.table.read(desired.handle)
        if present is None:
            return self._create(desired)
        if present.spec == desired:
            return present
        if replace(present.spec, nameservers=desired.nameservers, routes=desired.routes) != desired:
            raise Rejected(f"the prefix, gateway, pool and VLAN of the network {desired.handle.name} cannot change")
        updated = replace(present, spec=desired)
        self._storage.record_change("network", desired.handle)
        self._storage.run(
            "UPDATE networks SET document = ? WHERE tenancy = ? AND name = ?",
            (encode(updated), desired.handle.tenancy, desired.handle.name),
        )
        return updated

    def _create(self, desired: CloudNetworkSpec) -> CloudNetwork:
        _check(desired)
        if desired.vlan is not None and self._storage.has("SELECT 1 FROM networks WHERE vlan = ?", (desired.vlan,)):
            raise InUse("VLAN", str(desired.vlan))
        created = CloudNetwork(spec=desired, id=random_id(self._randomness), subnet_id=random_id(self._randomness))
        self._storage.record_change("network", desired.handle)
        self._storage.run(
            "INSERT INTO networks VALUES (?, ?, ?, ?)",
            (desired.handle.tenancy, desired.handle.name, desired.vlan, encode(created)),
        )
        self._gateway.record_created("network", desired.handle)
        return created

    def _remove(self, handle: Handle) -> None:
        if self.table.read(handle) is None:
            return
        key = (handle.tenancy, handle.name)
        for table in ("addresses", "attachments"):
            if self._storage.has(f"SELECT 1 FROM {table} WHERE tenancy = ? AND network = ? LIMIT 1", key):  # noqa: S608  ours
                raise InUse("network", handle.name)
        self._storage.record_change("network", handle)
        self.table.remove(handle)


def _check(desired: CloudNetworkSpec) -> None:
    try:
        prefix = ipaddress.IPv4Network(desired.prefix)
        inside = [ipaddress.IPv4Address(each) for each in (desired.gateway, desired.pool.first, desired.pool.last)]
    except ValueError:
        raise Rejected("a network needs an IPv4 prefix, an IPv4 gateway and a pool of IPv4 addresses") from None
    if any(each not in prefix for each in inside) or inside[1] > inside[2]:
        raise Rejected("the gateway and the pool of a network must be inside its prefix")


class SimSecurityGroups:
    """Security groups of the simulated cloud."""

    def __init__(self, context: CloudContext) -> None:
        self._storage, self._gateway = context.storage, context.gateway
        self.table = DocumentTable(context.storage, "groups", "security group", CloudSecurityGroup)
        self._gateway.stale_reads.readers["group"] = self.table.read

    async def converge_group(self, desired: CloudSecurityGroup) -> CloudSecurityGroup:
        """Create a group, or update its rules."""
        return await self._gateway.write("converge_group", lambda: self._converge(desired))

    async def find_group(self, handle: Handle) -> CloudSecurityGroup | None:
        return await self._gateway.find("find_group", "group", handle, self.table.read)

    async def remove_group(self, handle: Handle) -> None:
        """Remove a group, or raise InUse while a port is in it."""
        await self._gateway.write("remove_group", lambda: self._remove(handle))

    def groups(self) -> AsyncIterator[Sequence[CloudSecurityGroup]]:
        return self._gateway.pages("groups", "group", self.table.page, lambda each: each.handle)

    def _converge(self, desired: CloudSecurityGroup) -> CloudSecurityGroup:
        check_tenancy(self._storage, desired.handle.tenancy)
        present = self.table.read(desired.handle)
        if present == desired:
            return present
        self._storage.record_change("group", desired.handle)
        self._storage.run(
            "INSERT OR REPLACE INTO groups VALUES (?, ?, ?)",
            (desired.handle.tenancy, desired.handle.name, encode(desired)),
        )
        if present is None:
            self._gateway.record_created("group", desired.handle)
        return desired

    def _remove(self, handle: Handle) -> None:
        if self.table.read(handle) is None:
            return
        key = (handle.tenancy, handle.name)
        if self._storage.has("SELECT 1 FROM memberships WHERE tenancy = ? AND member = ? LIMIT 1", key):
            raise InUse("security group", handle.name)
        self._storage.record_change("group", handle)
        self.table.remove(handle)


@dataclass(frozen=True, slots=True)
class AddressPool:
    """Addresses of networks and of the public pool."""

    storage: CloudDatabase

    def load(self, catalogue: SimCatalogue) -> None:
        """Fill the pool from the catalogue; an address that is no longer offered stays with its holder."""
        desired = [
            str(address) for prefix in catalogue.public_addresses for address in ipaddress.IPv4Network(prefix).hosts()
        ]
        offered = self.storage.rows("SELECT address FROM public_addresses WHERE is_offered ORDER BY position")
        if [address for (address,) in offered] == desired:
            return
        self.storage.run("UPDATE public_addresses SET is_offered = 0")
        for address in desired:
            self.storage.run(
                "INSERT INTO public_addresses (address, is_offered) VALUES (?, 1) "
                "ON CONFLICT (address) DO UPDATE SET is_offered = 1",
                (address,),
            )

    def assign(self, network: CloudNetwork, address: str, holder: Handle) -> None:
        """Assign an address of a network to a port or load balancer, or raise AlreadyExists."""
        try:
            is_inside = ipaddress.IPv4Address(address) in ipaddress.IPv4Network(network.spec.prefix)
        except ValueError:
            is_inside = False
        if not is_inside:
            raise Rejected(f"{address} is not an address of the network {network.spec.handle.name}")
        given = self.storage.run(
            "INSERT OR IGNORE INTO addresses VALUES (?, ?, ?, ?)",
            (holder.tenancy, network.spec.handle.name, address, holder.name),
        )
        if not given:
            raise AlreadyExists("address", address)

    def release(self, tenancy: str, network: str, address: str) -> None:
        self.storage.run(
            "DELETE FROM addresses WHERE tenancy = ? AND network = ? AND address = ?", (tenancy, network, address)
        )

    def public_address(self, holder: Handle) -> str:
        """Return the public address of a port or load balancer, or an empty string."""
        row = self.storage.row(
            "SELECT address FROM public_addresses WHERE tenancy = ? AND holder = ?", (holder.tenancy, holder.name)
        )
        return "" if row is None else str(row[0])

    def converge_public(self, holder: Handle, *, is_desired: bool) -> str:
        """Assign or release a public address, and return it. Raise NoCapacity if the pool is empty."""
        present = self.public_address(holder)
        if is_desired and not present:
            row = self.storage.row(
                "UPDATE public_addresses SET tenancy = ?, holder = ? WHERE position = ("
                "SELECT position FROM public_addresses WHERE holder IS NULL AND is_offered ORDER BY position LIMIT 1"
                ") RETURNING address",
                (holder.tenancy, holder.name),
            )
            if row is None:
                raise NoCapacity("a public address")
            return str(row[0])
        if present and not is_desired:
            self.storage.run(
                "UPDATE public_addresses SET tenancy = NULL, holder = NULL WHERE tenancy = ? AND holder = ?",
                (holder.tenancy, holder.name),
            )
            return ""
        return present


_SERVER_OF_PORT = (
    "SELECT servers.name FROM ports LEFT JOIN servers ON servers.tenancy = ports.tenancy AND servers.port = ports.name "
    "WHERE ports.tenancy = ? AND ports.name = ?"
)


class SimPorts:
    """Ports of the simulated cloud."""

    def __init__(self, context: CloudContext, *, networks: SimNetworks, groups: SimSecurityGroups) -> None:
        self._storage, self._gateway = context.storage, context.gateway
        self._addresses = AddressPool(context.storage)
        self._networks, self._groups = networks.table, groups.table
        self._table = DocumentTable(context.storage, "ports", "port", CloudPortSpec)
        self._gateway.stale_reads.readers["port"] = self.read

    async def converge_port(self, desired: CloudPortSpec) -> CloudPort:
        """Create a port, or update its groups, sources and public address."""
        return await self._gateway.write("converge_port", lambda: self._converge(desired))

    async def find_port(self, handle: Handle) -> CloudPort | None:
        return await self._gateway.find("find_port", "port", handle, self.read)

    async def remove_port(self, handle: Handle) -> None:
        """Remove a port with its public address, or raise InUse while a server is attached to it."""
        await self._gateway.write("remove_port", lambda: self._remove(handle))

    def ports(self) -> AsyncIterator[Sequence[CloudPort]]:
        return self._gateway.pages("ports", "port", self._page, lambda each: each.spec.handle)

    def read(self, handle: Handle) -> CloudPort | None:
        spec = self._table.read(handle)
        return None if spec is None else self._port(spec)

    def _page(self, position: Any) -> tuple[list[CloudPort], Any]:
        specs, position = self._table.page(position)
        return [self._port(spec) for spec in specs], position

    def server_of(self, handle: Handle) -> str | None:
        """Return the name of the server that is attached to a port, an empty one, or None if there is no such port."""
        row = self._storage.row(_SERVER_OF_PORT, (handle.tenancy, handle.name))
        return None if row is None else row[0] or ""

    def _port(self, spec: CloudPortSpec) -> CloudPort:
        public = self._addresses.public_address(spec.handle)
        return CloudPort(spec=spec, public_address=public, server=self.server_of(spec.handle) or "")

    def _converge(self, desired: CloudPortSpec) -> CloudPort:
        handle = desired.handle
        present = self._table.read(handle)
        if present == desired:
            return self._port(desired)
        for group in desired.groups:
            self._groups.get(Handle(handle.tenancy, group))
        self._storage.record_change("port", handle)
        if present is None:
            network = self._networks.get(Handle(handle.tenancy, desired.network))
            self._addresses.assign(network, desired.address, handle)
            self._gateway.record_created("port", handle)
        elif replace(desired, groups=present.groups, sources=present.sources, is_public=present.is_public) != present:
            raise Rejected(f"the network, address and MAC of the port {handle.name} cannot change")
        public = self._addresses.converge_public(handle, is_desired=desired.is_public)
        self._update_memberships(handle, set(present.groups if present else ()), set(desired.groups))
        self._storage.run(
            "INSERT OR REPLACE INTO ports VALUES (?, ?, ?)", (handle.tenancy, handle.name, encode(desired))
        )
        server = "" if present is None else self.server_of(handle) or ""
        return CloudPort(spec=desired, public_address=public, server=server)

    def _update_memberships(self, handle: Handle, before: set[str], after: set[str]) -> None:
        for group in before - after:
            self._storage.run(
                "DELETE FROM memberships WHERE tenancy = ? AND member = ? AND port = ?",
                (handle.tenancy, group, handle.name),
            )
        for group in after - before:
            self._storage.run("INSERT INTO memberships VALUES (?, ?, ?)", (handle.tenancy, group, handle.name))

    def _remove(self, handle: Handle) -> None:
        present = self.read(handle)
        if present is None:
            return
        if present.server:
            raise InUse("port", handle.name)
        self._storage.record_change("port", handle)
        self._addresses.converge_public(handle, is_desired=False)
        self._addresses.release(handle.tenancy, present.spec.network, present.spec.address)
        self._update_memberships(handle, set(present.spec.groups), set())
        self._table.remove(handle)
