"""What clients read of regions and of what their clouds offer, from every service that shows it.

Metadata as clients send and read it, the same for every resource.
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from remuda.http.routes import Wire
from remuda.providers.contract.catalogue import Architecture, ImageState, Vendor, Virtualization
from remuda.providers.contract.provider import ProviderType

Name = Annotated[
    str,
    msgspec.Meta(
        pattern="^[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$",
        min_length=1,
        max_length=63,
        description="A name for people, of letters, digits, '-', '_' and '.'.",
    ),
]
"""A name for people that also fits a label."""
Text = Annotated[str, msgspec.Meta(max_length=4096)]
"""A page at most."""
Provisioning = Literal["pending", "provisioning", "provisioned", "deprovisioning", "error"]
"""How far an object's intent has become true."""
Health = Literal["unknown", "healthy", "degraded", "error"]
"""How an object is doing."""


class TagWire(Wire, frozen=True):
    """A name with a value, both chosen by the user."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    value: Annotated[str, msgspec.Meta(max_length=1024)]


class MetadataWrite(Wire, frozen=True):
    """What clients say about a resource besides its spec."""

    name: Name
    description: Text | msgspec.UnsetType = msgspec.UNSET
    tags: Annotated[tuple[TagWire, ...], msgspec.Meta(max_length=256)] = ()


class Detail(Wire, frozen=True):
    """Why a status is what it is."""

    reason: str
    message: str


class StaticMetadataRead(Wire, frozen=True, kw_only=True):
    """What clients read about something that a provider has and we do not store."""

    id: str
    name: Annotated[str, msgspec.Meta(description="A name for people, as the provider has it.")]
    description: str = ""
    tags: tuple[TagWire, ...] = ()
    creation_time: datetime
    created_by: str = ""
    modified_time: datetime | None = None
    modified_by: str = ""


class MetadataRead(Wire, frozen=True, kw_only=True):
    """What clients read about a resource of the whole system."""

    id: str
    name: Name
    description: str | msgspec.UnsetType = msgspec.UNSET
    tags: tuple[TagWire, ...] = ()
    creation_time: datetime
    created_by: str = ""
    modified_time: datetime | None = None
    modified_by: str = ""
    deletion_time: datetime | None = None
    provisioning_status: Provisioning
    provisioning_status_detail: Detail | None = None
    health_status: Health
    health_status_detail: Detail | None = None


class OrganizationMetadataRead(MetadataRead, frozen=True, kw_only=True):
    """What clients read about a resource of an organization."""

    organization_id: str


class ProjectMetadataRead(OrganizationMetadataRead, frozen=True, kw_only=True):
    """What clients read about a resource of a project."""

    project_id: str


class VersionRead(Wire, frozen=True, omit_defaults=False):
    """Which service answers, and which release of it."""

    name: str
    version: str


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
