"""Load balancers of the simulated cloud."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from remuda.providers.contract.common import Handle, Rejected
from remuda.providers.contract.loadbalancers import CloudLoadBalancer, CloudLoadBalancerSpec
from remuda.providers.simulated.gateway import PAGE_SIZE, CloudContext, encode
from remuda.providers.simulated.networks import AddressPool, SimNetworks

_LIST = "SELECT tenancy, name FROM balancers WHERE (tenancy, name) > (?, ?) ORDER BY tenancy, name LIMIT ?"
_decode = msgspec.msgpack.Decoder(CloudLoadBalancerSpec).decode


class SimLoadBalancers:
    """Load balancers of the simulated cloud."""

    def __init__(self, context: CloudContext, *, networks: SimNetworks) -> None:
        self._storage, self._gateway, self._timers = context.storage, context.gateway, context.timers
        self._takes_s = context.catalogue.times.balancer_s
        self._networks = networks.table
        self._addresses = AddressPool(context.storage)
        self._gateway.stale_reads.readers["balancer"] = self._read
        self._timers.add("balancers", self._advance)

    async def converge_balancer(self, desired: CloudLoadBalancerSpec) -> CloudLoadBalancer:
        """Create or update a load balancer; it is building for a while after each change."""
        return await self._gateway.write("converge_balancer", lambda: self._converge(desired))

    async def find_balancer(self, handle: Handle) -> CloudLoadBalancer | None:
        return await self._gateway.find("find_balancer", "balancer", handle, self._read)

    async def remove_balancer(self, handle: Handle) -> None:
        await self._gateway.write("remove_balancer", lambda: self._remove(handle))

    def balancers(self) -> AsyncIterator[Sequence[Handle]]:
        return self._gateway.pages("balancers", "balancer", self._page, lambda each: each)

    def _read(self, handle: Handle) -> CloudLoadBalancer | None:
        row = self._storage.row(
            "SELECT document, state FROM balancers WHERE tenancy = ? AND name = ?", (handle.tenancy, handle.name)
        )
        return None if row is None else self._load_balancer(*row)

    def _page(self, position: Any) -> tuple[list[Handle], Any]:
        rows = self._storage.rows(_LIST, (*(position or ("", "")), PAGE_SIZE))
        return [Handle(*row) for row in rows], rows[-1] if len(rows) == PAGE_SIZE else None

    def _load_balancer(self, document: bytes, state: Any) -> CloudLoadBalancer:
        spec = _decode(document)
        return CloudLoadBalancer(spec=spec, state=state, public_address=self._addresses.public_address(spec.handle))

    def _converge(self, desired: CloudLoadBalancerSpec) -> CloudLoadBalancer:
        handle = desired.handle
        present = self._read(handle)
        if present is not None and present.spec == desired:
            return present
        self._storage.record_change("balancer", handle)
        if present is None:
            network = self._networks.get(Handle(handle.tenancy, desired.network))
            self._addresses.assign(network, desired.address, handle)
            self._gateway.record_created("balancer", handle)
        elif replace(desired, listeners=present.spec.listeners, is_public=present.spec.is_public) != present.spec:
            raise Rejected(f"the network, address and MAC of the load balancer {handle.name} cannot change")
        public = self._addresses.converge_public(handle, is_desired=desired.is_public)
        now = self._storage.now()
        then = ("building", "active", now + self._takes_s) if self._takes_s else ("active", None, None)
        self._storage.run(
            "INSERT OR REPLACE INTO balancers VALUES (?, ?, ?, ?, ?, ?)",
            (handle.tenancy, handle.name, *then, encode(desired)),
        )
        if self._takes_s:
            self._timers.expect(now + self._takes_s)
        return CloudLoadBalancer(spec=desired, state="building" if self._takes_s else "active", public_address=public)

    def _remove(self, handle: Handle) -> None:
        present = self._read(handle)
        if present is None:
            return
        self._storage.record_change("balancer", handle)
        self._addresses.converge_public(handle, is_desired=False)
        self._addresses.release(handle.tenancy, present.spec.network, present.spec.address)
        self._storage.run("DELETE FROM balancers WHERE tenancy = ? AND name = ?", (handle.tenancy, handle.name))

    def _advance(self, now: float, most: int) -> int:
        rows = self._storage.rows(
            "SELECT tenancy, name, next FROM balancers WHERE due <= ? ORDER BY due LIMIT ?", (now, most)
        )
        for tenancy, name, state in rows:
            self._storage.record_change("balancer", Handle(tenancy, name))
            self._storage.run(
                "UPDATE balancers SET state = ?, next = NULL, due = NULL WHERE tenancy = ? AND name = ?",
                (state, tenancy, name),
            )
        return len(rows)
