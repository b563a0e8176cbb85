"""Snapshots: the disk of a server as an image of its organization.

The image is described by what the server was made of. Its id is the operation's, so the same request sent again makes
no second one.
"""

from collections.abc import Callable
from dataclasses import dataclass

from remuda.access.checks import allow_in_organization
from remuda.access.principal import Context
from remuda.kernel.errors import AlreadyExists, Malformed, NotFound, Unavailable
from remuda.providers.contract.catalogue import Image, Images
from remuda.providers.contract.common import Handle
from remuda.region.catalogue.provider_registry import Clouds, need
from remuda.region.catalogue.telling import told
from remuda.region.images.reading import find_image
from remuda.region.images.rules import snapshot_of
from remuda.region.kinds.identities import Identity
from remuda.region.kinds.server_parts import Replacement
from remuda.region.kinds.servers import Server
from remuda.region.permissions import permission
from remuda.resources.conventions import identity_of, is_second, organization_of, region_of
from remuda.resources.metadata import check_tags
from remuda.resources.query import allow_for
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshots:
    """Makes images of servers."""

    store: Store
    clouds: Clouds
    handle_of: Callable[[Server, Identity, int], Handle]
    """Returns what a server is called at its provider (`servers.clouding.server_handle`, of a room above this one)."""

    async def create(self, context: Context, server: str, wanted: MetadataWrite) -> Image:
        """Begin to make an image of a server's disk."""
        found = await self._server(context, server)
        organization = organization_of(found)
        allow_in_organization(context.principal, permission("images", "create"), organization)
        check_tags(wanted.tags)
        if found.is_marked:
            raise Malformed("server is being deleted")
        cloud = await self.clouds.get(region_of(found))
        images, snapshots = need(cloud.provider.images), need(cloud.provider.snapshots)
        source = await find_image(cloud, organization, found.status.image_id or found.spec.image.id)
        if source is None:
            raise Malformed("server cannot be snapshotted: the image that it was made of is gone")
        new = snapshot_of(source, context.operation, wanted, context.principal, organization=organization)
        try:
            making = snapshots.snapshot_server(await self._handle(found), new)
            made = await told(making, "server cannot be snapshotted in its current state")
        except AlreadyExists:  # the answer to the same request was lost
            made = await _seen(images, new.id)
        cloud.forget_images()
        return made

    async def _server(self, context: Context, server: str) -> Server:
        found = await self.store.get(Server, server)
        if not is_second(found):
            raise NotFound("Server", server)
        allow_for(context.principal, permission("servers", "read"), found)
        return found

    async def _handle(self, server: Server) -> Handle:
        home = await self.store.get(Identity, identity_of(server))
        turn = server.status.replacement or Replacement()
        return self.handle_of(server, home, turn.counter)


async def _seen(images: Images, image: str) -> Image:
    found = await images.find_image(image)
    if found is None:
        raise Unavailable("The snapshot is being made and cannot be seen yet: send the same request again.")
    return found
