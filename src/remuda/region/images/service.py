"""The room of images: what a region's servers can be made of, fetched from elsewhere or given up.

Every method takes the context of the call, checks the caller's rights itself, and has at most one effect; only the
deletion of an image that has just arrived has two, of which the first is the one that counts, and its controller does
the second if we do not come to it. Images belong to an organization and to a region's provider: no project has any, so
none goes with a project.
"""

from contextlib import suppress
from dataclasses import dataclass

from remuda.access.checks import allow_in_organization
from remuda.access.principal import Context, Permission, Principal
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound
from remuda.kernel.ids import is_id
from remuda.providers.contract.catalogue import Image
from remuda.providers.contract.common import InUse
from remuda.region.catalogue.provider_registry import Cloud, Clouds, need
from remuda.region.images import rules
from remuda.region.images.fetching import ImageFetcher
from remuda.region.images.reading import images_of
from remuda.region.images.schema import ImageCreate, ImagePath, ImageQuery
from remuda.region.kinds.images import IMAGE_IMPORT, ImageImport
from remuda.region.kinds.servers import Server
from remuda.region.names import OrganizationRegionPath
from remuda.region.permissions import permission
from remuda.resources.conventions import region_of
from remuda.resources.crud import find, find_in, witnessed
from remuda.store.contract import Store

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
