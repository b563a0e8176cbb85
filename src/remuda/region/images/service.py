"""Images: the service that the API's routes call.

Every method takes the context of the call, checks the caller's permissions itself, and has at most one effect. Only the
deletion of an image that has just been imported has two: at the provider, and of the import, which its controller
completes if this process does not. Images belong to an organization and to a region's provider, and to no project, so
no image is deleted with a project.

The provider's list is cached (`RegionProvider.images`), so that a slow provider does not slow down every request. An
imported image is listed as soon as it was requested. While it is being deleted its state is `failed`, so that no caller
starts to use it.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from remuda.access.checks import require_in_organization
from remuda.access.principal import Context, Permission, Principal
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound
from remuda.kernel.ids import is_id
from remuda.kernel.memo import IdentityMemo
from remuda.providers.contract.catalogue import CloudImage
from remuda.providers.contract.common import InUse
from remuda.region.catalogue.provider_registry import (
    ProviderRegistry,
    RegionProvider,
    require,
    require_enabled,
)
from remuda.region.images import rules
from remuda.region.images.counts import ImageCounts
from remuda.region.images.rules import image_of
from remuda.region.images.schema import ImageCreate, ImageQuery
from remuda.region.images.transfer import ImageFetcher
from remuda.region.kinds.images import IMAGE_IMPORT, ImageImport
from remuda.region.kinds.servers import Server
from remuda.region.names import permission
from remuda.resources.conventions import ORGANIZATION, REGION, organization_of, region_of
from remuda.resources.crud import audit_records, find, find_in
from remuda.resources.schema import ImageRead
from remuda.store.contract import Store


def is_available(image: CloudImage, organization: str) -> bool:
    """Return whether an organization may use an image."""
    return image.organization in {"", organization}


async def find_image(
    cloud: RegionProvider, organization: str, image: str, *, store: Store | None = None
) -> CloudImage | None:
    """Return an image that an organization may use, in any state; with a store, also one that is being imported."""
    found = await _at_provider(cloud, image)
    importing = None if store is None else await find(store, ImageImport, image)
    if importing is not None and region_of(importing) == cloud.region.name:
        found = _with_import(found, importing)
    return found if found is not None and is_available(found, organization) else None


async def _at_provider(cloud: RegionProvider, image: str) -> CloudImage | None:
    """Return an image, from the provider unless the cached list has it as ready."""
    known = next((each for each in await cloud.images() if each.id == image), None)
    if known is not None and known.state == "ready":
        return known
    return await require(cloud.provider.images).find_image(image)


async def images_of(cloud: RegionProvider, store: Store, owners: Iterable[str]) -> list[CloudImage]:
    """Return all images of a region by name, with those that are being imported for these organizations."""
    found: dict[str, CloudImage | None] = {each.id: each for each in await cloud.images()}
    for owner in owners:
        labels = {REGION: cloud.region.name, ORGANIZATION: owner}
        for each in (await store.list(ImageImport, labels=labels)).items:
            found[each.name] = _with_import(found.get(each.name), each)
    return sorted((each for each in found.values() if each is not None), key=lambda each: (each.name, each.id))


def _with_import(found: CloudImage | None, importing: ImageImport) -> CloudImage | None:
    if found is None:
        return None if importing.is_deleting else image_of(importing)
    if found.organization != organization_of(importing):
        return found
    return replace(found, state="failed") if importing.is_deleting else found


_READ = permission("images", "read")
_MAX_VIEWS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Images of all regions."""

    store: Store
    providers: ProviderRegistry
    fetcher: ImageFetcher
    counts: ImageCounts
    views: IdentityMemo[CloudImage, ImageRead] = field(
        default_factory=lambda: IdentityMemo(rules.read_image, limit=_MAX_VIEWS)
    )
    """Views of images: clouds return the same images for a while, and each new instance lists them."""

    async def query(self, context: Context, region: str, query: ImageQuery) -> list[ImageRead]:
        """Return the images without an owner and those of organizations whose images the caller may read."""
        cloud = await self.providers.get_visible(context.principal, region)
        owners = frozenset(
            each for each in query.organizations if is_id(each) and _is_allowed(context.principal, _READ, each)
        )
        found = rules.matching_images(await images_of(cloud, self.store, owners), query, owners)
        return [self.views(each) for each in found]

    async def list_ready(self, context: Context, organization: str, region: str) -> list[ImageRead]:
        require_in_organization(context.principal, _READ, organization)
        cloud = await self.providers.get_visible(context.principal, region)
        owners = frozenset({organization})
        images = await images_of(cloud, self.store, owners)
        found = rules.matching_images(images, ImageQuery(status=("ready",)), owners)
        return [self.views(each) for each in found]

    async def import_from(self, context: Context, organization: str, region: str, body: ImageCreate) -> ImageRead:
        """Start the import of an image, if its first bytes are those of one."""
        principal = context.principal
        require_in_organization(principal, permission("images", "create"), organization)
        cloud = await self.providers.get_visible(principal, region)
        require(cloud.provider.images)
        require_enabled(cloud.region)
        rules.check_new(body, principal)
        created = await find(self.store, ImageImport, context.operation)
        if created is None:
            await self.fetcher.read_header(body.spec.uri.reveal(), organization)
            new = rules.new_import(context.operation, body, principal, organization=organization, region=region)
            known = await self.counts.known(cloud, organization)
            with self.counts.creating(cloud, organization, new.name, known=known):
                created = await self._create(context, new)
        return rules.read_image(rules.image_of(created))

    async def delete(self, context: Context, organization: str, region: str, image: str) -> None:
        require_in_organization(context.principal, permission("images", "delete"), organization)
        cloud = await self.providers.get_visible(context.principal, region)
        is_removed = False
        while True:
            importing = await self._import(organization, region, image)
            if is_removed and (importing is None or importing.is_deleting):
                return
            await self._check_removable(cloud, organization, image, importing)
            if importing is None or importing.status.state == "ready":
                await require(cloud.provider.images).remove_image(image)
                cloud.invalidate_images()
                is_removed = True
            if importing is None:
                return
            log = audit_records(context, IMAGE_IMPORT.plural, importing)
            with suppress(Conflict, NotFound):  # the import has progressed: the image may be at the provider now
                await self.store.delete(
                    ImageImport, importing.name, uid=importing.uid, version=importing.version, log=log
                )
                return

    async def _import(self, organization: str, region: str, image: str) -> ImageImport | None:
        found = await find_in(self.store, ImageImport, image, organization)
        return None if found is None or region_of(found) != region else found

    async def _create(self, context: Context, new: ImageImport) -> ImageImport:
        try:
            return await self.store.create(new, log=audit_records(context, IMAGE_IMPORT.plural, new))
        except AlreadyExists:  # the same request, at the same time
            return await self.store.get(ImageImport, new.name)

    async def _check_removable(
        self, cloud: RegionProvider, organization: str, image: str, importing: ImageImport | None
    ) -> None:
        if importing is None:
            found = await require(cloud.provider.images).find_image(image)
            if found is None or found.organization != organization:
                raise NotFound("Image", image)
        elif importing.is_deleting:
            raise NotFound("Image", image)
        if (await self.store.list_names(Server, index=("image", image), limit=1)).items:
            raise InUse("image", image)


def _is_allowed(principal: Principal, required: Permission, organization: str) -> bool:
    access = principal.access
    inside = access.organizations.get(organization)
    return required in access.everywhere or (inside is not None and required in inside.permissions)
