"""The room's routes. Images are made and given up below their organization, as in the first generation of the API.

The room's handlers: each asks the service and renders what it says.
"""

from remuda.http.routes import AnyRoute, Call, Nothing, Route
from remuda.region.images import schema as wire
from remuda.region.images.facade import ImageRoom
from remuda.region.images.rules import read_image
from remuda.region.names import REGION, REGION_OF_ORGANIZATION, OrganizationRegionPath, RegionPath, permission
from remuda.resources import schema as offers
from remuda.resources.service_info import DAY_S


async def query(room: ImageRoom, call: Call[RegionPath, wire.ImageQuery, Nothing]) -> list[offers.ImageRead]:
    """List the images that a query asks for."""
    return [read_image(each) for each in await room.images.query(call.context, call.path.region, call.query)]


async def list_ready(room: ImageRoom, call: Call[OrganizationRegionPath, Nothing, Nothing]) -> list[offers.ImageRead]:
    """List the images that an organization can use now."""
    return [read_image(each) for each in await room.images.list_ready(call.context, call.path)]


async def import_image(
    room: ImageRoom, call: Call[OrganizationRegionPath, Nothing, wire.ImageCreate]
) -> offers.ImageRead:
    return read_image(await room.images.import_from(call.context, call.path, call.body))


async def delete(room: ImageRoom, call: Call[wire.ImagePath, Nothing, Nothing]) -> None:
    """Give an image up."""
    await room.images.delete(call.context, call.path)


async def create_snapshot(
    room: ImageRoom, call: Call[wire.SnapshotPath, Nothing, wire.SnapshotCreate]
) -> offers.ImageRead:
    """Make an image of a server."""
    return read_image(await room.snapshots.create(call.context, call.path.server, call.body.metadata))


IMAGES = f"{REGION}/images"
"""The images of a region."""
IMAGES_OF_ORGANIZATION = f"{REGION_OF_ORGANIZATION}/images"
"""The images of a region that an organization can use."""


def routes() -> list[AnyRoute]:
    """Return all of them."""
    return [
        Route(
            method="GET",
            path=IMAGES,
            name="list_images",
            summary="List the images of a region",
            description="Those that nobody owns are everybody's; its own an organization shows to its readers.",
            scope="authenticated",
            path_type=RegionPath,
            query_type=wire.ImageQuery,
            answer_type=list[offers.ImageRead],
            handler=query,
        ),
        Route(
            method="GET",
            path=IMAGES_OF_ORGANIZATION,
            name="list_images_in",
            summary="List the images of a region that an organization can use now",
            scope="organization",
            permission=permission("images", "read"),
            path_type=OrganizationRegionPath,
            answer_type=list[offers.ImageRead],
            max_age_s=DAY_S,
            handler=list_ready,
        ),
        Route(
            method="POST",
            path=IMAGES_OF_ORGANIZATION,
            name="import_image",
            summary="Have an image fetched from elsewhere",
            description=(
                "Its first 512 bytes are looked at before the answer; all of it is fetched after that, checked once "
                "more, and given to the region. Until it is ready it is pending or creating, and failed if it never "
                "will be."
            ),
            scope="organization",
            permission=permission("images", "create"),
            path_type=OrganizationRegionPath,
            body_type=wire.ImageCreate,
            answer_type=offers.ImageRead,
            handler=import_image,
        ),
        Route(
            method="DELETE",
            path=f"{IMAGES_OF_ORGANIZATION}/{{imageID}}",
            name="delete_image",
            summary="Give an image up",
            description="While a server is made of it, it stays. One that is being fetched is broken off.",
            scope="organization",
            permission=permission("images", "delete"),
            path_type=wire.ImagePath,
            success=202,
            handler=delete,
        ),
        Route(
            method="POST",
            path="/api/v2/servers/{serverID}/snapshot",
            name="snapshot_server",
            summary="Make an image of a server",
            description="It belongs to the server's organization, in which the caller also needs to create images.",
            scope="project",
            permission=permission("servers", "read"),
            path_type=wire.SnapshotPath,
            body_type=wire.SnapshotCreate,
            answer_type=offers.ImageRead,
            success=201,
            handler=create_snapshot,
        ),
    ]
