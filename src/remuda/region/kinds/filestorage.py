"""File storage as it is stored, with its snapshot policies, and the classes and provisioners that operators write.

File storage belongs to a project and references the networks that it is attached to. Sizes are bytes. Labels of a class
name its region and, unless it is for all of them, its organization.
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from remuda.kernel.tags import Tag
from remuda.region.kinds.common import UNIKORN_GROUP, VERSION, IpRange, PartStatus
from remuda.resources.conventions import PROJECT, Conditions, LifecycleStatus, nonempty
from remuda.store.kinds import Index, Kind, Reference, keyed
from remuda.store.objects import Resource, StoredStruct

Interval = Literal["hourly", "daily", "weekly", "monthly"]

DayOfWeek = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class SnapshotSchedule(StoredStruct, frozen=True):
    """Time of a snapshot, as far as the interval leaves it open."""

    interval: Interval
    time_of_day: str = ""
    """UTC, such as `04:00Z`."""
    day_of_week: DayOfWeek | None = None
    day_of_month: int | None = None


class SnapshotRetention(StoredStruct, frozen=True):
    """Number of snapshots that are kept."""

    keep: int


class SnapshotPolicy(StoredStruct, frozen=True):
    """Schedule and retention, by name."""

    name: str
    schedule: SnapshotSchedule
    retention: SnapshotRetention


class Attachment(StoredStruct, frozen=True):
    """Network from which file storage can be mounted, with its addresses there."""

    network_id: str = msgspec.field(name="networkID")
    segmentation_id: int | None = msgspec.field(default=None, name="segmentationID")
    ip_range: IpRange | None = None


class Nfs(StoredStruct, frozen=True, omit_defaults=False):
    """Options of NFS."""

    root_squash: bool = True


class FileStorageSpec(StoredStruct, frozen=True):
    """Desired state of file storage."""

    storage_class_id: str = msgspec.field(name="storageClassID")
    size: int
    attachments: tuple[Attachment, ...] = ()
    default_snapshot_protection_enabled: bool | None = None
    """None, in objects older than the field, counts as true."""
    snapshot_policies: Annotated[tuple[SnapshotPolicy, ...], keyed("name")] = ()
    """With the default one, if the protection is on."""
    nfs: Nfs | None = None
    operation: str = ""
    """Operation that created it, under whose name its quota is reserved."""
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class AttachmentStatus(StoredStruct, frozen=True):
    """Observed state of an attachment."""

    network_id: str = msgspec.field(name="networkID")
    provisioning_status: PartStatus
    message: str
    segmentation_id: int | None = msgspec.field(default=None, name="segmentationID")
    ip_range: IpRange | None = None


class SnapshotPolicyStatus(StoredStruct, frozen=True):
    """Observed state of a snapshot policy."""

    name: str
    conditions: Conditions = ()


class FileStorageStatus(LifecycleStatus, frozen=True):
    """Observed state of file storage."""

    size: int | None = None
    """Observed bytes."""
    mount_path: str = ""
    attachments: Annotated[tuple[AttachmentStatus, ...], keyed("networkID")] = ()
    snapshot_policies: Annotated[tuple[SnapshotPolicyStatus, ...], keyed("name")] = ()
    usage: int | None = None
    """Bytes in use."""
    usage_timestamp: datetime | None = None
    provider_id: str = ""
    """Id at the provider; empty until it was observed there."""


class FileStorage(Resource, frozen=True):
    """File storage of a project. A label names its region."""

    spec: FileStorageSpec
    status: FileStorageStatus = FileStorageStatus()


def _networks(storage: FileStorage) -> list[str]:
    return [each.network_id for each in storage.spec.attachments]


FILE_STORAGE = Kind(
    type=FileStorage,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="filestorages",
    counted_in=PROJECT,
    references=(Reference(target=f"networks.{UNIKORN_GROUP}", names=_networks),),
    indexes=(
        Index(name="network", values=_networks),
        Index(name="operation", values=lambda storage: nonempty(storage.spec.operation)),
    ),
    columns={"Status": '.status.conditions[?(@.type=="Available")].reason', "Size": ".spec.size"},
)
"""Indexed by labels, network and operation."""


FileProtocol = Literal["nfsv3", "nfsv4"]


class FileStorageClassSpec(StoredStruct, frozen=True):
    """Properties of a class of file storage."""

    provisioner: str
    protocols: tuple[FileProtocol, ...] = ()
    parallelism: int = 4
    """Number of its addresses on each network."""


class FileStorageClass(Resource, frozen=True):
    """Class of file storage that a region offers."""

    spec: FileStorageClassSpec


class ConfigName(StoredStruct, frozen=True):
    """Reference to a configuration in the cluster that stores the objects."""

    namespace: str
    name: str


class FileStorageProvisionerSpec(StoredStruct, frozen=True):
    """Configuration of a provisioner."""

    config_ref: ConfigName | None = None


class FileStorageProvisioner(Resource, frozen=True):
    """Provisioner of file storage."""

    spec: FileStorageProvisionerSpec = FileStorageProvisionerSpec()


FILE_STORAGE_CLASS = Kind(
    type=FileStorageClass,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="filestorageclasses",
    uncounted="configured by the operator",
    columns={"Protocols": ".spec.protocols"},
)

FILE_STORAGE_PROVISIONER = Kind(
    type=FileStorageProvisioner,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="filestorageprovisioners",
    uncounted="configured by the operator",
)
