"""Schema of metadata, regions, flavors and images, as all services show them."""

from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Id, Moment, Parameters, Uuid, Wire
from remuda.kernel.names import DISPLAY_NAME
from remuda.providers.contract.common import Architecture, ImageState, ProviderType, Vendor, Virtualization

Name = Annotated[
    str,
    msgspec.Meta(
        pattern=DISPLAY_NAME,
        min_length=1,
        max_length=63,
        description="A display name of letters, digits, '-', '_' and '.'.",
        examples=["web"],
    ),
]
"""A display name that is also a valid label value."""
OrganizationId = Annotated[
    Id, msgspec.Meta(description="Id of the organization.", examples=["c1d5e9f3-7a2b-4c6d-8e0f-1a2b3c4d5e01"])
]
"""The id of an organization in a request."""
ProjectId = Annotated[
    Id, msgspec.Meta(description="Id of the project.", examples=["d2e6f0a4-8b3c-4d7e-9f1a-2b3c4d5e6f01"])
]
"""The id of a project in a request."""
RegionId = Annotated[
    Id, msgspec.Meta(description="Id of the region.", examples=["cbe661fd-c828-5eea-82c1-963eac99c9d5"])
]
"""The id of a region in a request."""
NetworkId = Annotated[
    Id, msgspec.Meta(description="Id of the network.", examples=["a7c3e5f1-2b4d-4e6f-8a9b-0c1d2e3f4a01"])
]
"""The id of a network in a request."""
FlavorId = Annotated[
    Id, msgspec.Meta(description="Id of the flavor.", examples=["a1f0c0de-0001-4000-8000-000000000001"])
]
"""The id of a flavor in a request."""
ImageId = Annotated[Id, msgspec.Meta(description="Id of the image.", examples=["b1f0c0de-0006-4000-8000-000000000006"])]
"""The id of an image in a request."""
Text = Annotated[str, msgspec.Meta(max_length=4096)]
"""A text of limited length."""
Provisioning = Literal["pending", "provisioning", "provisioned", "deprovisioning", "error"]
"""The progress of an object towards its desired state."""
Health = Literal["unknown", "healthy", "degraded", "error"]
"""The health of an object."""


class TagWire(Wire, frozen=True):
    """A name and a value, both chosen by the user."""

    name: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=255, description="Name of the tag; each name at most once.", examples=["team"]
        ),
    ]
    value: Annotated[str, msgspec.Meta(max_length=1024, description="Value of the tag.", examples=["storefront"])]


class MetadataWrite(Wire, frozen=True):
    """The part of a resource that clients write, besides its spec."""

    name: Name
    description: Annotated[
        Text | msgspec.UnsetType,
        msgspec.Meta(description="Description for users.", examples=["For the web shop."]),
    ] = msgspec.UNSET
    tags: Annotated[
        tuple[TagWire, ...],
        msgspec.Meta(
            max_length=256,
            description="Tags, each name once. An update replaces all of them.",
            examples=[[{"name": "team", "value": "storefront"}]],
        ),
    ] = ()


class Detail(Wire, frozen=True):
    """The reason of a status."""

    reason: Annotated[str, msgspec.Meta(description="Reason, for programs.")]
    message: Annotated[str, msgspec.Meta(description="Reason, for users.")]


class StaticMetadataRead(Wire, frozen=True, kw_only=True):
    """Metadata of an object of a provider that is not stored here."""

    id: Annotated[
        str,
        msgspec.Meta(
            description="Id at the provider: a UUID, but for flavors of a Kubernetes cluster.",
            examples=["11111111-1111-1111-1111-111111111111"],
        ),
    ]
    name: Annotated[str, msgspec.Meta(description="The display name at the provider.")]
    description: Annotated[str, msgspec.Meta(description="Description by the provider.")] = ""
    tags: Annotated[tuple[TagWire, ...], msgspec.Meta(description="Tags, if it has any.")] = ()
    creation_time: Annotated[
        Moment, msgspec.Meta(description="Time of the creation; in the year 1 if it is not known.")
    ]
    created_by: Annotated[str, msgspec.Meta(description="Actor who created it, if it is known.")] = ""
    modified_time: Annotated[
        Moment | None, msgspec.Meta(description="Time of the last update; absent if there was none.")
    ] = None
    modified_by: Annotated[str, msgspec.Meta(description="Actor of the last update, if it is known.")] = ""


class MetadataRead(Wire, frozen=True, kw_only=True):
    """Metadata of a resource of the whole system."""

    id: Annotated[Uuid, msgspec.Meta(description="Id of the object.")]
    name: Name
    description: Annotated[str | msgspec.UnsetType, msgspec.Meta(description="Description, as it was written.")] = (
        msgspec.UNSET
    )
    tags: Annotated[tuple[TagWire, ...], msgspec.Meta(description="Tags of users and services.")] = ()
    creation_time: Annotated[Moment, msgspec.Meta(description="Time of the creation.")]
    created_by: Annotated[str, msgspec.Meta(description="Actor who created it.")] = ""
    created_by_name: Annotated[
        str, msgspec.Meta(description="Name of a service account that created it, at that time.")
    ] = ""
    modified_time: Annotated[
        Moment | None, msgspec.Meta(description="Time of the last update; absent if there was none.")
    ] = None
    modified_by: Annotated[str, msgspec.Meta(description="Actor of the last update.")] = ""
    modified_by_name: Annotated[
        str, msgspec.Meta(description="Name of a service account that made the last update, at that time.")
    ] = ""
    deletion_time: Annotated[
        Moment | None,
        msgspec.Meta(description="Time at which the deletion was requested; absent unless it is being deleted."),
    ] = None
    provisioning_status: Annotated[Provisioning, msgspec.Meta(description="Progress towards the desired state.")]
    provisioning_status_detail: Detail | None = None
    health_status: Annotated[Health, msgspec.Meta(description="Whether it works.")]
    health_status_detail: Detail | None = None


class OrganizationMetadataRead(MetadataRead, frozen=True, kw_only=True):
    """Metadata of a resource of an organization."""

    organization_id: Annotated[Uuid, msgspec.Meta(description="Organization of the object.")]


class ProjectMetadataRead(OrganizationMetadataRead, frozen=True, kw_only=True):
    """Metadata of a resource of a project."""

    project_id: Annotated[Uuid, msgspec.Meta(description="Project of the object.")]


class VersionRead(Wire, frozen=True, omit_defaults=False):
    """The name and release of a service."""

    name: Annotated[str, msgspec.Meta(description="Name of the service.")]
    version: Annotated[str, msgspec.Meta(description="Release of the service.")]


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

    type: Annotated[ProviderType, msgspec.Meta(description="Type of the provider.")]
    features: RegionFeatures
    disabled: Annotated[bool, msgspec.Meta(description="Nothing new can be created in it.")] = False


class RegionRead(Wire, frozen=True):
    """A region."""

    metadata: MetadataRead
    spec: RegionSpecWire


class GpuWire(Wire, frozen=True):
    """The GPUs of a flavor."""

    vendor: Annotated[Vendor, msgspec.Meta(description="Vendor of the GPUs.")]
    model: Annotated[str, msgspec.Meta(description="Model of the GPUs.")]
    memory: Annotated[int, msgspec.Meta(description="GiB of each logical one.")]
    physical_count: Annotated[int, msgspec.Meta(description="Number of GPUs.")]
    logical_count: Annotated[int, msgspec.Meta(description="Number of GPUs that the operating system sees.")]


class FlavorSpecWire(Wire, frozen=True, kw_only=True):
    """A size of server."""

    cpus: Annotated[int, msgspec.Meta(description="Number of virtual CPUs; of a bare-metal flavor, of cores.")]
    cpu_family: Annotated[str, msgspec.Meta(description="Family of the CPU, if the provider tells it.")] = ""
    memory: Annotated[int, msgspec.Meta(description="GiB.")]
    disk: Annotated[int, msgspec.Meta(description="GB.")]
    architecture: Annotated[
        Architecture, msgspec.Meta(description="Architecture of the CPU: it must be that of the image.")
    ]
    baremetal: Annotated[
        bool, msgspec.Meta(description="The server is a machine of its own, without virtualization.")
    ] = False
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

    kernel: Annotated[Literal["linux"], msgspec.Meta(description="Kernel of the operating system.", examples=["linux"])]
    family: Annotated[_Word, msgspec.Meta(description="The package family, such as debian.", examples=["debian"])]
    distro: Annotated[_Word, msgspec.Meta(description="Such as ubuntu.", examples=["ubuntu"])]
    variant: Annotated[_Word, msgspec.Meta(description="Such as server.")] = ""
    codename: Annotated[_Word, msgspec.Meta(description="Code name of the release.", examples=["noble"])] = ""
    version: Annotated[_Word, msgspec.Meta(description="Version of the operating system.", examples=["24.04"])]


class ImageGpuWire(Wire, frozen=True, kw_only=True):
    """The GPUs for which an image has drivers."""

    vendor: Annotated[Vendor, msgspec.Meta(description="Vendor of the GPUs.", examples=["NVIDIA"])]
    driver: Annotated[_Word, msgspec.Meta(description="The driver's version.")]
    models: Annotated[tuple[_Word, ...], msgspec.Meta(max_length=64, description="At least one.")] = ()


class ImageSpecRead(Wire, frozen=True, kw_only=True):
    """The spec of an image."""

    architecture: Annotated[
        Architecture, msgspec.Meta(description="Architecture of the CPU that the image is built for.")
    ]
    size_gib: Annotated[int, msgspec.Meta(description="The minimum size of the disk; 0 while that is unknown.")] = (
        msgspec.field(name="sizeGiB")
    )
    virtualization: Annotated[Virtualization, msgspec.Meta(description="Kind of server that the image can run on.")]
    os: ImageOsWire
    software_versions: Annotated[
        SoftwareVersions, msgspec.Meta(description="Versions of the software on the image, by its name.")
    ] = msgspec.field(default_factory=dict)
    gpu: ImageGpuWire | None = None


class ImageStatusRead(Wire, frozen=True):
    """The status of an image."""

    state: Annotated[
        ImageState,
        msgspec.Meta(
            description="Whether the image can be used (ready), will be (pending, creating), or never will (failed)."
        ),
    ]


class ImageRead(Wire, frozen=True):
    """An image."""

    metadata: StaticMetadataRead
    spec: ImageSpecRead
    status: ImageStatusRead


class OrganizationPath(Parameters, frozen=True, rename={"organization": "organizationID"}):
    """An organization."""

    organization: OrganizationId


class OrganizationRegionPath(OrganizationPath, frozen=True, rename={"region": "regionID"}):
    """A region, below an organization."""

    region: RegionId
