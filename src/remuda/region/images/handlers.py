"""The room's handlers: each asks the service and renders what it says."""

from remuda.http.routes import Call, Nothing
from remuda.region.images import schema as wire
from remuda.region.images.facade import ImageRoom
from remuda.region.images.rules import read_image
from remuda.region.names import OrganizationRegionPath, RegionPath
from remuda.resources import schema as offers


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
