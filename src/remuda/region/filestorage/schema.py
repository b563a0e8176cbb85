"""Schema of file storage and its classes. A missing field keeps the current value; null is rejected."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from remuda.http.schema import Id, ListQuery, Parameters, Wire
from remuda.region.kinds.filestorage import DayOfWeek, FileProtocol, Interval
from remuda.resources.schema import MetadataRead, MetadataWrite, ProjectMetadataRead, Provisioning


class NfsWire(Wire, frozen=True):
    """Options of NFS."""

    root_squash: Annotated[bool, msgspec.Meta(description="Map root of a client to an anonymous user.")]


class StorageTypeWire(Wire, frozen=True):
    """The protocol, with its options."""

    nfs: NfsWire | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="NFS")


class AttachmentsWire(Wire, frozen=True):
    """The networks from which it can be mounted."""

    network_ids: Annotated[tuple[str, ...], msgspec.Meta(max_length=64)]


class ScheduleWire(Wire, frozen=True):
    """The schedule of snapshots. Each interval requires certain fields and rejects the others."""

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
    """The number of snapshots that are kept."""

    keep: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class PolicyWire(Wire, frozen=True):
    """A named snapshot policy."""

    name: Annotated[str, msgspec.Meta(max_length=19, pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$", examples=["nightly"])]
    schedule: ScheduleWire
    retention: RetentionWire


class StorageSpecWire(Wire, frozen=True, kw_only=True):
    """The writable spec of file storage."""

    size_gib: int = msgspec.field(name="sizeGiB")
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

    organization_id: Id
    project_id: Id
    region_id: Id
    storage_class_id: Annotated[str, msgspec.Meta(max_length=253)]


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

    capacity_bytes: int
    used_bytes: int | None = None
    updated_at: datetime | None = None


class AttachmentStatusRead(Wire, frozen=True):
    """The status of an attachment, and how to mount it."""

    network_id: str
    provisioning_status: Provisioning
    mount_source: str = ""
    mount_options: Mapping[str, str] = {}


class PolicyStatusRead(Wire, frozen=True):
    """The status of a snapshot policy."""

    name: str
    provisioning_status: Provisioning
    message: str = ""


class StorageStatusRead(Wire, frozen=True):
    """The status of file storage."""

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
    """The path of file storage."""

    storage: Id


class ClassSpecRead(Wire, frozen=True):
    """The spec of a class."""

    region_id: str
    protocols: tuple[FileProtocol, ...]
    parallelism: Annotated[int, msgspec.Meta(ge=1, description="Number of addresses on each network.")]


class ClassRead(Wire, frozen=True):
    """A class of file storage."""

    metadata: MetadataRead
    spec: ClassSpecRead


class ClassQuery(ListQuery, frozen=True, rename={"continue_": "continue", "regions": "regionID"}):
    """Query for classes."""

    regions: Annotated[tuple[Id, ...], msgspec.Meta(description="Only of these regions.")] = ()
