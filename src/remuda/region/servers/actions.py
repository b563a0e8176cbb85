"""What can be done to a server that is there: it goes to the provider at once, and the answer is the provider's.

A verb is sent to the server as it is now, a replacement included. Then its provider is asked how it is, so that whoever
reads it next sees that something has happened.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from remuda.access.principal import Context
from remuda.kernel.errors import NotFound, Unavailable
from remuda.kernel.secrets import Secret
from remuda.providers.contract.common import Handle
from remuda.region.catalogue.provider_registry import Cloud, Clouds, need, told
from remuda.region.kinds.networks import Identity, OpenstackIdentity
from remuda.region.kinds.servers import Replacement, Server
from remuda.region.names import permission
from remuda.region.servers.provider_spec import server_handle
from remuda.region.servers.service import Servers
from remuda.region.servers.status import Looking
from remuda.resources.conventions import identity_of, region_of
from remuda.store.contract import Store

_UPDATE = permission("servers", "update")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbs:
    """Start, stop, reboot, and look at the console of servers."""

    store: Store
    clouds: Clouds
    servers: Servers
    looking: Looking

    async def start(self, context: Context, server: str) -> None:
        found, cloud, handle = await self._target(context, server)
        await told(need(cloud.provider.servers).start_server(handle), "server cannot be started in its current state")
        await self._look(found)

    async def stop(self, context: Context, server: str) -> None:
        found, cloud, handle = await self._target(context, server)
        await told(need(cloud.provider.servers).stop_server(handle), "server cannot be stopped in its current state")
        await self._look(found)

    async def reboot(self, context: Context, server: str, how: Literal["soft", "hard"]) -> None:
        found, cloud, handle = await self._target(context, server)
        rebooting = need(cloud.provider.servers).reboot_server(handle, hard=how == "hard")
        await told(rebooting, "server cannot be rebooted in its current state")
        await self._look(found)

    async def open_console(self, context: Context, server: str) -> str:
        """Return where a browser sees a server's screen."""
        _, cloud, handle = await self._target(context, server)
        opening = need(cloud.provider.consoles).open_console(handle)
        return await told(opening, "server cannot be accessed in its current state")

    async def console_output(self, context: Context, server: str, lines: int | None) -> str:
        """Return the last lines that a server wrote to its console."""
        found = await self.servers.get(context, server)
        cloud, handle = await self._place(found)
        reading = need(cloud.provider.consoles).console_output(handle, lines=lines)
        return await told(reading, "server console output cannot be retrieved in its current state")

    async def ssh_key(self, context: Context, server: str) -> Secret:
        """Return the private key that opens a server, if it was made to be opened by one."""
        found = await self.servers.find(context, _UPDATE, server)
        if found.spec.ssh_injection != "identityKeypair":
            raise NotFound("SSH key of the server", server)
        record = await self.store.get(OpenstackIdentity, identity_of(found))
        if record.spec.ssh_private_key is None:
            raise NotFound("SSH key of the server", server)
        return record.spec.ssh_private_key

    async def _target(self, context: Context, server: str) -> tuple[Server, Cloud, Handle]:
        found = await self.servers.find(context, _UPDATE, server)
        return (found, *await self._place(found))

    async def _look(self, server: Server) -> None:
        """See what a verb has done. It is done, whether that can be seen now or not: events and monitor tell later."""
        with suppress(Unavailable):
            await self.looking.look(server.name)

    async def _place(self, server: Server) -> tuple[Cloud, Handle]:
        home = await self.store.get(Identity, identity_of(server))
        turn = server.status.replacement or Replacement()
        return await self.clouds.get(region_of(server)), server_handle(server, home, turn.counter)
