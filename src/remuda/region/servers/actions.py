"""Actions on servers: sent to the provider at once, whose response is the response of the route.

An action is sent to the server that the object has now, which may be a replacement. After it the status is read from
the provider, so that the next reader of the object sees the effect.
"""

from collections.abc import Awaitable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass

from remuda.access.checks import require_in_organization
from remuda.access.principal import Context
from remuda.kernel.errors import AlreadyExists, Malformed, NotFound, Unavailable
from remuda.providers.contract.catalogue import CloudImage, CloudImages
from remuda.providers.contract.common import Handle, WrongState
from remuda.providers.contract.servers import CloudServers, CloudServerState
from remuda.region.catalogue.provider_registry import (
    ProviderRegistry,
    RegionProvider,
    map_server_errors,
    require,
    require_enabled,
)
from remuda.region.images.counts import ImageCounts
from remuda.region.images.rules import read_image, snapshot_of
from remuda.region.images.schema import ServerSnapshotCreate
from remuda.region.images.service import find_image
from remuda.region.kinds.networks import Identity, OpenstackIdentity
from remuda.region.kinds.servers import Server
from remuda.region.names import permission
from remuda.region.servers.console_viewer import viewer_of
from remuda.region.servers.provider_spec import server_handle
from remuda.region.servers.schema import ServerConsoleOutputRead, ServerConsoleSessionRead, ServerSshKeyRead
from remuda.region.servers.service import Servers
from remuda.region.servers.status import ServerObserver
from remuda.resources.conventions import identity_of, organization_of, region_of
from remuda.resources.schema import ImageRead
from remuda.resources.tags import check_tags
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerActions:
    """Start, stop, reboot, snapshot, console and SSH key of servers."""

    store: Store
    providers: ProviderRegistry
    servers: Servers
    observer: ServerObserver
    counts: ImageCounts

    async def start(self, context: Context, server: str) -> None:
        """Start a server. One that runs already is no error."""
        found, cloud, handle = await self._target(context, server)
        servers = require(cloud.provider.servers)
        call = _unless_in_state(servers, handle, servers.start_server(handle), {"running"})
        await map_server_errors(call, "server cannot be started in its current state")
        await self._refresh_status(found)

    async def stop(self, context: Context, server: str) -> None:
        """Stop a server. One that is stopped already is no error."""
        found, cloud, handle = await self._target(context, server)
        servers = require(cloud.provider.servers)
        call = _unless_in_state(servers, handle, servers.stop_server(handle), {"stopping", "stopped"})
        await map_server_errors(call, "server cannot be stopped in its current state")
        await self._refresh_status(found)

    async def soft_reboot(self, context: Context, server: str) -> None:
        """Reboot a server through its operating system."""
        await self._reboot(context, server, is_hard=False)

    async def hard_reboot(self, context: Context, server: str) -> None:
        await self._reboot(context, server, is_hard=True)

    async def snapshot(self, context: Context, server: str, body: ServerSnapshotCreate) -> ImageRead:
        """Create an image of a server's disk for its organization, described by the image of the server.

        Its id is that of the operation, so a repeated request creates no second one.
        """
        found = await self.servers.get(context, server)
        organization = organization_of(found)
        require_in_organization(context.principal, permission("images", "create"), organization)
        check_tags(body.metadata.tags)
        self.servers.reject_if_deleting(found)
        cloud, handle = await self._locate(found)
        images, snapshots = require(cloud.provider.images), require(cloud.provider.snapshots)
        require_enabled(cloud.region)
        source = await find_image(cloud, organization, found.status.image_id or found.spec.image.id)
        if source is None:
            raise Malformed("server cannot be snapshotted: the image that it was created from was deleted")
        new = snapshot_of(source, context.operation, body.metadata, context.principal, organization=organization)
        known = await self.counts.known(cloud, organization)
        with self.counts.creating(cloud, organization, new.id, known=known):
            try:
                call = snapshots.snapshot_server(handle, new)
                created = await map_server_errors(call, "server cannot be snapshotted in its current state")
            except AlreadyExists:  # the response to the same request was lost
                created = await _get_snapshot(images, new.id)
            cloud.invalidate_images()
        return read_image(created)

    async def open_console(self, context: Context, server: str) -> ServerConsoleSessionRead:
        """Return the address at which a browser shows a server's screen."""
        _, cloud, handle = await self._target(context, server)
        opening = require(cloud.provider.consoles).open_console(handle, viewer=str(viewer_of(context.principal)))
        return ServerConsoleSessionRead(
            url=await map_server_errors(opening, "server cannot be accessed in its current state")
        )

    async def console_output(self, context: Context, server: str, *, length: int | None) -> ServerConsoleOutputRead:
        """Return the last lines that a server wrote to its console."""
        found = await self.servers.get(context, server)
        cloud, handle = await self._locate(found)
        reading = require(cloud.provider.consoles).console_output(handle, lines=length)
        contents = await map_server_errors(reading, "server console output cannot be retrieved in its current state")
        return ServerConsoleOutputRead(contents=contents)

    async def ssh_key(self, context: Context, server: str) -> ServerSshKeyRead:
        found = await self.servers.get_authorized(context, "update", server)
        if found.spec.ssh_injection != "identityKeypair":
            raise NotFound("SSH key of the server", server)
        record = await self.store.get(OpenstackIdentity, identity_of(found))
        if record.spec.ssh_private_key is None:
            raise NotFound("SSH key of the server", server)
        return ServerSshKeyRead(private_key=record.spec.ssh_private_key)

    async def _reboot(self, context: Context, server: str, *, is_hard: bool) -> None:
        found, cloud, handle = await self._target(context, server)
        rebooting = require(cloud.provider.servers).reboot_server(handle, hard=is_hard)
        await map_server_errors(rebooting, "server cannot be rebooted in its current state")
        await self._refresh_status(found)

    async def _target(self, context: Context, server: str) -> tuple[Server, RegionProvider, Handle]:
        found = await self.servers.get_authorized(context, "update", server)
        return (found, *await self._locate(found))

    async def _refresh_status(self, server: Server) -> None:
        """Read the status after an action. If the provider is unavailable, an event or the monitor updates it later."""
        with suppress(Unavailable):
            await self.observer.observe(server.name)

    async def _locate(self, server: Server) -> tuple[RegionProvider, Handle]:
        identity = await self.store.get(Identity, identity_of(server))
        replacement = server.status.replacement
        return await self.providers.get(region_of(server)), server_handle(server, identity, replacement.started)


async def _unless_in_state(
    servers: CloudServers, handle: Handle, call: Awaitable[None], states: AbstractSet[CloudServerState]
) -> None:
    """Await an action; it is no error that the server is in one of these states already."""
    try:
        await call
    except WrongState:
        found = await servers.find_server(handle)
        if found is None or found.state not in states:
            raise


async def _get_snapshot(images: CloudImages, image: str) -> CloudImage:
    found = await images.find_image(image)
    if found is None:
        raise Unavailable("The snapshot is being created and is not visible yet: send the same request again.")
    return found
