"""Rules of file storage: validation, stored objects, quota and responses.

The response has a row for each requested attachment and policy; one without an observed status is `pending`.
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
from remuda.quota.lifecycle import payer_of
from remuda.quota.lock import fencing_token
from remuda.quota.ports import MAX_AMOUNT, Charge, ProjectRef, new_charge
from remuda.region.filestorage import schema
from remuda.region.kinds.common import GIB, IpRange, gib_of
from remuda.region.kinds.filestorage import (
    FILE_STORAGE,
    Attachment,
    FileStorage,
    FileStorageClass,
    FileStorageSpec,
    FileStorageStatus,
    Nfs,
    SnapshotPolicy,
    SnapshotRetention,
    SnapshotSchedule,
)
from remuda.resources.conventions import CONTROLLER_FINALIZER, ORGANIZATION, PROJECT, REGION, region_of
from remuda.resources.metadata import (
    changed_metadata,
    new_metadata,
    new_tags,
    read_metadata,
    read_project_metadata,
    updated_tags,
    writable_metadata,
)
from remuda.resources.schema import Provisioning

SYSTEM_DEFAULT = "system-default"
"""The reserved name of the policy of the default protection."""

_MAX_GIB = MAX_AMOUNT // GIB  # the quota is in bytes

_SCHEDULES = {
    "hourly": (set(), "hourly snapshot policies must not define timeOfDay, dayOfWeek, or dayOfMonth"),
    "daily": ({"time_of_day"}, "daily snapshot policies require timeOfDay and must not define dayOfWeek or dayOfMonth"),
    "weekly": (
        {"time_of_day", "day_of_week"},
        "weekly snapshot policies require timeOfDay and dayOfWeek and must not define dayOfMonth",
    ),
    "monthly": (
        {"time_of_day", "day_of_month"},
        "monthly snapshot policies require timeOfDay and dayOfMonth and must not define dayOfWeek",
    ),
}
"""The fields that each interval requires, and the error message."""


def check_size(size_gib: int) -> None:
    if size_gib < 1:
        raise Invalid("spec.sizeGiB", "size must be greater or equal to 1GiB")
    if size_gib > _MAX_GIB:
        raise Invalid("spec.sizeGiB", "is too large", remedy=f"request at most {_MAX_GIB}")


def check_not_smaller_than_usage(storage: FileStorage, size_gib: int) -> None:
    used = storage.status.usage
    if used is not None and size_gib * GIB < min(used, storage.spec.size):
        least = -(-used // GIB)
        raise Invalid("spec.sizeGiB", "is less than the space in use", remedy=f"request at least {least}")


def check_policies(policies: Sequence[schema.PolicyWire]) -> None:
    """Raise Invalid for policies that are not possible, or not unique."""
    observed = set()
    for policy in policies:
        _check_schedule(policy.schedule)
        if policy.name == SYSTEM_DEFAULT:
            raise Invalid("spec.snapshotPolicies", f'"{SYSTEM_DEFAULT}" is a reserved snapshot policy name')
        if policy.name in observed:
            raise Invalid("spec.snapshotPolicies", "snapshot policy names must be unique")
        observed.add(policy.name)


def _check_schedule(schedule: schema.ScheduleWire) -> None:
    required, message = _SCHEDULES[schedule.interval]
    given = {name for name in ("time_of_day", "day_of_week", "day_of_month") if getattr(schedule, name) is not None}
    if given != required:
        raise Invalid("spec.snapshotPolicies", message)


_DEFAULT_POLICY = SnapshotPolicy(
    name=SYSTEM_DEFAULT,
    schedule=SnapshotSchedule(interval="daily", time_of_day="04:00Z"),
    retention=SnapshotRetention(keep=7),
)


def reference_of(operation: str) -> str:
    """Return the reference by which file storage keeps its project, named after the create operation."""
    return f"{FILE_STORAGE.qualified}/{operation}"


def build_charge(storage: str, operation: str, payer: ProjectRef, size: int, *, token: int = 0) -> Charge:
    """Return the quota of storage of this size in bytes, allocated for the operation that created it."""
    return new_charge(FILE_STORAGE, storage, operation, payer, {"filestorage": size}, fencing_token=token)


def charge_of(storage: FileStorage) -> Charge:
    payer, spec = payer_of(storage), storage.spec
    return build_charge(storage.name, spec.operation, payer, spec.size, token=fencing_token(storage))


def new_storage(
    storage: str, requested: schema.StorageCreate, attachments: Sequence[Attachment], by: Principal, *, operation: str
) -> FileStorage:
    spec = requested.spec
    scope = {ORGANIZATION: spec.organization_id, PROJECT: spec.project_id, REGION: spec.region_id}
    is_protected = _default_protection(spec, default=True)
    return FileStorage(
        metadata=new_metadata(storage, requested.metadata, by, labels=scope, finalizers=(CONTROLLER_FINALIZER,)),
        spec=FileStorageSpec(
            storage_class_id=spec.storage_class_id,
            size=spec.size_gib * GIB,
            attachments=tuple(attachments),
            default_snapshot_protection_enabled=is_protected,
            snapshot_policies=_stored_policies(_policies(spec, ()), is_protected=is_protected),
            nfs=_stored_nfs(spec),
            operation=operation,
            tags=new_tags(requested.metadata, by),
        ),
    )


def changed_storage(
    storage: FileStorage,
    requested: schema.StorageUpdate,
    attachments: Sequence[Attachment],
    by: Principal,
    now: datetime,
) -> FileStorage:
    before, spec = storage.spec, requested.spec
    is_protected = _default_protection(spec, default=has_default_protection(storage))
    changed = replace(
        before,
        size=spec.size_gib * GIB,
        attachments=tuple(attachments),
        default_snapshot_protection_enabled=is_protected,
        snapshot_policies=_stored_policies(_policies(spec, user_policies(storage)), is_protected=is_protected),
        nfs=_stored_nfs(spec),
        tags=updated_tags(before.tags, requested.metadata, by),
    )
    return replace(storage, metadata=changed_metadata(storage.metadata, requested.metadata, by, now), spec=changed)


def has_default_protection(storage: FileStorage) -> bool:
    return storage.spec.default_snapshot_protection_enabled is not False


def user_policies(storage: FileStorage) -> tuple[SnapshotPolicy, ...]:
    return tuple(policy for policy in storage.spec.snapshot_policies if policy.name != SYSTEM_DEFAULT)


def storage_handle(storage: FileStorage) -> Handle:
    """Return the handle of file storage at its provider, where it belongs to no tenancy."""
    return Handle("", storage_name(storage.name, storage.uid))


def _default_protection(requested: schema.StorageSpecWire, *, default: bool) -> bool:
    enabled = requested.default_snapshot_protection_enabled
    return default if isinstance(enabled, msgspec.UnsetType) else enabled


def _policies(requested: schema.StorageSpecWire, before: tuple[SnapshotPolicy, ...]) -> tuple[SnapshotPolicy, ...]:
    policies = requested.snapshot_policies
    return before if isinstance(policies, msgspec.UnsetType) else tuple(map(_stored_policy, policies))


def _stored_policies(policies: tuple[SnapshotPolicy, ...], *, is_protected: bool) -> tuple[SnapshotPolicy, ...]:
    return (*policies, _DEFAULT_POLICY) if is_protected else policies


def _stored_policy(requested: schema.PolicyWire) -> SnapshotPolicy:
    schedule = requested.schedule
    return SnapshotPolicy(
        name=requested.name,
        schedule=SnapshotSchedule(
            interval=schedule.interval,
            time_of_day=schedule.time_of_day or "",
            day_of_week=schedule.day_of_week,
            day_of_month=schedule.day_of_month,
        ),
        retention=SnapshotRetention(keep=requested.retention.keep),
    )


def _stored_nfs(requested: schema.StorageSpecWire) -> Nfs:
    nfs = requested.storage_type.nfs
    return Nfs() if isinstance(nfs, msgspec.UnsetType) else Nfs(root_squash=nfs.root_squash)


_DEFAULT_PARALLELISM = 4
_STATUS: dict[str, Provisioning] = {
    "Provisioned": "provisioned",
    "Errored": "error",
    "Deprovisioning": "deprovisioning",
}


def writable_storage(storage: FileStorage) -> schema.StorageUpdate:
    spec = storage.spec
    return schema.StorageUpdate(
        metadata=writable_metadata(storage.metadata, spec.tags),
        spec=schema.StorageSpecWire(
            size_gib=gib_of(spec.size),
            storage_type=schema.StorageTypeWire(nfs=schema.NfsWire(root_squash=(spec.nfs or Nfs()).root_squash)),
            attachments=schema.AttachmentsWire(network_ids=tuple(each.network_id for each in spec.attachments)),
            default_snapshot_protection_enabled=has_default_protection(storage),
            snapshot_policies=tuple(map(_read_policy, user_policies(storage))),
        ),
    )


def read_storage(storage: FileStorage) -> schema.StorageRead:
    spec, status = storage.spec, storage.status
    return schema.StorageRead(
        metadata=read_project_metadata(storage.metadata, spec.tags, status.conditions),
        spec=writable_storage(storage).spec,
        status=schema.StorageStatusRead(
            region_id=region_of(storage),
            storage_class_id=spec.storage_class_id,
            usage=_usage(status),
            attachments=tuple(_read_attachment(each, status) for each in spec.attachments),
            snapshot_policies=tuple(_read_policy_status(each, status) for each in user_policies(storage)),
        ),
    )


def parallelism_of(found: FileStorageClass) -> int:
    """Return the number of addresses that storage of a class has on each network."""
    return found.spec.parallelism if found.spec.parallelism >= 1 else _DEFAULT_PARALLELISM


def read_class(found: FileStorageClass) -> schema.ClassRead:
    return schema.ClassRead(
        metadata=read_metadata(found.metadata),
        spec=schema.ClassSpecRead(
            region_id=region_of(found), protocols=found.spec.protocols, parallelism=parallelism_of(found)
        ),
    )


def _read_policy(policy: SnapshotPolicy) -> schema.PolicyWire:
    schedule = policy.schedule
    return schema.PolicyWire(
        name=policy.name,
        schedule=schema.ScheduleWire(
            interval=schedule.interval,
            time_of_day=schedule.time_of_day or None,
            day_of_week=schedule.day_of_week,
            day_of_month=schedule.day_of_month,
        ),
        retention=schema.RetentionWire(keep=policy.retention.keep),
    )


def _usage(status: FileStorageStatus) -> schema.UsageRead | None:
    if status.size is None:
        return None
    return schema.UsageRead(capacity_bytes=status.size, used_bytes=status.usage, updated_at=status.usage_timestamp)


def _read_attachment(attachment: Attachment, status: FileStorageStatus) -> schema.AttachmentStatusRead:
    network, path = attachment.network_id, status.mount_path
    observed = next((each for each in status.attachments if each.network_id == network), None)
    if observed is None:
        return schema.AttachmentStatusRead(network_id=network, provisioning_status="pending")
    return schema.AttachmentStatusRead(
        network_id=network,
        provisioning_status=_STATUS.get(observed.provisioning_status, "provisioning"),
        mount_source=f"{attachment.ip_range.start_ip}:{path}" if path and attachment.ip_range is not None else "",
        mount_options={} if observed.ip_range is None else {"remoteports": _ports(observed.ip_range)},
    )


def _ports(found: IpRange) -> str:
    return found.start_ip if found.start_ip == found.end_ip else f"{found.start_ip}-{found.end_ip}"


def _read_policy_status(policy: SnapshotPolicy, status: FileStorageStatus) -> schema.PolicyStatusRead:
    observed = next((each for each in status.snapshot_policies if each.name == policy.name), None)
    available = None if observed is None else find_condition(observed.conditions, "Available")
    if available is None:
        return schema.PolicyStatusRead(name=policy.name, provisioning_status="pending")
    return schema.PolicyStatusRead(
        name=policy.name, provisioning_status=_STATUS.get(available.reason, "provisioning"), message=available.message
    )


def _render_class(found: FileStorageClass) -> bytes:
    return msgspec.json.encode(read_class(found))


STORAGE_VIEW = etag_view(read_storage, writable_storage)
CLASS_VIEW = _render_class
