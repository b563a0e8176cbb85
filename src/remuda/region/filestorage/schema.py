"""Schema of file storage and its classes. A missing field keeps the current value; null is rejected."""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from remuda.http.schema import Id, Moment, NamedListQuery, Parameters, Uuid, Wire
from remuda.region.kinds.filestorage import DayOfWeek, FileProtocol, Interval
from remuda.resources.schema import (
    MetadataRead,
    MetadataWrite,
    OrganizationId,
    ProjectId,
    ProjectMetadataRead,
    Provisioning,
    RegionId,
)


class NfsWire(Wire, frozen=True):
    """Options of NFS."""

    root_squash: Annotated[
        bool, msgspec.Meta(description="Map root of a client to an anonymous user.", examples=[True])
    ]


class StorageTypeWire(Wire, frozen=True):
    """The protocol, with its options."""

    nfs: Annotated[
        NfsWire | msgspec.UnsetType, msgspec.Meta(description="For NFS.", examples=[{"rootSquash": True}])
    ] = msgspec.field(default=msgspec.UNSET, name="NFS")


class AttachmentsWire(Wire, frozen=True):
    """The networks from which it can be mounted."""

    network_ids: Annotated[
        tuple[str, ...],
        msgspec.Meta(
            max_length=64, description="Networks, by id.", examples=[["a7c3e5f1-2b4d-4e6f-8a9b-0c1d2e3f4a01"]]
        ),
    ]


class ScheduleWire(Wire, frozen=True):
    """The schedule of snapshots. Each interval requires certain fields and rejects the others."""

    interval: Annotated[Interval, msgspec.Meta(description="How often a snapshot is taken.", examples=["daily"])]
    time_of_day: (
        Annotated[
            str,
            msgspec.Meta(
                pattern="^([01][0-9]|2[0-3]):[0-5][0-9]Z$", description="UTC; for all but hourly.", examples=["04:00Z"]
            ),
        ]
        | None
    ) = None
    day_of_week: Annotated[DayOfWeek | None, msgspec.Meta(description="For weekly.")] = None
    day_of_month: Annotated[int, msgspec.Meta(ge=1, le=28, description="For monthly.")] | None = None


class RetentionWire(Wire, frozen=True):
    """The number of snapshots that are kept."""

    keep: Annotated[
        int,
        msgspec.Meta(
            ge=1, le=2**31 - 1, description="Number of snapshots that are kept; older ones are deleted.", examples=[7]
        ),
    ]


class PolicyWire(Wire, frozen=True):
    """A named snapshot policy."""

    name: Annotated[
        str,
        msgspec.Meta(
            max_length=19,
            pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$",
            examples=["nightly"],
            description="Name of the policy, which identifies it.",
        ),
    ]
    schedule: ScheduleWire
    retention: RetentionWire


class StorageSpecWire(Wire, frozen=True, kw_only=True):
    """The writable spec of file storage."""

    size_gib: Annotated[int, msgspec.Meta(description="Size in GiB.", examples=[100])] = msgspec.field(name="sizeGiB")
    storage_type: StorageTypeWire
    attachments: Annotated[AttachmentsWire | msgspec.UnsetType, msgspec.Meta(description="By default none.")] = (
        msgspec.UNSET
    )
    default_snapshot_protection_enabled: Annotated[
        bool | msgspec.UnsetType,
        msgspec.Meta(
            description="A daily snapshot, kept for a week. By default the current value, for new storage true."
        ),
    ] = msgspec.UNSET
    snapshot_policies: (
        Annotated[tuple[PolicyWire, ...], msgspec.Meta(max_length=4, description="By default the current ones.")]
        | msgspec.UnsetType
    ) = msgspec.UNSET


class StorageCreateSpec(StorageSpecWire, frozen=True, kw_only=True):
    """The spec of new file storage."""

    organization_id: OrganizationId
    project_id: ProjectId
    region_id: RegionId
    storage_class_id: Annotated[
        str,
        msgspec.Meta(
            max_length=253,
            description="Class of the storage, in the region.",
            examples=["f4d2b6a8-9c1e-4b3d-8f5a-7e6c5d4b3a01"],
        ),
    ]


class StorageCreate(Wire, frozen=True):
    """The request to create file storage."""

    metadata: MetadataWrite
    spec: StorageCreateSpec


class StorageUpdate(Wire, frozen=True):
    """The request to update file storage."""

    metadata: MetadataWrite
    spec: StorageSpecWire


class UsageRead(Wire, frozen=True):
    """The usage of file storage."""

    capacity_bytes: Annotated[int, msgspec.Meta(description="Size in bytes.")]
    used_bytes: Annotated[int | None, msgspec.Meta(description="Bytes in use, if they have been measured.")] = None
    updated_at: Annotated[Moment | None, msgspec.Meta(description="Time of the measurement.")] = None


class AttachmentStatusRead(Wire, frozen=True):
    """The status of an attachment, and how to mount it."""

    network_id: Annotated[Uuid, msgspec.Meta(description="Network of the attachment.")]
    provisioning_status: Annotated[Provisioning, msgspec.Meta(description="Progress towards the desired state.")]
    mount_source: Annotated[str, msgspec.Meta(description="What to mount, such as 192.168.0.3:/export.")] = ""
    mount_options: Annotated[
        Mapping[str, str], msgspec.Meta(description="Options to mount it with, by name; the value may be empty.")
    ] = {}


class PolicyStatusRead(Wire, frozen=True):
    """The status of a snapshot policy."""

    name: Annotated[str, msgspec.Meta(description="Name of the policy.")]
    provisioning_status: Annotated[Provisioning, msgspec.Meta(description="Progress towards the desired state.")]
    message: Annotated[str, msgspec.Meta(description="What prevents it, if anything does.")] = ""


class StorageStatusRead(Wire, frozen=True):
    """The status of file storage."""

    region_id: Annotated[Uuid, msgspec.Meta(description="Region of the storage.")]
    storage_class_id: Annotated[Uuid, msgspec.Meta(description="Class of the storage.")]
    snapshot_policies: Annotated[
        tuple[PolicyStatusRead, ...], msgspec.Meta(description="Status of each snapshot policy.")
    ]
    usage: UsageRead | None = None
    attachments: Annotated[
        tuple[AttachmentStatusRead, ...], msgspec.Meta(description="Status of each attachment.")
    ] = ()


class StorageRead(Wire, frozen=True):
    """File storage."""

    metadata: ProjectMetadataRead
    spec: StorageSpecWire
    status: StorageStatusRead


class StoragePath(Parameters, frozen=True, rename={"storage": "filestorageID"}):
    """The path of file storage."""

    storage: Annotated[Id, msgspec.Meta(description="Id of the file storage.")]


class ClassSpecRead(Wire, frozen=True):
    """The spec of a class."""

    region_id: Annotated[Uuid, msgspec.Meta(description="Region of the class.")]
    protocols: Annotated[tuple[FileProtocol, ...], msgspec.Meta(description="Protocols that the class supports.")]
    parallelism: Annotated[int, msgspec.Meta(ge=1, description="Number of addresses on each network.")]


class ClassRead(Wire, frozen=True):
    """A class of file storage."""

    metadata: MetadataRead
    spec: ClassSpecRead


class ClassQuery(NamedListQuery, frozen=True, rename={"continue_": "continue", "regions": "regionID"}):
    """Query for classes."""

    regions: Annotated[tuple[Id, ...], msgspec.Meta(description="Only of these regions.")] = ()
