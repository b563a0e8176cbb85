"""What clients read of regions and of what their clouds offer, from every service that shows it."""

from typing import Annotated, Literal

import msgspec

from remuda.http.routes import Wire
from remuda.providers.contract.catalogue import Architecture, ImageState, Vendor, Virtualization
from remuda.providers.contract.provider import ProviderType
from remuda.resources.wire import MetadataRead, StaticMetadataRead

_Word = Annotated[str, msgspec.Meta(max_length=255)]
_Version = Annotated[str, msgspec.Meta(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+$", max_length=255)]

SoftwareVersions = Annotated[dict[_Word, _Version], msgspec.Meta(max_length=64)]
"""Which release of what is on an image, by the name of the software."""


class RegionFeatures(Wire, frozen=True, omit_defaults=False):
    """What a region can do."""

    physical_networks: Annotated[bool, msgspec.Meta(description="Networks can be joined to hardware.")]
    capabilities: Annotated[
        tuple[str, ...], msgspec.Meta(description="What its provider has, such as load_balancers; nothing else works.")
    ]


class RegionSpecWire(Wire, frozen=True):
    """What a region is."""

    type: ProviderType
    features: RegionFeatures


class RegionRead(Wire, frozen=True):
    """A region."""

    metadata: MetadataRead
    spec: RegionSpecWire


class GpuWire(Wire, frozen=True):
    """The GPUs of a flavor."""

    vendor: Vendor
    model: str
    memory: Annotated[int, msgspec.Meta(description="GiB of each logical one.")]
    physical_count: int
    logical_count: int


class FlavorSpecWire(Wire, frozen=True, kw_only=True):
    """A size of server."""

    cpus: int
    cpu_family: str = ""
    memory: Annotated[int, msgspec.Meta(description="GiB.")]
    disk: Annotated[int, msgspec.Meta(description="GB.")]
    architecture: Architecture
    baremetal: bool = False
    pinned_only: Annotated[
        bool, msgspec.Meta(description="A server of it has to say on which piece of infrastructure it goes.")
    ] = False
    gpu: GpuWire | None = None
    free: Annotated[int, msgspec.Meta(description="So many more fit, as of a few seconds ago.")] | None = None


class FlavorRead(Wire, frozen=True):
    """A flavor."""

    metadata: StaticMetadataRead
    spec: FlavorSpecWire


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
