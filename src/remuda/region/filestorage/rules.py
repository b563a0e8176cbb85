"""The rules of file storage, as pure functions: what is stored of it, and what it costs."""

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.providers.contract.common import Handle, storage_name
from remuda.quota.ports import Amount, Charge, Place
from remuda.region.filestorage.checking import SYSTEM_DEFAULT
from remuda.region.filestorage.schema import PolicyWire, StorageCreate, StorageSpecWire, StorageUpdate
from remuda.region.kinds.filestorage import FILE_STORAGE, Attachment, FileStorage, FileStorageSpec, Nfs
from remuda.region.kinds.quantities import GIB
from remuda.region.kinds.snapshots import Retention, Schedule, SnapshotPolicy
from remuda.resources import conventions as labels
from remuda.resources import conventions as regional
from remuda.resources.conventions import IN_CARE
from remuda.resources.metadata import changed_metadata, check_tags, new_metadata, stored_tags
from remuda.resources.tags import own_tags, replaced_tags

_DEFAULT_POLICY = SnapshotPolicy(
    name=SYSTEM_DEFAULT,
    schedule=Schedule(interval="daily", time_of_day="04:00Z"),
    retention=Retention(keep=7),
)


def reference_of(operation: str) -> str:
    """Return by what file storage keeps its project.

    It is named after the operation that made it, which has its id, unless an earlier attempt at it was undone.
    """
    return f"{FILE_STORAGE.qualified}/{operation}"


def charge_of(storage: str, operation: str, payer: Place, size: int, *, turn: int = 0) -> Charge:
    """Return what so many bytes cost in a turn, which the operation that made the storage holds."""
    return Charge(
        payer=payer,
        operation=operation,
        kind=FILE_STORAGE.qualified,
        id=storage,
        amounts=(Amount("filestorage", size),),
        turn=turn,
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
        metadata=new_metadata(storage, wanted.metadata, by, labels=where, finalizers=(IN_CARE,)),
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
        schedule=Schedule(
            interval=schedule.interval,
            time_of_day=schedule.time_of_day or "",
            day_of_week=schedule.day_of_week,
            day_of_month=schedule.day_of_month,
        ),
        retention=Retention(keep=wanted.retention.keep),
    )


def _stored_nfs(wanted: StorageSpecWire) -> Nfs:
    nfs = wanted.storage_type.nfs
    return Nfs() if isinstance(nfs, msgspec.UnsetType) else Nfs(root_squash=nfs.root_squash)
