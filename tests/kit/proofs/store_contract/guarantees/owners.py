"""What owners promise: no child is left behind."""

from msgspec.structs import replace

from remuda.kernel.errors import OwnerRejected
from tests.kit.proofs.store_contract.guarantee import Guarantee, guarantee
from tests.kit.proofs.store_contract.harness import Harness, eventually, for_a_while
from tests.kit.proofs.store_contract.steps import HOLD, find, gone, release, request_deletion, with_metadata
from tests.kit.sample_kinds import CORRAL, PASTURE, Corral, Horse, Pasture, corral, horse, pasture

GUARANTEES: list[Guarantee] = []

NOBODY = "a0000000-0000-4000-8000-000000000000"


async def does_not_last(harness: Harness, child: Corral) -> None:
    """Return when the child was refused or, if it was accepted, collected."""
    try:
        created = await harness.store.create(child)
    except OwnerRejected:
        return
    await gone(harness, created)


@guarantee(GUARANTEES, "Deleting an owner deletes its children, and nobody else's.")
async def children_go_with_their_owner(harness: Harness) -> None:
    owner, other = await harness.store.create(pasture("home")), await harness.store.create(pasture("other"))
    children = [await harness.store.create(corral(name, owner=PASTURE.owner(owner))) for name in ("a", "b", "c")]
    foreign = await harness.store.create(corral("foreign", owner=PASTURE.owner(other)))
    await request_deletion(harness, owner)
    for resource in (*children, owner):
        await gone(harness, resource)
    assert await harness.store.get(Corral, "foreign") == foreign


@guarantee(GUARANTEES, "Deleting an owner deletes the children of its children.")
async def grandchildren_go_with_their_owner(harness: Harness) -> None:
    owner = await harness.store.create(pasture("home"))
    child = await harness.store.create(corral("child", owner=PASTURE.owner(owner)))
    grandchild = await harness.store.create(horse("grandchild", owner=CORRAL.owner(child)))
    await request_deletion(harness, owner)
    for resource in (grandchild, child, owner):
        await gone(harness, resource)


@guarantee(GUARANTEES, "A child with several owners goes with the last of them.")
async def a_shared_child_goes_with_its_last_owner(harness: Harness) -> None:
    first, last = await harness.store.create(pasture("first")), await harness.store.create(pasture("last"))
    owners = (PASTURE.owner(first), replace(PASTURE.owner(last), controller=False))
    shared = await harness.store.create(with_metadata(corral("shared"), owner_references=owners))
    await request_deletion(harness, first)
    await gone(harness, first)

    async def stays() -> bool:
        found = await find(harness, Corral, "shared")
        return found is not None and not found.is_deleting

    await for_a_while(harness, "the child stays with its other owner", stays)
    await request_deletion(harness, last)
    await gone(harness, shared)
    await gone(harness, last)


@guarantee(GUARANTEES, "The owner goes last: it stays, marked, while it has a child.")
async def the_owner_goes_last(harness: Harness) -> None:
    owner = await harness.store.create(pasture("home"))
    child = await harness.store.create(horse("child", owner=PASTURE.owner(owner), finalizers=(HOLD,)))
    await request_deletion(harness, owner)

    async def child_is_marked() -> bool:
        return (await harness.store.get(Horse, "child")).is_deleting

    async def owner_waits() -> bool:
        found = await find(harness, Pasture, "home")
        return found is not None and found.is_deleting

    await eventually(harness, "the child is marked", child_is_marked)
    await for_a_while(harness, "the owner waits for its child", owner_waits)
    await release(harness, child)
    await gone(harness, child)
    await gone(harness, owner)


@guarantee(GUARANTEES, "A child of a dying owner is refused, or collected.")
async def no_child_of_a_dying_owner_lasts(harness: Harness) -> None:
    owner = await harness.store.create(with_metadata(pasture("home"), finalizers=(HOLD,)))
    await request_deletion(harness, owner)
    late = corral("late", owner=PASTURE.owner(owner))
    try:
        await harness.store.create(late)
    except OwnerRejected:
        return
    await release(harness, owner)
    await gone(harness, owner)

    async def late_is_gone() -> bool:
        return await find(harness, Corral, "late") is None

    await eventually(harness, "the late child is collected", late_is_gone)


@guarantee(GUARANTEES, "A child of an absent owner is refused, or collected.")
async def no_child_of_an_absent_owner_lasts(harness: Harness) -> None:
    reference = replace(PASTURE.owner(pasture("nowhere")), uid=NOBODY)
    await does_not_last(harness, corral("orphan", owner=reference))


@guarantee(
    GUARANTEES, "An owner is an incarnation: a child of another one under the same name is refused, or collected."
)
async def no_child_of_another_incarnation_lasts(harness: Harness) -> None:
    owner = await harness.store.create(pasture("home"))
    await does_not_last(harness, corral("orphan", owner=replace(PASTURE.owner(owner), uid=NOBODY)))


@guarantee(GUARANTEES, "A child that was disowned stays when its former owner goes.")
async def a_disowned_child_stays(harness: Harness) -> None:
    owner = await harness.store.create(pasture("home"))
    child = await harness.store.create(corral("child", owner=PASTURE.owner(owner)))
    await harness.store.update(with_metadata(child, owner_references=()))
    await request_deletion(harness, owner)
    await gone(harness, owner)

    async def is_untouched() -> bool:
        found = await find(harness, Corral, "child")
        return found is not None and not found.is_deleting

    await for_a_while(harness, "the disowned child is left alone", is_untouched)
