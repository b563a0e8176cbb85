"""What takes more than one effect: to make file storage, and to change how large it is.

Its project is told first, so that it cannot go unnoticed; then what it costs is held; then it is made.
"""

from dataclasses import dataclass

import msgspec

from remuda.access.principal import Requester
from remuda.kernel.errors import AlreadyExists
from remuda.operations.saga import AnyBound, Bound, Saga, Step, Work
from remuda.quota.lock import fencing_token
from remuda.quota.ports import Charge, ProjectRef
from remuda.quota.reservation import payer_of, reserve
from remuda.quota.sagas import QuotaUpdate, roll_back_create, update_saga
from remuda.region.filestorage import rules
from remuda.region.filestorage.schema import StorageCreate, StorageUpdate
from remuda.region.kinds.common import GIB
from remuda.region.kinds.filestorage import FILE_STORAGE, Attachment, FileStorage, FileStorageSpec
from remuda.region.ports import IdentityPort
from remuda.store.contract import Store


class NewStorage(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to make file storage."""

    storage: str
    """Its id."""
    wanted: StorageCreate
    attachments: tuple[Attachment, ...] = ()
    """What the networks that are wanted come to."""
    by: Requester
    """Who pays is told in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePorts:
    """What the steps reach the world through."""

    store: Store
    identity: IdentityPort


def _place(work: Work[NewStorage]) -> ProjectRef:
    spec = work.input.wanted.spec
    return ProjectRef(spec.organization_id, spec.project_id)


def _charge(work: Work[NewStorage]) -> Charge:
    by = work.input.by
    assert by.organization is not None, "it is completed when it is asked for"
    assert by.project is not None, "it is completed when it is asked for"
    size = work.input.wanted.spec.size_gib * GIB
    return rules.charge_of(work.input.storage, work.id, ProjectRef(by.organization, by.project), size)


async def _refer(ports: StoragePorts, work: Work[NewStorage]) -> None:
    await ports.identity.refer(_place(work), rules.reference_of(work.id))


async def _unrefer(ports: StoragePorts, work: Work[NewStorage]) -> None:
    await ports.identity.unrefer(_place(work), rules.reference_of(work.id))


async def _leave(ports: StoragePorts, work: Work[NewStorage]) -> None:
    """Do nothing: what a step before this one did is taken back by its own undo."""


async def _allocate(ports: StoragePorts, work: Work[NewStorage]) -> None:
    await reserve(ports.identity, _charge(work), work.input.by.principal)


async def _release(ports: StoragePorts, work: Work[NewStorage]) -> None:
    await ports.identity.release(_charge(work))


async def _make(ports: StoragePorts, work: Work[NewStorage]) -> None:
    new = work.input
    made = rules.new_storage(new.storage, new.wanted, new.attachments, new.by.principal, operation=work.id)
    try:
        await ports.store.create(made)
    except AlreadyExists:
        if (await ports.store.get(FileStorage, made.name)).spec.operation != work.id:
            raise


async def _unmake(ports: StoragePorts, work: Work[NewStorage]) -> None:
    await roll_back_create(
        ports.store, FileStorage, work.input.storage, lambda storage: storage.spec.operation == work.id
    )


CREATE_STORAGE: Saga[StoragePorts, NewStorage] = Saga(
    name="filestorage.create",
    input_type=NewStorage,
    subject=lambda new: (FILE_STORAGE.qualified, new.storage),
    steps=(
        Step(name="keep-project", do=_refer, undo=_unrefer),
        Step(name="hold-quota", do=_allocate, undo=_release),
        Step(name="make-storage", do=_make, undo=_unmake),
        # Whoever deletes the project marks it, then looks for what is in it. What was made before the mark is found by
        # that look; what was made after it is refused here.
        Step(name="look-at-project", do=_refer, undo=_leave),
    ),
)
"""Makes file storage."""


class Resized(msgspec.Struct, frozen=True, kw_only=True):
    """File storage as it is to be from now on, and what the networks that are wanted come to."""

    update: StorageUpdate
    attachments: tuple[Attachment, ...] = ()


class ChangedStorage(QuotaUpdate[FileStorageSpec, Resized], frozen=True, kw_only=True):
    """What is needed to change file storage that is to have another size."""


def charge_for(storage: FileStorage) -> Charge:
    payer, spec = payer_of(storage), storage.spec
    return rules.charge_of(storage.name, spec.operation, payer, spec.size, turn=fencing_token(storage))


def _changed(storage: FileStorage, change: ChangedStorage) -> FileStorage:
    wanted = change.wanted
    return rules.changed_storage(storage, wanted.update, wanted.attachments, change.by.principal, change.now)


UPDATE_STORAGE = update_saga("filestorage.update", FILE_STORAGE, ChangedStorage, changed=_changed, charge=charge_for)
"""Makes file storage larger or smaller, with whatever else is changed by the same request."""


def bound(ports: StoragePorts) -> list[AnyBound]:
    """Return the sagas of this room with what they reach the world through."""
    return [Bound(CREATE_STORAGE, ports), Bound(UPDATE_STORAGE, ports)]
