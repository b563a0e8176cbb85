"""Images as they are to be seen: what the provider has, and what is on its way there.

The provider's list is as it was a moment ago (`Cloud.images`), so that a slow provider does not make every request
slow. An image that we bring there is shown from the moment it was asked for, and one that is being deleted is `failed`
until it is gone, so that nobody begins to use it.
"""

from collections.abc import Iterable
from dataclasses import replace

from remuda.providers.contract.catalogue import Image
from remuda.region.catalogue.provider_registry import Cloud, need
from remuda.region.images.rules import image_of
from remuda.region.kinds.images import ImageImport
from remuda.resources.conventions import ORGANIZATION, REGION, organization_of, region_of
from remuda.resources.crud import find
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
