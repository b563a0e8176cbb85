"""The room of images: what a region's servers can be made of, fetched from elsewhere or given up.

Every method takes the context of the call, checks the caller's rights itself, and has at most one effect; only the
deletion of an image that has just arrived has two, of which the first is the one that counts, and its controller does
the second if we do not come to it. Images belong to an organization and to a region's provider: no project has any, so
none goes with a project.

Images as they are to be seen: what the provider has, and what is on its way there.

The provider's list is as it was a moment ago (`Cloud.images`), so that a slow provider does not make every request
slow. An image that we bring there is shown from the moment it was asked for, and one that is being deleted is `failed`
until it is gone, so that nobody begins to use it.

Snapshots: the disk of a server as an image of its organization.

The image is described by what the server was made of. Its id is the operation's, so the same request sent again makes
no second one.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from remuda.access.checks import allow_in_organization
from remuda.access.principal import Context, Permission, Principal
from remuda.kernel.errors import AlreadyExists, Conflict, Malformed, NotFound, Unavailable
from remuda.kernel.ids import is_id
from remuda.providers.contract.catalogue import Image
from remuda.providers.contract.catalogue import Images as CloudImages
from remuda.providers.contract.common import Handle, InUse
from remuda.region.catalogue.provider_registry import Cloud, Clouds, need, told
from remuda.region.images import rules
from remuda.region.images.rules import image_of, snapshot_of
from remuda.region.images.schema import ImageCreate, ImagePath, ImageQuery
from remuda.region.images.transfer import ImageFetcher
from remuda.region.kinds.images import IMAGE_IMPORT, ImageImport
from remuda.region.kinds.networks import Identity
from remuda.region.kinds.servers import Replacement, Server
from remuda.region.names import OrganizationRegionPath, permission
from remuda.resources.conventions import ORGANIZATION, REGION, identity_of, is_second, organization_of, region_of
from remuda.resources.crud import find, find_in, witnessed
from remuda.resources.metadata import check_tags
from remuda.resources.query import allow_for
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store


def is_available(image: Image, organization: str) -> bool:
    """Tell whether an organization may use an image."""
    return image.organization in {"", organization}


async def find_image(cloud: Cloud, organization: str, image: str, *, store: Store | None = None) -> Image | None:
    """Return an image that an organization may use, in whatever state it is; with a store, also one on its way."""
    found = await _at_provider(cloud, image)
    on_its_way = None if store is None else await find(store, ImageImport, image)
    if on_its_way is not None and region_of(on_its_way) == cloud.region.name:
        found = _shown(found, on_its_way)
    return found if found is not None and is_available(found, organization) else None


async def _at_provider(cloud: Cloud, image: str) -> Image | None:
    """Return an image; unless it was ready a moment ago, the provider is asked."""
    known = next((each for each in await cloud.images() if each.id == image), None)
    if known is not None and known.state == "ready":
        return known
    return await need(cloud.provider.images).find_image(image)


async def images_of(cloud: Cloud, store: Store, owners: Iterable[str]) -> list[Image]:
    """Return all images of a region by name, with those that are on their way to it for these organizations."""
    found: dict[str, Image | None] = {each.id: each for each in await cloud.images()}
    for owner in owners:
        labels = {REGION: cloud.region.name, ORGANIZATION: owner}
        for each in (await store.list(ImageImport, labels=labels)).items:
            found[each.name] = _shown(found.get(each.name), each)
    return sorted((each for each in found.values() if each is not None), key=lambda each: (each.name, each.id))


def _shown(found: Image | None, on_its_way: ImageImport) -> Image | None:
    if found is None:
        return None if on_its_way.is_marked else image_of(on_its_way)
    if found.organization != organization_of(on_its_way):
        return found
    return replace(found, state="failed") if on_its_way.is_marked else found


_READ = permission("images", "read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """The images."""

    store: Store
    clouds: Clouds
    fetcher: ImageFetcher

    async def query(self, context: Context, region: str, query: ImageQuery) -> list[Image]:
        """Return the images that nobody owns and those of organizations that the caller may see into."""
        cloud = await self.clouds.seen(context.principal, region)
        owners = frozenset(
            each for each in query.organizations if is_id(each) and _is_allowed(context.principal, _READ, each)
        )
        return rules.asked_for(await images_of(cloud, self.store, owners), query, owners)

    async def list_ready(self, context: Context, where: OrganizationRegionPath) -> list[Image]:
        """Return the images that an organization can use now."""
        allow_in_organization(context.principal, _READ, where.organization)
        cloud = await self.clouds.seen(context.principal, where.region)
        owners = frozenset({where.organization})
        images = await images_of(cloud, self.store, owners)
        return rules.asked_for(images, ImageQuery(status=("ready",)), owners)

    async def import_from(self, context: Context, where: OrganizationRegionPath, wanted: ImageCreate) -> Image:
        """Have an image fetched, if its beginning is that of one."""
        principal = context.principal
        allow_in_organization(principal, permission("images", "create"), where.organization)
        cloud = await self.clouds.seen(principal, where.region)
        need(cloud.provider.images)
        rules.check_new(wanted, principal)
        made = await find(self.store, ImageImport, context.operation)
        if made is None:
            await self.fetcher.peek(wanted.spec.uri.reveal())
            new = rules.new_import(
                context.operation, wanted, principal, organization=where.organization, region=where.region
            )
            made = await self._create(context, new)
        return rules.image_of(made)

    async def delete(self, context: Context, where: ImagePath) -> None:
        """Give up an image of an organization that no server is made of."""
        allow_in_organization(context.principal, permission("images", "delete"), where.organization)
        cloud = await self.clouds.seen(context.principal, where.region)
        is_removed = False
        while True:
            on_its_way = await self._on_its_way(where)
            if is_removed and (on_its_way is None or on_its_way.is_marked):
                return
            await self._check_removable(cloud, where, on_its_way)
            if on_its_way is None or on_its_way.status.state == "ready":
                await need(cloud.provider.images).remove_image(where.image)
                cloud.forget_images()
                is_removed = True
            if on_its_way is None:
                return
            log = witnessed(context, IMAGE_IMPORT.plural, on_its_way)
            with suppress(Conflict, NotFound):  # it has gone on meanwhile: perhaps it is at the provider, and forgotten
                await self.store.delete(
                    ImageImport, on_its_way.name, uid=on_its_way.uid, version=on_its_way.version, log=log
                )
                return

    async def _on_its_way(self, where: ImagePath) -> ImageImport | None:
        found = await find_in(self.store, ImageImport, where.image, where.organization)
        return None if found is None or region_of(found) != where.region else found

    async def _create(self, context: Context, new: ImageImport) -> ImageImport:
        try:
            return await self.store.create(new, log=witnessed(context, IMAGE_IMPORT.plural, new))
        except AlreadyExists:  # the same request, at the same time
            return await self.store.get(ImageImport, new.name)

    async def _check_removable(self, cloud: Cloud, where: ImagePath, on_its_way: ImageImport | None) -> None:
        if on_its_way is None:
            found = await need(cloud.provider.images).find_image(where.image)
            if found is None or found.organization != where.organization:
                raise NotFound("Image", where.image)
        elif on_its_way.is_marked:
            raise NotFound("Image", where.image)
        if (await self.store.list_names(Server, index=("image", where.image), limit=1)).items:
            raise InUse("image", where.image)


def _is_allowed(principal: Principal, right: Permission, organization: str) -> bool:
    access = principal.access
    inside = access.organizations.get(organization)
    return right in access.everywhere or (inside is not None and right in inside.permissions)


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


async def _seen(images: CloudImages, image: str) -> Image:
    found = await images.find_image(image)
    if found is None:
        raise Unavailable("The snapshot is being made and cannot be seen yet: send the same request again.")
    return found
