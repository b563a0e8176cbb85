"""The rules of file storage, as pure functions: what is stored of it, and what it costs.

What file storage cannot be.

File storage and its classes, as clients read them.

Rows about attachments and policies follow what is wanted: what nobody has said anything about yet is `pending`.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.responses import etag_view
from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import Invalid
from remuda.providers.contract.common import Handle, storage_name
from remuda.quota.ports import Amount, Charge, ProjectRef
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
    StorageCreate,
    StorageRead,
    StorageSpecWire,
    StorageStatusRead,
    StorageTypeWire,
    StorageUpdate,
    UsageRead,
)
from remuda.region.kinds.common import GIB, IpRange, gib_of
from remuda.region.kinds.filestorage import (
    FILE_STORAGE,
    Attachment,
    AttachmentStatus,
    FileStorage,
    FileStorageClass,
    FileStorageSpec,
    FileStorageStatus,
    Nfs,
    SnapshotPolicy,
    SnapshotRetention,
    SnapshotSchedule,
)
from remuda.resources import conventions as labels
from remuda.resources import conventions as regional
from remuda.resources.conventions import CONTROLLER_FINALIZER
from remuda.resources.metadata import (
    changed_metadata,
    check_tags,
    new_metadata,
    read_metadata,
    read_project_metadata,
    stored_tags,
    writable_metadata,
)
from remuda.resources.schema import Provisioning
from remuda.resources.tags import own_tags, replaced_tags

SYSTEM_DEFAULT = "system-default"
"""The name of the policy that the default protection is stored as; nobody else may use it."""

_MOST_GIB = (1 << 63) // GIB - 1

_SCHEDULES = {
    "hourly": (set(), "hourly snapshot policies must not define timeOfDay, dayOfWeek, or dayOfMonth"),
    "daily": (
        {"time_of_day"},
        "daily snapshot policies require timeOfDay and must not define dayOfWeek or dayOfMonth",
    ),
    "weekly": (
        {"time_of_day", "day_of_week"},
        "weekly snapshot policies require timeOfDay and dayOfWeek and must not define dayOfMonth",
    ),
    "monthly": (
        {"time_of_day", "day_of_month"},
        "monthly snapshot policies require timeOfDay and dayOfMonth and must not define dayOfWeek",
    ),
}
"""What each interval asks for, and how it is told that something is missing or too much."""


def check_size(size_gib: int) -> None:
    """Refuse a size that no storage has."""
    if size_gib < 1:
        raise Invalid("spec.sizeGiB", "size must be greater or equal to 1GiB")
    if size_gib > _MOST_GIB:
        raise Invalid("spec.sizeGiB", "is larger than any storage", remedy=f"ask for {_MOST_GIB} at most")


def check_room(storage: FileStorage, size_gib: int) -> None:
    """Refuse to make storage smaller than what is known to be on it."""
    used = storage.status.usage
    if used is not None and size_gib * GIB < min(used, storage.spec.size):
        least = -(-used // GIB)
        raise Invalid("spec.sizeGiB", "is less than what is on the storage", remedy=f"ask for {least} at least")


def check_policies(policies: Sequence[PolicyWire]) -> None:
    """Refuse policies that are not possible, or that cannot be told apart."""
    seen = set()
    for policy in policies:
        _check_schedule(policy.schedule)
        if policy.name == SYSTEM_DEFAULT:
            raise Invalid("spec.snapshotPolicies", f'"{SYSTEM_DEFAULT}" is a reserved snapshot policy name')
        if policy.name in seen:
            raise Invalid("spec.snapshotPolicies", "snapshot policy names must be unique")
        seen.add(policy.name)


def _check_schedule(schedule: ScheduleWire) -> None:
    wanted, otherwise = _SCHEDULES[schedule.interval]
    given = {name for name in ("time_of_day", "day_of_week", "day_of_month") if getattr(schedule, name) is not None}
    if given != wanted:
        raise Invalid("spec.snapshotPolicies", otherwise)


_DEFAULT_POLICY = SnapshotPolicy(
    name=SYSTEM_DEFAULT,
    schedule=SnapshotSchedule(interval="daily", time_of_day="04:00Z"),
    retention=SnapshotRetention(keep=7),
)


def reference_of(operation: str) -> str:
    """Return by what file storage keeps its project.

    It is named after the operation that made it, which has its id, unless an earlier attempt at it was undone.
    """
    return f"{FILE_STORAGE.qualified}/{operation}"


def charge_of(storage: str, operation: str, payer: ProjectRef, size: int, *, turn: int = 0) -> Charge:
    """Return what so many bytes cost in a turn, which the operation that made the storage holds."""
    return Charge(
        payer=payer,
        operation=operation,
        kind=FILE_STORAGE.qualified,
        id=storage,
        amounts=(Amount("filestorage", size),),
        fencing_token=turn,
    )


def check_tags_of(wanted: StorageCreate, by: Principal) -> None:
    """Refuse tags that are there twice, or that are not the caller's to give."""
    check_tags(wanted.metadata.tags)
    own_tags(stored_tags(wanted.metadata), by)


def new_storage(
    storage: str, wanted: StorageCreate, attachments: Sequence[Attachment], by: Principal, *, operation: str
) -> FileStorage:
    """Return file storage as it is stored; what is wanted was checked before."""
    spec = wanted.spec
    where = {
        labels.ORGANIZATION: spec.organization_id,
        labels.PROJECT: spec.project_id,
        regional.REGION: spec.region_id,
    }
    is_on = _is_on(spec, otherwise=True)
    return FileStorage(
        metadata=new_metadata(storage, wanted.metadata, by, labels=where, finalizers=(CONTROLLER_FINALIZER,)),
        spec=FileStorageSpec(
            storage_class_id=spec.storage_class_id,
            size=spec.size_gib * GIB,
            attachments=tuple(attachments),
            default_snapshot_protection_enabled=is_on,
            snapshot_policies=_stored_policies(_policies(spec, ()), is_on=is_on),
            nfs=_stored_nfs(spec),
            operation=operation,
            tags=own_tags(stored_tags(wanted.metadata), by),
        ),
    )


def changed_storage(
    storage: FileStorage, wanted: StorageUpdate, attachments: Sequence[Attachment], by: Principal, now: datetime
) -> FileStorage:
    """Return file storage with everything replaced that a client may change."""
    check_tags(wanted.metadata.tags)
    before, spec = storage.spec, wanted.spec
    is_on = _is_on(spec, otherwise=is_protected(storage))
    changed = replace(
        before,
        size=spec.size_gib * GIB,
        attachments=tuple(attachments),
        default_snapshot_protection_enabled=is_on,
        snapshot_policies=_stored_policies(_policies(spec, users_policies(storage)), is_on=is_on),
        nfs=_stored_nfs(spec),
        tags=replaced_tags(before.tags, stored_tags(wanted.metadata), by),
    )
    return replace(storage, metadata=changed_metadata(storage.metadata, wanted.metadata, by.subject, now), spec=changed)


def is_protected(storage: FileStorage) -> bool:
    """Tell whether the default protection is on; it is where nobody was asked yet."""
    return storage.spec.default_snapshot_protection_enabled is not False


def users_policies(storage: FileStorage) -> tuple[SnapshotPolicy, ...]:
    """Return the policies that users have made."""
    return tuple(policy for policy in storage.spec.snapshot_policies if policy.name != SYSTEM_DEFAULT)


def to_cloud(storage: FileStorage) -> Handle:
    """Return what file storage is called at its provider, where it is in no tenancy."""
    return Handle("", storage_name(storage.name, storage.uid))


def _is_on(wanted: StorageSpecWire, *, otherwise: bool) -> bool:
    asked = wanted.default_snapshot_protection_enabled
    return otherwise if isinstance(asked, msgspec.UnsetType) else asked


def _policies(wanted: StorageSpecWire, before: tuple[SnapshotPolicy, ...]) -> tuple[SnapshotPolicy, ...]:
    asked = wanted.snapshot_policies
    return before if isinstance(asked, msgspec.UnsetType) else tuple(map(_stored_policy, asked))


def _stored_policies(policies: tuple[SnapshotPolicy, ...], *, is_on: bool) -> tuple[SnapshotPolicy, ...]:
    return (*policies, _DEFAULT_POLICY) if is_on else policies


def _stored_policy(wanted: PolicyWire) -> SnapshotPolicy:
    schedule = wanted.schedule
    return SnapshotPolicy(
        name=wanted.name,
        schedule=SnapshotSchedule(
            interval=schedule.interval,
            time_of_day=schedule.time_of_day or "",
            day_of_week=schedule.day_of_week,
            day_of_month=schedule.day_of_month,
        ),
        retention=SnapshotRetention(keep=wanted.retention.keep),
    )


def _stored_nfs(wanted: StorageSpecWire) -> Nfs:
    nfs = wanted.storage_type.nfs
    return Nfs() if isinstance(nfs, msgspec.UnsetType) else Nfs(root_squash=nfs.root_squash)


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


STORAGE_VIEW = etag_view(read_storage, writable_storage)
"""File storage as JSON, with its tag."""
CLASS_VIEW = _render_class
"""A class as JSON."""
