"""File storage and its classes, as clients read them.

Rows about attachments and policies follow what is wanted: what nobody has said anything about yet is `pending`.
"""

import msgspec

from remuda.http.responses import tagged
from remuda.kernel.conditions import find_condition
from remuda.region.filestorage.rules import is_protected, users_policies
from remuda.region.filestorage.schema import (
    AttachmentStatusRead,
    AttachmentsWire,
    ClassRead,
    ClassSpecRead,
    NfsWire,
    PolicyStatusRead,
    PolicyWire,
    RetentionWire,
    ScheduleWire,
    StorageRead,
    StorageSpecWire,
    StorageStatusRead,
    StorageTypeWire,
    StorageUpdate,
    UsageRead,
)
from remuda.region.kinds.filestorage import Attachment, AttachmentStatus, FileStorage, FileStorageStatus, Nfs
from remuda.region.kinds.lifecycle import IpRange
from remuda.region.kinds.quantities import gib_of
from remuda.region.kinds.snapshots import SnapshotPolicy
from remuda.region.kinds.storageclasses import FileStorageClass
from remuda.resources import conventions as regional
from remuda.resources.metadata import read_metadata, read_project_metadata, writable_metadata
from remuda.resources.schema import Provisioning

_DEFAULT_PARALLELISM = 4
_STATUS: dict[str, Provisioning] = {
    "Provisioned": "provisioned",
    "Errored": "error",
    "Deprovisioning": "deprovisioning",
}


def writable_storage(storage: FileStorage) -> StorageUpdate:
    """Return what a client may change of file storage, as it is now."""
    spec = storage.spec
    return StorageUpdate(
        metadata=writable_metadata(storage.metadata, spec.tags),
        spec=StorageSpecWire(
            size_gib=gib_of(spec.size),
            storage_type=StorageTypeWire(nfs=NfsWire(root_squash=(spec.nfs or Nfs()).root_squash)),
            attachments=AttachmentsWire(network_ids=tuple(each.network_id for each in spec.attachments)),
            default_snapshot_protection_enabled=is_protected(storage),
            snapshot_policies=tuple(map(_read_policy, users_policies(storage))),
        ),
    )


def read_storage(storage: FileStorage) -> StorageRead:
    """Return file storage as clients read it."""
    spec, status = storage.spec, storage.status
    return StorageRead(
        metadata=read_project_metadata(storage.metadata, spec.tags, status.conditions),
        spec=writable_storage(storage).spec,
        status=StorageStatusRead(
            region_id=regional.region_of(storage),
            storage_class_id=spec.storage_class_id,
            usage=_usage(status),
            attachments=tuple(_read_attachment(each, status) for each in spec.attachments),
            snapshot_policies=tuple(_read_policy_status(each, status) for each in users_policies(storage)),
        ),
    )


def parallelism_of(found: FileStorageClass) -> int:
    """Return how many addresses storage of a class has on each network."""
    return found.spec.parallelism if found.spec.parallelism >= 1 else _DEFAULT_PARALLELISM


def read_class(found: FileStorageClass) -> ClassRead:
    """Return a class as clients read it."""
    return ClassRead(
        metadata=read_metadata(found.metadata),
        spec=ClassSpecRead(
            region_id=regional.region_of(found), protocols=found.spec.protocols, parallelism=parallelism_of(found)
        ),
    )


def _read_policy(policy: SnapshotPolicy) -> PolicyWire:
    schedule = policy.schedule
    return PolicyWire(
        name=policy.name,
        schedule=ScheduleWire(
            interval=schedule.interval,
            time_of_day=schedule.time_of_day or None,
            day_of_week=schedule.day_of_week,
            day_of_month=schedule.day_of_month,
        ),
        retention=RetentionWire(keep=policy.retention.keep),
    )


def _usage(status: FileStorageStatus) -> UsageRead | None:
    if status.size is None:
        return None
    return UsageRead(capacity_bytes=status.size, used_bytes=status.usage, updated_at=status.usage_timestamp)


def _read_attachment(attachment: Attachment, status: FileStorageStatus) -> AttachmentStatusRead:
    network = attachment.network_id
    seen = next((each for each in status.attachments if each.network_id == network), None)
    if seen is None:
        return AttachmentStatusRead(network_id=network, provisioning_status="pending")
    return AttachmentStatusRead(
        network_id=network,
        provisioning_status=_STATUS.get(seen.provisioning_status, "provisioning"),
        mount_source=_mount_source(attachment, status.mount_path),
        mount_options=_mount_options(seen),
    )


def _mount_source(attachment: Attachment, path: str) -> str:
    return f"{attachment.ip_range.start_ip}:{path}" if path and attachment.ip_range is not None else ""


def _mount_options(seen: AttachmentStatus) -> dict[str, str]:
    return {} if seen.ip_range is None else {"remoteports": _ports(seen.ip_range)}


def _ports(found: IpRange) -> str:
    return found.start_ip if found.start_ip == found.end_ip else f"{found.start_ip}-{found.end_ip}"


def _read_policy_status(policy: SnapshotPolicy, status: FileStorageStatus) -> PolicyStatusRead:
    seen = next((each for each in status.snapshot_policies if each.name == policy.name), None)
    available = None if seen is None else find_condition(seen.conditions, "Available")
    if available is None:
        return PolicyStatusRead(name=policy.name, provisioning_status="pending")
    return PolicyStatusRead(
        name=policy.name,
        provisioning_status=_STATUS.get(available.reason, "provisioning"),
        message=available.message,
    )


def _render_class(found: FileStorageClass) -> bytes:
    return msgspec.json.encode(read_class(found))


STORAGE_VIEW = tagged(read_storage, writable_storage)
"""File storage as JSON, with its tag."""
CLASS_VIEW = _render_class
"""A class as JSON."""
