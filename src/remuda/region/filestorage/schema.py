"""What clients send and read of file storage and its classes.

Left out and null are not the same: null is refused where leaving something out means to keep it.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from remuda.http.schema import Id, ListQuery, Parameters, Wire
from remuda.region.kinds.filestorage import DayOfWeek, FileProtocol, Interval
from remuda.resources.schema import MetadataRead, MetadataWrite, ProjectMetadataRead, Provisioning


class NfsWire(Wire, frozen=True):
    """What only NFS asks for."""

    root_squash: Annotated[bool, msgspec.Meta(description="Whoever is root on a client is nobody on the storage.")]


class StorageTypeWire(Wire, frozen=True):
    """How it is mounted."""

    nfs: NfsWire | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="NFS")


class AttachmentsWire(Wire, frozen=True):
    """From where it can be mounted."""

    network_ids: Annotated[tuple[str, ...], msgspec.Meta(max_length=64)]


class ScheduleWire(Wire, frozen=True):
    """When a snapshot is taken. Each interval asks for what it leaves open, and for nothing else."""

    interval: Interval
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
    """How many snapshots are kept."""

    keep: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class PolicyWire(Wire, frozen=True):
    """A schedule with a name."""

    name: Annotated[str, msgspec.Meta(max_length=19, pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$", examples=["nightly"])]
    schedule: ScheduleWire
    retention: RetentionWire


class StorageSpecWire(Wire, frozen=True, kw_only=True):
    """What can be changed of file storage."""

    size_gib: int = msgspec.field(name="sizeGiB")
    storage_type: StorageTypeWire
    attachments: Annotated[
        AttachmentsWire | msgspec.UnsetType, msgspec.Meta(description="Left out, it is attached to nothing.")
    ] = msgspec.UNSET
    default_snapshot_protection_enabled: Annotated[
        bool | msgspec.UnsetType,
        msgspec.Meta(description="A snapshot every day, kept for a week. Left out: as it is; when it is new, true."),
    ] = msgspec.UNSET
    snapshot_policies: (
        Annotated[tuple[PolicyWire, ...], msgspec.Meta(max_length=4, description="Left out, they stay as they are.")]
        | msgspec.UnsetType
    ) = msgspec.UNSET


class StorageCreateSpec(StorageSpecWire, frozen=True, kw_only=True):
    """What new file storage is to be."""

    organization_id: Id
    project_id: Id
    region_id: Id
    storage_class_id: Annotated[str, msgspec.Meta(max_length=253)]


class StorageCreate(Wire, frozen=True):
    """File storage as it is asked for."""

    metadata: MetadataWrite
    spec: StorageCreateSpec


class StorageUpdate(Wire, frozen=True):
    """File storage as it is to be from now on."""

    metadata: MetadataWrite
    spec: StorageSpecWire


class UsageRead(Wire, frozen=True):
    """How full it is."""

    capacity_bytes: int
    used_bytes: int | None = None
    updated_at: datetime | None = None


class AttachmentStatusRead(Wire, frozen=True):
    """How far an attachment is, and how to mount from there."""

    network_id: str
    provisioning_status: Provisioning
    mount_source: str = ""
    mount_options: Mapping[str, str] = {}


class PolicyStatusRead(Wire, frozen=True):
    """How far a snapshot policy is."""

    name: str
    provisioning_status: Provisioning
    message: str = ""


class StorageStatusRead(Wire, frozen=True):
    """What is known of file storage."""

    region_id: str
    storage_class_id: str
    snapshot_policies: tuple[PolicyStatusRead, ...]
    usage: UsageRead | None = None
    attachments: tuple[AttachmentStatusRead, ...] = ()


class StorageRead(Wire, frozen=True):
    """File storage."""

    metadata: ProjectMetadataRead
    spec: StorageSpecWire
    status: StorageStatusRead


class StoragePath(Parameters, frozen=True, rename={"storage": "filestorageID"}):
    """File storage."""

    storage: Id


class ClassSpecRead(Wire, frozen=True):
    """What storage of a class is like."""

    region_id: str
    protocols: tuple[FileProtocol, ...]
    parallelism: Annotated[int, msgspec.Meta(ge=1, description="How many addresses it has on each network.")]


class ClassRead(Wire, frozen=True):
    """A class of file storage."""

    metadata: MetadataRead
    spec: ClassSpecRead


class ClassQuery(ListQuery, frozen=True, rename={"continue_": "continue", "regions": "regionID"}):
    """Which classes."""

    regions: Annotated[tuple[Id, ...], msgspec.Meta(description="Only of these regions.")] = ()
