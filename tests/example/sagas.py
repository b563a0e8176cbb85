"""What takes more than one effect: making a mount takes a stall and an object, or neither."""

from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists, Conflict, NotFound
from remuda.kernel.tags import Tag
from remuda.operations.saga import Saga, Step, Work
from remuda.store.contract import Store
from tests.example.kinds import IN_PASTURE, MOUNT, Mount, MountSpec, Yard
from tests.example.rules import mount_id, new_mount
from tests.example.stalls import Stalls


class NewMount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is needed to make a mount."""

    yard: str
    name: str
    breed: str
    paddock: str
    description: str = ""
    tags: tuple[Tag, ...] = ()


@dataclass(frozen=True, slots=True)
class MountPorts:
    """What the steps reach the world through."""

    store: Store
    stalls: Stalls


async def _take_stall(ports: MountPorts, work: Work[NewMount]) -> None:
    await ports.stalls.take(work.input.yard, work.id)


async def _give_stall_back(ports: MountPorts, work: Work[NewMount]) -> None:
    await ports.stalls.give_back(work.input.yard, work.id)


async def _create_mount(ports: MountPorts, work: Work[NewMount]) -> None:
    wanted = work.input
    yard = await ports.store.get(Yard, wanted.yard)
    spec = MountSpec(
        yard=yard.name,
        breed=wanted.breed,
        paddock=wanted.paddock,
        description=wanted.description,
        tags=wanted.tags,
        operation=work.id,
    )
    try:
        await ports.store.create(new_mount(yard, wanted.name, spec, creator=work.actor))
    except AlreadyExists:
        if (await _find_own(ports, work)) is None:
            raise


async def _remove_mount(ports: MountPorts, work: Work[NewMount]) -> None:
    """Remove the object with its finalizer: while its operation is open, no controller has made anything of it."""
    while (mount := await _find_own(ports, work)) is not None:
        finalizers = tuple(each for each in mount.metadata.finalizers if each != IN_PASTURE)
        freed = replace(mount, metadata=replace(mount.metadata, finalizers=finalizers))
        try:
            freed = await ports.store.update(freed)
            if not freed.is_deleting:
                await ports.store.delete(Mount, freed.name, uid=freed.uid, version=freed.version)
        except Conflict:
            continue
        except NotFound:
            return


async def _find_own(ports: MountPorts, work: Work[NewMount]) -> Mount | None:
    """Return the mount that this operation made; another's of the same name is none of its business."""
    try:
        found = await ports.store.get(Mount, mount_id(work.input.yard, work.input.name))
    except NotFound:
        return None
    return found if found.spec.operation == work.id else None


CREATE_MOUNT: Saga[MountPorts, NewMount] = Saga(
    name="mount.create",
    input_type=NewMount,
    subject=lambda wanted: (MOUNT.qualified, mount_id(wanted.yard, wanted.name)),
    steps=(
        Step(name="take-stall", do=_take_stall, undo=_give_stall_back),
        Step(name="create-mount", do=_create_mount, undo=_remove_mount),
    ),
)
