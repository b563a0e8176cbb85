"""Sagas that create file storage, and that resize it together with its quota."""

import msgspec

from remuda.access.principal import Principal, Requester
from remuda.operations.saga import Work
from remuda.quota.sagas import QuotaPorts, QuotaUpdate, create_saga, update_saga
from remuda.region.filestorage import rules
from remuda.region.filestorage.schema import StorageCreate, StorageUpdate
from remuda.region.kinds.common import GIB
from remuda.region.kinds.filestorage import FILE_STORAGE, Attachment, FileStorage, FileStorageSpec


class NewStorage(msgspec.Struct, frozen=True, kw_only=True):
    """The input: file storage to create."""

    storage: str
    requested: StorageCreate
    attachments: tuple[Attachment, ...] = ()
    requester: Requester


async def _build(_: QuotaPorts, work: Work[NewStorage]) -> FileStorage:
    new = work.input
    return rules.new_storage(
        new.storage, new.requested, new.attachments, new.requester.named(work.actor_name), operation=work.id
    )


CREATE_STORAGE = create_saga(
    "filestorage.create",
    FILE_STORAGE,
    NewStorage,
    id_of=lambda new: new.storage,
    create_step="create-storage",
    build=_build,
    charge=lambda work, payer: rules.build_charge(
        work.input.storage, work.id, payer, work.input.requested.spec.size_gib * GIB
    ),
    reference=rules.reference_of,
)


class Resized(msgspec.Struct, frozen=True, kw_only=True):
    """An update of file storage, with the attachments to the requested networks."""

    update: StorageUpdate
    attachments: tuple[Attachment, ...] = ()


class ChangedStorage(QuotaUpdate[FileStorageSpec, Resized], frozen=True, kw_only=True):
    """The input: an update that resizes file storage."""


def _changed(storage: FileStorage, change: ChangedStorage, by: Principal) -> FileStorage:
    requested = change.requested
    return rules.changed_storage(storage, requested.update, requested.attachments, by, change.requested_at)


UPDATE_STORAGE = update_saga(
    "filestorage.update", FILE_STORAGE, ChangedStorage, changed=_changed, charge=rules.charge_of
)

SAGAS = (CREATE_STORAGE, UPDATE_STORAGE)
