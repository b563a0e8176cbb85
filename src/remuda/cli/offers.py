"""Flavors and images that regions offer: list, show and find them in one region or in all."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from remuda.cli.crud import find_named
from remuda.cli.lookup import ExistingResource, NamedResource, ScopedSession, match_one, reject_duplicate
from remuda.cli.options import WaitOptions
from remuda.cli.output import Columns, Format, ResourceT, show_many, show_one
from remuda.cli.progress import wait_until
from remuda.cli.resources import IMAGE, REGION, ResourceType
from remuda.kernel.errors import Unusable

if TYPE_CHECKING:
    from remuda.resources.schema import ImageRead


@dataclass(frozen=True, slots=True)
class Offer(Generic[ResourceT]):
    """A flavor or image of a region."""

    item: ResourceT
    region: str
    region_name: str


async def reject_duplicate_image(api: ScopedSession, region: str, name: str) -> None:
    """Raise Unusable if an image of the region has this name."""
    path, query = IMAGE.path.format(regionID=region), {"organizationID": api.scope.organization or None}
    found = await api.session.get(IMAGE.service, path, list[ExistingResource], query)
    reject_duplicate(name, found, IMAGE.name)


async def list_in_region(api: ScopedSession, resource_type: ResourceType[ResourceT], region: str) -> list[ResourceT]:
    """Return what a region offers; of images, also those of the organization."""
    query = {"organizationID": api.scope.organization or None} if resource_type.name == IMAGE.name else None
    path = resource_type.path.format(regionID=region)
    return await api.session.get(resource_type.service, path, list[resource_type.read_type], query)  # type: ignore[name-defined]


async def find_in_region(api: ScopedSession, resource_type: ResourceType[ResourceT], region: str, name: str) -> str:
    """Return the id of a flavor or image of a region, by name or id."""
    found = await list_in_region(api, resource_type, region)
    return str(match_one(found, name, resource_type.name).metadata.id)


async def find_offer(
    api: ScopedSession, resource_type: ResourceType[ResourceT], name: str, region: str | None
) -> Offer[ResourceT]:
    """Return a flavor or image by name or id, in a region or in the only one that has it."""
    found = await _all(api, resource_type, region)
    matching = [each for each in found if name in {each.item.metadata.id, each.item.metadata.name}]
    if len(regions := sorted({each.region_name for each in matching})) > 1:
        raise Unusable(f"The {resource_type.name} {name} exists in {' and '.join(regions)}: choose one with --region.")
    item = match_one([each.item for each in matching or found], name, resource_type.name)
    return next(each for each in matching if each.item is item)


async def list_offers(
    api: ScopedSession,
    resource_type: ResourceType[ResourceT],
    region: str | None,
    output: Format,
    *,
    is_sorted: bool = False,
) -> None:
    """Print the flavors or images of a region, or of all regions; in the order of the API if that is sorted."""
    found = await _all(api, resource_type, region)
    columns = _with_region(resource_type.columns, {id(each.item): each.region_name for each in found})
    empty = f"No {resource_type.name} found."
    show_many([each.item for each in found], columns, output, empty=empty, is_sorted=is_sorted)


async def show_offer(
    api: ScopedSession, resource_type: ResourceType[ResourceT], name: str, region: str | None, output: Format
) -> None:
    found = await find_offer(api, resource_type, name, region)
    columns = _with_region(resource_type.details, {id(found.item): found.region_name})
    others = await list_in_region(api, resource_type, found.region) if output == "name" else ()
    show_one(found.item, columns, output, others)


async def show_image(api: ScopedSession, region: str, image: "ImageRead", output: Format) -> None:
    """Print an image of a region that was just created."""
    others = await list_in_region(api, IMAGE, region) if output == "name" else ()
    show_one(image, IMAGE.details, output, others)


async def _all(
    api: ScopedSession, resource_type: ResourceType[ResourceT], region: str | None
) -> list[Offer[ResourceT]]:
    if region is None:
        regions = await api.session.list_all(REGION.service, REGION.path, NamedResource, paged=False)
    else:
        regions = [await find_named(api, REGION, region)]
    return [
        Offer(item, each.metadata.id, each.metadata.name)
        for each in sorted(regions, key=lambda each: each.metadata.name)
        for item in await list_in_region(api, resource_type, each.metadata.id)
    ]


def _with_region(columns: Columns[ResourceT], regions: Mapping[int, str]) -> Columns[ResourceT]:
    """Return columns with the region after the first one; `regions` by the item's identity in memory."""
    first, *rest = columns.items()
    return dict([first, ("REGION", lambda item: regions[id(item)]), *rest])


async def wait_ready(api: ScopedSession, region: str, image: "ImageRead", wait: WaitOptions) -> "ImageRead":
    """Return an image as it is, or when instances can be created from it; raise if the image has failed."""
    if not wait.wait:
        return image

    async def read() -> "ImageRead":
        return match_one(await list_in_region(api, IMAGE, region), image.metadata.id, IMAGE.name)

    return await wait_until(
        read,
        lambda now: now.status.state == "ready",
        lambda now: now.status.state == "failed",
        limit_s=wait.limit_s,
        command=IMAGE.show_command(image.metadata.name),
        progress=lambda now: f"{now.metadata.name} is {now.status.state}",
        remedy="delete it, and try again",
    )
