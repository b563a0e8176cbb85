"""What references promise: what is referred to cannot go."""

from remuda.kernel.errors import Conflict, ReferenceRejected
from remuda.store.contract import Referrer
from tests.kit.proofs.store_contract.guarantee import Guarantee, guarantee
from tests.kit.proofs.store_contract.harness import Harness, eventually, for_a_while
from tests.kit.proofs.store_contract.steps import (
    HOLD,
    find,
    gone,
    refused,
    release,
    request_deletion,
    with_metadata,
    with_spec,
)
from tests.kit.sample_kinds import HORSE, PASTURE, Corral, Horse, HorseSpec, corral, horse, pasture

GUARANTEES: list[Guarantee] = []


def horse_in(place: Corral, name: str = "bella", finalizers: tuple[str, ...] = ()) -> Horse:
    return horse(name, spec=HorseSpec(corrals=(place.name,)), finalizers=finalizers)


async def waits(harness: Harness, target: Corral) -> None:
    """Return after a while in which the target was there, marked."""

    async def is_waiting() -> bool:
        found = await find(harness, Corral, target.name)
        return found is not None and found.is_deleting

    await for_a_while(harness, f"the corral {target.name} is marked and waits", is_waiting)


@guarantee(GUARANTEES, "What is referred to is marked, and goes when its last referrer went.")
async def a_target_waits_for_its_last_referrer(harness: Harness) -> None:
    target = await harness.store.create(corral("pen"))
    riders = [await harness.store.create(horse_in(target, name)) for name in ("bella", "duke")]
    await request_deletion(harness, target)
    for rider in riders:
        await waits(harness, target)
        await request_deletion(harness, rider)
    await gone(harness, target)


@guarantee(GUARANTEES, "What must be unused to be deleted is not even marked while somebody refers to it.")
async def a_target_that_must_be_unused_is_not_marked(harness: Harness) -> None:
    target = await harness.store.create(corral("pen"))
    rider = await harness.store.create(horse_in(target))
    await refused(Conflict, harness.store.delete(Corral, target.name, uid=target.uid, unused=True))
    assert not (await harness.store.get(Corral, target.name)).is_deleting
    await request_deletion(harness, rider)
    await gone(harness, rider)
    await harness.store.delete(Corral, target.name, uid=target.uid, unused=True)
    left = await find(harness, Corral, target.name)
    assert left is None or left.is_deleting


@guarantee(GUARANTEES, "A referrer that is marked but not gone still holds its target.")
async def a_dying_referrer_holds_its_target(harness: Harness) -> None:
    target = await harness.store.create(corral("pen"))
    referrer = await harness.store.create(horse_in(target, finalizers=(HOLD,)))
    await request_deletion(harness, referrer)
    await request_deletion(harness, target)
    await waits(harness, target)
    await release(harness, referrer)
    await gone(harness, target)


@guarantee(GUARANTEES, "A marked target goes when its last referrer refers to it no more.")
async def releasing_a_target_frees_it(harness: Harness) -> None:
    target = await harness.store.create(corral("pen"))
    referrer = await harness.store.create(horse_in(target))
    await request_deletion(harness, target)
    await harness.store.update(with_spec(referrer, corrals=()))
    await gone(harness, target)


@guarantee(GUARANTEES, "A referrer to an absent target is refused.")
async def a_referrer_to_an_absent_target_is_refused(harness: Harness) -> None:
    await refused(ReferenceRejected, harness.store.create(horse("bella", spec=HorseSpec(corrals=("nowhere",)))))

    async def is_absent() -> bool:
        return await find(harness, Horse, "bella") is None

    await eventually(harness, "nothing is left of the refused referrer", is_absent)


@guarantee(GUARANTEES, "A referrer to a marked target is refused.")
async def a_referrer_to_a_marked_target_is_refused(harness: Harness) -> None:
    target = await harness.store.create(corral("pen", finalizers=(HOLD,)))
    await request_deletion(harness, target)
    await refused(ReferenceRejected, harness.store.create(horse_in(target)))


@guarantee(GUARANTEES, "An update that refers to an absent target is refused.")
async def an_update_to_an_absent_target_is_refused(harness: Harness) -> None:
    referrer = await harness.store.create(horse("bella"))
    await refused(ReferenceRejected, harness.store.update(with_spec(referrer, corrals=("nowhere",))))

    async def is_as_before() -> bool:
        return (await harness.store.get(Horse, "bella")).spec == referrer.spec

    await eventually(harness, "the horse refers to nothing", is_as_before)


@guarantee(GUARANTEES, "An update that refers to a marked target is refused.")
async def an_update_to_a_marked_target_is_refused(harness: Harness) -> None:
    target = await harness.store.create(corral("pen", finalizers=(HOLD,)))
    referrer = await harness.store.create(horse("bella"))
    await request_deletion(harness, target)
    await refused(ReferenceRejected, harness.store.update(with_spec(referrer, corrals=("pen",))))


@guarantee(GUARANTEES, "A referrer that referred before its target was marked can still be written.")
async def an_old_referrer_can_still_be_written(harness: Harness) -> None:
    target = await harness.store.create(corral("pen", finalizers=(HOLD,)))
    referrer = await harness.store.create(horse_in(target))
    await request_deletion(harness, target)
    assert (await harness.store.update(with_spec(referrer, colour="grey"))).spec.colour == "grey"


@guarantee(GUARANTEES, "Who refers to an object can be asked.")
async def referrers_are_listed(harness: Harness) -> None:
    target = await harness.store.create(corral("pen"))
    assert await harness.store.referrers(Corral, "pen") == []
    first = await harness.store.create(horse_in(target, "bella"))
    await harness.store.create(horse_in(target, "duke"))
    await harness.store.create(horse("orphan"))
    assert await harness.store.referrers(Corral, "pen") == [Referrer(HORSE, "bella"), Referrer(HORSE, "duke")]
    assert await harness.store.referrers(Corral, "pen", limit=1) == [Referrer(HORSE, "bella")]
    await harness.store.update(with_spec(first, corrals=()))
    assert await harness.store.referrers(Corral, "pen") == [Referrer(HORSE, "duke")]


@guarantee(GUARANTEES, "A referrer is never written onto its target.")
async def a_new_referrer_does_not_write_its_target(harness: Harness) -> None:
    target = await harness.store.create(corral("pen"))
    before = await harness.store.get(Corral, "pen")
    await harness.store.create(horse_in(target))

    async def is_untouched() -> bool:
        return await harness.store.get(Corral, "pen") == before

    await for_a_while(harness, "the corral is as before", is_untouched)


@guarantee(GUARANTEES, "What keeps a target from going is the store's own: an update cannot take it off.")
async def a_caller_cannot_take_off_the_hold_on_a_target(harness: Harness) -> None:
    target = await harness.store.create(corral("pen"))
    await harness.store.create(horse_in(target))
    found = await harness.store.get(Corral, "pen")
    await harness.store.update(with_metadata(found, labels={"bare": "yes"}, finalizers=()))
    await request_deletion(harness, target)
    await waits(harness, target)


@guarantee(GUARANTEES, "An owner's reference to its own child does not block its cascade.")
async def an_owner_may_refer_to_its_child(harness: Harness) -> None:
    owner = await harness.store.create(pasture("home"))
    child = await harness.store.create(horse("child", owner=PASTURE.owner(owner)))
    await harness.store.update(with_spec(owner, favourite="child"))
    await request_deletion(harness, owner)
    await gone(harness, child)
    await gone(harness, owner)


@guarantee(GUARANTEES, "A child's reference to another child of its owner does not block their owner's cascade.")
async def a_child_may_refer_to_its_sibling(harness: Harness) -> None:
    owner = await harness.store.create(pasture("home"))
    target = await harness.store.create(corral("pen", owner=PASTURE.owner(owner)))
    sibling = await harness.store.create(with_metadata(horse_in(target), owner_references=(PASTURE.owner(owner),)))
    await request_deletion(harness, owner)
    for resource in (sibling, target, owner):
        await gone(harness, resource)


@guarantee(GUARANTEES, "A reference from outside an owner's cascade holds its target, and so the owner.")
async def an_outsider_holds_what_a_cascade_would_remove(harness: Harness) -> None:
    owner = await harness.store.create(pasture("home"))
    target = await harness.store.create(corral("pen", owner=PASTURE.owner(owner)))
    outsider = await harness.store.create(horse_in(target))
    await request_deletion(harness, owner)

    async def is_deleting() -> bool:
        found = await find(harness, Corral, "pen")
        return found is not None and found.is_deleting

    await eventually(harness, "the corral is marked with its owner", is_deleting)
    await waits(harness, target)
    await request_deletion(harness, outsider)
    for resource in (target, owner):
        await gone(harness, resource)
