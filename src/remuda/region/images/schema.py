"""What clients send and read of images."""

from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Id, Parameters, Wire
from remuda.kernel.secrets import Secret
from remuda.providers.contract.common import Architecture, ImageState, Virtualization
from remuda.resources.schema import ImageGpuWire, ImageOsWire, MetadataWrite, SoftwareVersions

_Word = Annotated[str, msgspec.Meta(max_length=255)]
_Version = Annotated[str, msgspec.Meta(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+$", max_length=255, examples=["v1.2.3"])]


class ImageCreateSpec(Wire, frozen=True, kw_only=True):
    """What an image is, and where to fetch it."""

    uri: Annotated[
        Secret,
        msgspec.Meta(
            description="Of a raw disk with a master boot record, on a public http or https server. Nobody is told it.",
            extra_json_schema={"format": "uri"},
        ),
    ]
    architecture: Architecture
    virtualization: Virtualization
    os: ImageOsWire
    software_versions: SoftwareVersions = msgspec.field(default_factory=dict)
    gpu: ImageGpuWire | None = None


class ImageCreate(Wire, frozen=True):
    """An image as it is asked for."""

    metadata: MetadataWrite
    spec: ImageCreateSpec


class SnapshotCreateSpec(Wire, frozen=True):
    """A snapshot is what its server is: there is nothing to choose."""


class SnapshotCreate(Wire, frozen=True):
    """An image of a server, as it is asked for. Tags that belong to services are left out."""

    metadata: MetadataWrite
    spec: SnapshotCreateSpec


class ImageQuery(Parameters, frozen=True, rename={"organizations": "organizationID"}):
    """Which images: without an organization, those that nobody owns."""

    organizations: Annotated[
        tuple[str, ...],
        msgspec.Meta(description="Also the images of these; one that the caller may not see into is passed over."),
    ] = ()
    scope: (
        Annotated[
            Literal["owned", "available"],
            msgspec.Meta(description="Only what these organizations own, or all that they can use."),
        ]
        | None
    ) = None
    status: Annotated[tuple[ImageState, ...], msgspec.Meta(description="Only those in one of these states.")] = ()


class ImagePath(
    Parameters, frozen=True, rename={"organization": "organizationID", "region": "regionID", "image": "imageID"}
):
    """An image in a region, as somebody of its organization asks for it."""

    organization: Id
    region: Id
    image: Id


class SnapshotPath(Parameters, frozen=True, rename={"server": "serverID"}):
    """The server whose disk becomes an image."""

    server: Id
