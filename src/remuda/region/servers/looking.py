"""Looking at a server at its provider, and writing down what is seen.

What is written was read after the object was: if somebody else writes in between, both are read again. So a look never
puts an older state over a newer one.
"""

from dataclasses import dataclass

from remuda.kernel.clock import Clock
from remuda.region.catalogue.provider_registry import Clouds, need
from remuda.region.kinds.identities import Identity
from remuda.region.kinds.server_parts import Replacement
from remuda.region.kinds.servers import Server
from remuda.region.servers.drifting import with_drift
from remuda.region.servers.provider_spec import port_handle, server_handle
from remuda.region.servers.status import observed
from remuda.resources.conventions import identity_of, region_of
from remuda.resources.crud import find, until_written
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """Sees how servers are."""

    store: Store
    clock: Clock
    clouds: Clouds

    async def look(self, server: str) -> Server | None:
        """Write down how a server is, and return it so; None if it is not there, or not at its provider."""

        async def write() -> Server | None:
            found = await find(self.store, Server, server)
            if found is None:
                return None
            home = await find(self.store, Identity, identity_of(found))
            if home is None:
                return None
            seen = await self._seen(found, home)
            if seen is None or seen.status == found.status:
                return seen
            return await self.store.update_status(seen)

        return await until_written(write)

    async def _seen(self, server: Server, home: Identity) -> Server | None:
        provider = (await self.clouds.get(region_of(server))).provider
        turn = server.status.replacement or Replacement()
        found = await need(provider.servers).find_server(server_handle(server, home, turn.counter))
        if found is None:
            return None
        port = await need(provider.ports).find_port(port_handle(server, home))
        now = self.clock.now()
        return with_drift(observed(server, found, port, now), found, now)
