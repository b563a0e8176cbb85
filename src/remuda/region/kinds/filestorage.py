"""File storage as it is stored. It belongs to a project, and keeps the networks that it is attached to.

Sizes are bytes.

When snapshots of file storage are taken, and how many are kept.

Which file storage an operator offers, and who provides it.

Operators write these. Labels say for which region and, if not for everybody, for which organization.
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from remuda.kernel.tags import Tag
from remuda.region.kinds.common import UNIKORN_GROUP, VERSION, IpRange, PartStatus
from remuda.resources.conventions import Conditions, LifecycleStatus, nonempty
from remuda.store.kinds import Index, Kind, Reference, keyed
from remuda.store.objects import Resource, StoredStruct

Interval = Literal["hourly", "daily", "weekly", "monthly"]
"""How often."""

DayOfWeek = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
"""When in a week."""


class SnapshotSchedule(StoredStruct, frozen=True):
    """When a snapshot is taken. Only what the interval leaves open is said."""

    interval: Interval
    time_of_day: str = ""
    """UTC, such as `04:00Z`."""
    day_of_week: DayOfWeek | None = None
    day_of_month: int | None = None


class SnapshotRetention(StoredStruct, frozen=True):
    """How many snapshots are kept."""

    keep: int


class SnapshotPolicy(StoredStruct, frozen=True):
    """A schedule with a name."""

    name: str
    schedule: SnapshotSchedule
    retention: SnapshotRetention


class Attachment(StoredStruct, frozen=True):
    """A network from which it can be mounted, and the addresses there that are its own."""

    network_id: str = msgspec.field(name="networkID")
    segmentation_id: int | None = msgspec.field(default=None, name="segmentationID")
    """The VLAN of the network, if it has one."""
    ip_range: IpRange | None = None


class Nfs(StoredStruct, frozen=True, omit_defaults=False):
    """What only NFS asks for."""

    root_squash: bool = True


class FileStorageSpec(StoredStruct, frozen=True):
    """What is wanted of file storage."""

    storage_class_id: str = msgspec.field(name="storageClassID")
    size: int
    attachments: tuple[Attachment, ...] = ()
    default_snapshot_protection_enabled: bool | None = None
    """None was written before the question was asked; then it is as if it were true."""
    snapshot_policies: Annotated[tuple[SnapshotPolicy, ...], keyed("name")] = ()
    """With the one of our own, if the default protection is on."""
    nfs: Nfs | None = None
    operation: str = ""
    """The operation that made it, under whose name it holds its quota."""
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class AttachmentStatus(StoredStruct, frozen=True):
    """How far an attachment is."""

    network_id: str = msgspec.field(name="networkID")
    provisioning_status: PartStatus
    message: str
    segmentation_id: int | None = msgspec.field(default=None, name="segmentationID")
    ip_range: IpRange | None = None


class SnapshotPolicyStatus(StoredStruct, frozen=True):
    """How far a snapshot policy is."""

    name: str
    conditions: Conditions = ()


class FileStorageStatus(LifecycleStatus, frozen=True):
    """What is known of file storage."""

    size: int | None = None
    """What it has, in bytes; None until it was seen."""
    mount_path: str = ""
    attachments: Annotated[tuple[AttachmentStatus, ...], keyed("networkID")] = ()
    snapshot_policies: Annotated[tuple[SnapshotPolicyStatus, ...], keyed("name")] = ()
    usage: int | None = None
    """How much of it is used, in bytes."""
    usage_timestamp: datetime | None = None
    provider_id: str = ""
    """What the cloud calls it; empty until it was seen there."""


class FileStorage(Resource, frozen=True):
    """File storage. A label says of which region."""

    spec: FileStorageSpec
    status: FileStorageStatus = FileStorageStatus()


def _networks(storage: FileStorage) -> list[str]:
    return [each.network_id for each in storage.spec.attachments]


FILE_STORAGE = Kind(
    type=FileStorage,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="filestorages",
    references=(Reference(target=f"networks.{UNIKORN_GROUP}", names=_networks),),
    indexes=(
        Index(name="network", values=_networks),
        Index(name="operation", values=lambda storage: nonempty(storage.spec.operation)),
    ),
    columns={"Status": '.status.conditions[?(@.type=="Available")].reason', "Size": ".spec.size"},
)
"""File storage, found by its labels, the networks that it is attached to, and the operation that made it."""


FileProtocol = Literal["nfsv3", "nfsv4"]
"""How storage of a class can be mounted."""


class FileStorageClassSpec(StoredStruct, frozen=True):
    """What storage of a class is like."""

    provisioner: str
    """The id of who provides it."""
    protocols: tuple[FileProtocol, ...] = ()
    parallelism: int = 4
    """How many addresses it has on each network."""


class FileStorageClass(Resource, frozen=True):
    """A class of file storage."""

    spec: FileStorageClassSpec


class ConfigName(StoredStruct, frozen=True):
    """Names a configuration in the cluster that the objects are stored in."""

    namespace: str
    name: str


class FileStorageProvisionerSpec(StoredStruct, frozen=True):
    """Where the provisioner's configuration is."""

    config_ref: ConfigName | None = None


class FileStorageProvisioner(Resource, frozen=True):
    """Somebody who provides file storage."""

    spec: FileStorageProvisionerSpec = FileStorageProvisionerSpec()


FILE_STORAGE_CLASS = Kind(
    type=FileStorageClass,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="filestorageclasses",
    columns={"Protocols": ".spec.protocols"},
)
"""Classes of file storage, found by their labels."""

FILE_STORAGE_PROVISIONER = Kind(
    type=FileStorageProvisioner, group=UNIKORN_GROUP, version=VERSION, plural="filestorageprovisioners"
)
"""Those who provide it."""
