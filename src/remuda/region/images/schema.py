"""Schema of images."""

from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Id, NameQuery, Wire
from remuda.kernel.secrets import Secret
from remuda.providers.contract.common import Architecture, ImageState, Virtualization
from remuda.resources.schema import ImageGpuWire, ImageOsWire, MetadataWrite, OrganizationRegionPath, SoftwareVersions

_Word = Annotated[str, msgspec.Meta(max_length=255)]
_Version = Annotated[str, msgspec.Meta(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+$", max_length=255, examples=["v1.2.3"])]


class ImageCreateSpec(Wire, frozen=True, kw_only=True):
    """Source and properties of an image."""

    uri: Annotated[
        Secret,
        msgspec.Meta(
            description="URL of a raw disk with a master boot record, on a public server. It is never returned.",
            extra_json_schema={"format": "uri"},
            examples=["https://images.example.com/ubuntu-24.04.raw"],
        ),
    ]
    architecture: Annotated[
        Architecture,
        msgspec.Meta(description="Architecture of the CPU that the image is built for.", examples=["x86_64"]),
    ]
    virtualization: Annotated[
        Virtualization, msgspec.Meta(description="Kind of server that the image can run on.", examples=["virtualized"])
    ]
    os: ImageOsWire
    software_versions: Annotated[
        SoftwareVersions,
        msgspec.Meta(
            description="Versions of the software on the image, by its name.", examples=[{"kubernetes": "v1.33.2"}]
        ),
    ] = msgspec.field(default_factory=dict)
    gpu: ImageGpuWire | None = None


class ImageCreate(Wire, frozen=True):
    """An image to import."""

    metadata: MetadataWrite
    spec: ImageCreateSpec


class ServerSnapshotCreateSpec(Wire, frozen=True):
    """Spec of a snapshot: it has no fields, since a snapshot is like its server."""


class ServerSnapshotCreate(Wire, frozen=True):
    """A snapshot to create. Tags that belong to services are dropped."""

    metadata: MetadataWrite
    spec: ServerSnapshotCreateSpec


class ImageQuery(NameQuery, frozen=True, rename={"organizations": "organizationID"}):
    """Query of a list of images; without an organization, of those without an owner."""

    organizations: Annotated[
        tuple[str, ...],
        msgspec.Meta(description="Include images of these organizations, as far as the caller may read them."),
    ] = ()
    scope: (
        Annotated[
            Literal["owned", "available"],
            msgspec.Meta(description="Only images that these organizations own, or all that they can use."),
        ]
        | None
    ) = None
    status: Annotated[tuple[ImageState, ...], msgspec.Meta(description="Only images in one of these states.")] = ()


class ImagePath(OrganizationRegionPath, frozen=True, rename={"image": "imageID"}):
    """An image of an organization in a region."""

    image: Annotated[Id, msgspec.Meta(description="Id of the image.")]
