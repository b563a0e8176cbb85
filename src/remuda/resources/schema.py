"""Schema of metadata, regions, flavors and images, as all services show them."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Id, Parameters, Wire
from remuda.providers.contract.common import Architecture, ImageState, ProviderType, Vendor, Virtualization

Name = Annotated[
    str,
    msgspec.Meta(
        pattern="^[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$",
        min_length=1,
        max_length=63,
        description="A display name of letters, digits, '-', '_' and '.'.",
    ),
]
"""A display name that is also a valid label value."""
Text = Annotated[str, msgspec.Meta(max_length=4096)]
"""A text of limited length."""
Provisioning = Literal["pending", "provisioning", "provisioned", "deprovisioning", "error"]
"""The progress of an object towards its desired state."""
Health = Literal["unknown", "healthy", "degraded", "error"]
"""The health of an object."""


class TagWire(Wire, frozen=True):
    """A name and a value, both chosen by the user."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    value: Annotated[str, msgspec.Meta(max_length=1024)]


class MetadataWrite(Wire, frozen=True):
    """The part of a resource that clients write, besides its spec."""

    name: Name
    description: Text | msgspec.UnsetType = msgspec.UNSET
    tags: Annotated[tuple[TagWire, ...], msgspec.Meta(max_length=256)] = ()


class Detail(Wire, frozen=True):
    """The reason of a status."""

    reason: str
    message: str


class StaticMetadataRead(Wire, frozen=True, kw_only=True):
    """Metadata of an object of a provider that is not stored here."""

    id: str
    name: Annotated[str, msgspec.Meta(description="The display name at the provider.")]
    description: str = ""
    tags: tuple[TagWire, ...] = ()
    creation_time: datetime
    created_by: str = ""
    modified_time: datetime | None = None
    modified_by: str = ""


class MetadataRead(Wire, frozen=True, kw_only=True):
    """Metadata of a resource of the whole system."""

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
    """Metadata of a resource of an organization."""

    organization_id: str


class ProjectMetadataRead(OrganizationMetadataRead, frozen=True, kw_only=True):
    """Metadata of a resource of a project."""

    project_id: str


class VersionRead(Wire, frozen=True, omit_defaults=False):
    """The name and release of a service."""

    name: str
    version: str


_Word = Annotated[str, msgspec.Meta(max_length=255)]
_Version = Annotated[str, msgspec.Meta(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+$", max_length=255)]

SoftwareVersions = Annotated[dict[_Word, _Version], msgspec.Meta(max_length=64)]
"""The versions of the software on an image, by its name."""


class RegionFeatures(Wire, frozen=True, omit_defaults=False):
    """The features of a region."""

    physical_networks: Annotated[bool, msgspec.Meta(description="Networks can be joined to hardware.")]
    capabilities: Annotated[
        tuple[str, ...],
        msgspec.Meta(description="The capabilities of its provider, such as load_balancers; nothing else works."),
    ]


class RegionSpecWire(Wire, frozen=True):
    """The spec of a region."""

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
        bool, msgspec.Meta(description="A server with this flavor has to name its piece of infrastructure.")
    ] = False
    gpu: GpuWire | None = None
    free: (
        Annotated[int, msgspec.Meta(description="Number of further servers that fit, as of a few seconds ago.")] | None
    ) = None

    @property
    def disk_gib(self) -> int:
        """Size of the disk in whole GiB: the most that it can be, since the wire has whole GB, rounded down."""
        return ((self.disk + 1) * 10**9 - 1) // 2**30


class FlavorRead(Wire, frozen=True):
    """A flavor."""

    metadata: StaticMetadataRead
    spec: FlavorSpecWire


class ImageOsWire(Wire, frozen=True, kw_only=True):
    """The operating system on an image."""

    kernel: Literal["linux"]
    family: Annotated[_Word, msgspec.Meta(description="The package family, such as debian.")]
    distro: Annotated[_Word, msgspec.Meta(description="Such as ubuntu.")]
    variant: Annotated[_Word, msgspec.Meta(description="Such as server.")] = ""
    codename: _Word = ""
    version: _Word


class ImageGpuWire(Wire, frozen=True, kw_only=True):
    """The GPUs for which an image has drivers."""

    vendor: Vendor
    driver: Annotated[_Word, msgspec.Meta(description="The driver's version.")]
    models: Annotated[tuple[_Word, ...], msgspec.Meta(max_length=64, description="At least one.")] = ()


class ImageSpecRead(Wire, frozen=True, kw_only=True):
    """The spec of an image."""

    architecture: Architecture
    size_gib: Annotated[int, msgspec.Meta(description="The minimum size of the disk; 0 while that is unknown.")] = (
        msgspec.field(name="sizeGiB")
    )
    virtualization: Virtualization
    os: ImageOsWire
    software_versions: SoftwareVersions = msgspec.field(default_factory=dict)
    gpu: ImageGpuWire | None = None


class ImageStatusRead(Wire, frozen=True):
    """The status of an image."""

    state: ImageState


class ImageRead(Wire, frozen=True):
    """An image."""

    metadata: StaticMetadataRead
    spec: ImageSpecRead
    status: ImageStatusRead


class OrganizationPath(Parameters, frozen=True, rename={"organization": "organizationID"}):
    """An organization."""

    organization: Id


class OrganizationRegionPath(OrganizationPath, frozen=True, rename={"region": "regionID"}):
    """A region, below an organization."""

    region: Id
