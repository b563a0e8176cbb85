"""Routes of images. Images are created and deleted below their organization, as in version 1 of the API."""

from remuda.http.routes import AnyRoute, Route
from remuda.http.schema import NameQuery
from remuda.region.images import schema
from remuda.region.images.service import Images
from remuda.region.names import REGION, REGION_OF_ORGANIZATION, RegionPath, permission
from remuda.resources.schema import ImageRead, OrganizationRegionPath
from remuda.resources.service_info import DAY_S

IMAGES = f"{REGION}/images"
IMAGES_OF_ORGANIZATION = f"{REGION_OF_ORGANIZATION}/images"
"""The images of a region that an organization can use."""

ROUTES: list[AnyRoute] = [
    Route(
        method="GET",
        path=IMAGES,
        name="list_images",
        summary="List the images of a region",
        description="Images without an owner are listed for every caller, those of an organization for its readers.",
        scope="authenticated",
        path_type=RegionPath,
        query_type=schema.ImageQuery,
        response_type=list[ImageRead],
        service=Images,
        calls=Images.query,
    ),
    Route(
        method="GET",
        path=IMAGES_OF_ORGANIZATION,
        name="list_images_in",
        summary="List the images of a region that are ready for an organization",
        scope="organization",
        permission=permission("images", "read"),
        path_type=OrganizationRegionPath,
        query_type=NameQuery,
        response_type=list[ImageRead],
        max_age_s=DAY_S,
        service=Images,
        calls=Images.list_ready,
    ),
    Route(
        method="POST",
        path=IMAGES_OF_ORGANIZATION,
        name="import_image",
        summary="Import an image from a URL",
        description=(
            "The first 512 bytes are checked before the response. After it the whole image is fetched, checked again "
            "and uploaded to the region. Until it is ready, its state is pending or creating; if the import fails, it "
            "is failed."
        ),
        scope="organization",
        permission=permission("images", "create"),
        path_type=OrganizationRegionPath,
        body_type=schema.ImageCreate,
        response_type=ImageRead,
        service=Images,
        calls=Images.import_from,
    ),
    Route(
        method="DELETE",
        path=f"{IMAGES_OF_ORGANIZATION}/{{imageID}}",
        name="delete_image",
        summary="Delete an image",
        description="An image that a server was created from cannot be deleted. A running import is cancelled.",
        scope="organization",
        permission=permission("images", "delete"),
        path_type=schema.ImagePath,
        success=202,
        service=Images,
        calls=Images.delete,
    ),
]
