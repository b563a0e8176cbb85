"""What clients send and read of images."""

from typing import Annotated, Literal

import msgspec

from remuda.http.routes import Id, Parameters, Wire
from remuda.kernel.secrets import Secret
from remuda.providers.contract.catalogue import Architecture, ImageState, Vendor, Virtualization
from remuda.resources.wire import MetadataWrite, StaticMetadataRead

__all__ = [
    "ImageCreate",
    "ImageCreateSpec",
    "ImageGpuWire",
    "ImageOsWire",
    "ImagePath",
    "ImageQuery",
    "ImageRead",
    "ImageSpecRead",
    "ImageStatusRead",
    "SnapshotCreate",
    "SnapshotCreateSpec",
    "SnapshotPath",
    "SoftwareVersions",
]

_Word = Annotated[str, msgspec.Meta(max_length=255)]
_Version = Annotated[str, msgspec.Meta(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+$", max_length=255)]

SoftwareVersions = Annotated[dict[_Word, _Version], msgspec.Meta(max_length=64)]
"""Which release of what is on an image, by the name of the software."""


class ImageOsWire(Wire, frozen=True, kw_only=True):
    """The system on an image."""

    kernel: Literal["linux"]
    family: Annotated[_Word, msgspec.Meta(description="Such as debian: what its packages are.")]
    distro: Annotated[_Word, msgspec.Meta(description="Such as ubuntu.")]
    variant: Annotated[_Word, msgspec.Meta(description="Such as server.")] = ""
    codename: _Word = ""
    version: _Word


class ImageGpuWire(Wire, frozen=True, kw_only=True):
    """The GPUs that an image has drivers for."""

    vendor: Vendor
    driver: Annotated[_Word, msgspec.Meta(description="The driver's version.")]
    models: Annotated[tuple[_Word, ...], msgspec.Meta(max_length=64, description="At least one.")] = ()


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


class ImageSpecRead(Wire, frozen=True, kw_only=True):
    """What an image is."""

    architecture: Architecture
    size_gib: Annotated[int, msgspec.Meta(description="As large a disk it needs; 0 while that is not known.")] = (
        msgspec.field(name="sizeGiB")
    )
    virtualization: Virtualization
    os: ImageOsWire
    software_versions: SoftwareVersions = msgspec.field(default_factory=dict)
    gpu: ImageGpuWire | None = None


class ImageStatusRead(Wire, frozen=True):
    """How far an image is."""

    state: ImageState


class ImageRead(Wire, frozen=True):
    """An image."""

    metadata: StaticMetadataRead
    spec: ImageSpecRead
    status: ImageStatusRead


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
