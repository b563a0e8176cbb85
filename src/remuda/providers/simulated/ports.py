"""Ports."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from remuda.providers.contract.common import Handle
from remuda.providers.contract.errors import InUse, Refused
from remuda.providers.contract.servers import Port, PortSpec
from remuda.providers.simulated.addresses import Addresses
from remuda.providers.simulated.ground import Ground
from remuda.providers.simulated.groups import SimSecurityGroups
from remuda.providers.simulated.networks import SimNetworks
from remuda.providers.simulated.shelf import Shelf, encode


class SimPorts:
    """Keeps ports."""

    def __init__(self, ground: Ground, *, networks: SimNetworks, groups: SimSecurityGroups) -> None:
        self._storage, self._desk = ground.storage, ground.desk
        self._addresses = Addresses(ground.storage)
        self._networks, self._groups = networks.shelf, groups.shelf
        self._shelf = Shelf(ground.storage, "ports", "port", PortSpec)
        self._desk.past.readers["port"] = self.read

    async def converge_port(self, wanted: PortSpec) -> Port:
        """Make a port, or bring its groups, sources and public address up to date."""
        return await self._desk.change("converge_port", lambda: self._converge(wanted))

    async def find_port(self, handle: Handle) -> Port | None:
        return await self._desk.find("find_port", "port", handle, self.read)

    async def remove_port(self, handle: Handle) -> None:
        """Remove a port with its public address, or raise InUse while a server stands behind it."""
        await self._desk.change("remove_port", lambda: self._remove(handle))

    def ports(self) -> AsyncIterator[Sequence[Port]]:
        return self._desk.parts("ports", "port", self._page, lambda each: each.spec.handle)

    def read(self, handle: Handle) -> Port | None:
        spec = self._shelf.read(handle)
        return None if spec is None else self._whole(spec)

    def _page(self, mark: Any) -> tuple[list[Port], Any]:
        specs, mark = self._shelf.page(mark)
        return [self._whole(spec) for spec in specs], mark

    def _whole(self, spec: PortSpec) -> Port:
        where = (spec.handle.tenancy, spec.handle.name)
        server = self._storage.row("SELECT name FROM servers WHERE tenancy = ? AND port = ?", where)
        public = self._addresses.public_address(spec.handle)
        return Port(spec=spec, public_address=public, server="" if server is None else server[0])

    def _converge(self, wanted: PortSpec) -> Port:
        handle = wanted.handle
        present = self._shelf.read(handle)
        if present == wanted:
            return self._whole(wanted)
        for group in wanted.groups:
            self._groups.get(Handle(handle.tenancy, group))
        self._storage.touch("port", handle)
        if present is None:
            network = self._networks.get(Handle(handle.tenancy, wanted.network))
            self._addresses.take(network, wanted.address, handle)
            self._desk.made("port", handle)
        elif replace(wanted, groups=present.groups, sources=present.sources, is_public=present.is_public) != present:
            raise Refused(f"the port {handle.name} keeps its network, address and MAC")
        self._addresses.converge_public(handle, is_wanted=wanted.is_public)
        self._join(handle, set(present.groups if present else ()), set(wanted.groups))
        self._storage.run(
            "INSERT OR REPLACE INTO ports VALUES (?, ?, ?)", (handle.tenancy, handle.name, encode(wanted))
        )
        return self._whole(wanted)

    def _join(self, handle: Handle, before: set[str], after: set[str]) -> None:
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
        self._storage.touch("port", handle)
        self._addresses.converge_public(handle, is_wanted=False)
        self._addresses.give_back(handle.tenancy, present.spec.network, present.spec.address)
        self._join(handle, set(present.spec.groups), set())
        self._shelf.remove(handle)
