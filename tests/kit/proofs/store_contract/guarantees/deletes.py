"""What delete promises, and what finalizers hold."""

import asyncio
import re
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists, Conflict, Invalid, NotFound
from remuda.store.logs import Record
from tests.kit.proofs.store_contract.guarantee import Guarantee, guarantee
from tests.kit.proofs.store_contract.harness import Harness, for_a_while
from tests.kit.proofs.store_contract.steps import (
    HOLD,
    find,
    gone,
    held_alone,
    present,
    refused,
    release,
    request_deletion,
    watching,
    with_metadata,
    with_spec,
)
from tests.kit.sample_kinds import HORSE, ONE_MEBIBYTE, PASTURE, Corral, Horse, Pasture, at, corral, horse, pasture

GUARANTEES: list[Guarantee] = []

SECOND_HOLD = "example.org/second-hold"


@guarantee(GUARANTEES, "An object without finalizers goes when it is deleted.")
async def delete_removes(harness: Harness) -> None:
    for wanted in (pasture("home"), corral("pen"), horse("bella")):
        created = await harness.store.create(wanted)
        await request_deletion(harness, created)
        await gone(harness, created)


@guarantee(GUARANTEES, "An object with finalizers is marked with a deletion time, returned, and stays.")
async def delete_marks_what_is_held(harness: Harness) -> None:
    created = await harness.store.create(pasture("home", finalizers=(HOLD,)))
    marked = await request_deletion(harness, created)
    assert marked is not None
    assert marked.metadata.deletion_timestamp is not None

    async def is_deleting() -> bool:
        return (await harness.store.get(Pasture, "home")).is_deleting

    await for_a_while(harness, "the pasture is there and marked", is_deleting)


@guarantee(GUARANTEES, "A marked object goes when its last finalizer goes.")
async def the_last_finalizer_releases_it(harness: Harness) -> None:
    created = await harness.store.create(pasture("home", finalizers=(HOLD,)))
    await request_deletion(harness, created)
    await release(harness, created)
    await gone(harness, created)


@guarantee(GUARANTEES, "A marked object stays while it has one finalizer left.")
async def any_finalizer_holds(harness: Harness) -> None:
    created = await harness.store.create(pasture("home", finalizers=(HOLD, SECOND_HOLD)))
    await request_deletion(harness, created)
    await release(harness, created)

    async def is_held() -> bool:
        found = await find(harness, Pasture, "home")
        return found is not None and SECOND_HOLD in found.metadata.finalizers

    await for_a_while(harness, "the pasture is held by its second finalizer", is_held)


@guarantee(GUARANTEES, "No finalizer can be added after the mark.")
async def no_finalizer_comes_after_the_mark(harness: Harness) -> None:
    created = await harness.store.create(pasture("home", finalizers=(HOLD,)))
    await request_deletion(harness, created)
    marked = await held_alone(harness, created)
    late = (*marked.metadata.finalizers, SECOND_HOLD)
    await refused(Invalid, harness.store.update(with_metadata(marked, finalizers=late)))
    assert SECOND_HOLD not in (await harness.store.get(Pasture, "home")).metadata.finalizers


@guarantee(GUARANTEES, "The mark cannot be taken off again.")
async def the_mark_stays(harness: Harness) -> None:
    created = await harness.store.create(pasture("home", finalizers=(HOLD,)))
    await request_deletion(harness, created)
    marked = await held_alone(harness, created)
    updated = await harness.store.update(with_metadata(with_spec(marked, acres=2), deletion_timestamp=None))
    assert updated.metadata.deletion_timestamp == marked.metadata.deletion_timestamp


@guarantee(GUARANTEES, "Deleting a marked object again is fine and writes nothing.")
async def deleting_again_writes_nothing(harness: Harness) -> None:
    created = await harness.store.create(horse("bella", finalizers=(HOLD,)))
    await request_deletion(harness, created)
    marked = await held_alone(harness, created)
    since = await present(harness, Horse)
    await request_deletion(harness, marked)
    await harness.store.create(horse("later"))
    async with watching(harness, Horse, since=since) as watch:
        assert [change.resource.name for change in await watch.until_named("later")] == ["later"]


@guarantee(GUARANTEES, "Generation moves when deletion is requested.")
async def generation_moves_with_the_mark(harness: Harness) -> None:
    created = await harness.store.create(pasture("home", finalizers=(HOLD,)))
    await request_deletion(harness, created)
    marked = await harness.store.get(Pasture, "home")
    assert marked.metadata.generation == created.metadata.generation + 1


@guarantee(GUARANTEES, "Generation does not move when a finalizer goes.")
async def generation_stays_when_a_finalizer_goes(harness: Harness) -> None:
    created = await harness.store.create(pasture("home", finalizers=(HOLD,)))
    await release(harness, created)
    assert (await harness.store.get(Pasture, "home")).metadata.generation == created.metadata.generation


@guarantee(GUARANTEES, "Delete fails with Conflict on another incarnation.")
async def delete_of_another_incarnation_conflicts(harness: Harness) -> None:
    created = await harness.store.create(pasture("home"))
    await refused(Conflict, harness.store.delete(Pasture, "home", uid="a0000000-0000-4000-8000-000000000000"))
    assert await harness.store.get(Pasture, "home") == created


@guarantee(GUARANTEES, "Delete with a version fails with Conflict on any other.")
async def delete_of_another_version_conflicts(harness: Harness) -> None:
    created = await harness.store.create(pasture("home", acres=1))
    current = await harness.store.update(with_spec(created, acres=2))
    await refused(Conflict, harness.store.delete(Pasture, "home", uid=created.uid, version=created.version))
    assert await harness.store.get(Pasture, "home") == current


@guarantee(GUARANTEES, "Delete with the version that is stored goes through.")
async def delete_of_the_stored_version_goes_through(harness: Harness) -> None:
    created = await harness.store.create(pasture("home"))
    await harness.store.delete(Pasture, "home", uid=created.uid, version=created.version)
    await gone(harness, created)


@guarantee(GUARANTEES, "Delete of what is not there fails with NotFound.")
async def delete_of_the_absent_is_not_found(harness: Harness) -> None:
    created = await harness.store.create(pasture("home"))
    await refused(NotFound, harness.store.delete(Pasture, "away", uid=created.uid))


@guarantee(GUARANTEES, "Delete without a version never conflicts, however many others write the object meanwhile.")
async def delete_by_uid_alone_never_conflicts(harness: Harness) -> None:
    async def wander(mare: Horse, turns: int, whim: str) -> None:
        """Write the status of a mare, again and again until it is marked."""
        for turn in range(turns):
            found = await harness.store.get(Horse, mare.name)
            if found.is_deleting:
                return
            with suppress(Conflict):
                await harness.store.update_status(at(f"{whim}-{turn}", found))

    async def wander_off(mare: Horse) -> None:
        await wander(mare, 3, "last")
        await request_deletion(harness, mare)

    mares = [await harness.store.create(horse(f"mare-{number}", finalizers=(HOLD,))) for number in range(3)]
    for mare in mares[1:]:
        await harness.store.create(horse(f"foal-of-{mare.name}", owner=HORSE.owner(mare)))
    wanderers = [wander(mare, 50, whim) for mare in mares for whim in ("hill", "river")]
    await asyncio.gather(*wanderers, *map(wander_off, mares))
    for mare in mares:
        await release(harness, mare)
        await gone(harness, mare)


@guarantee(GUARANTEES, "A delete that is refused touches no child.")
async def a_refused_delete_touches_no_child(harness: Harness) -> None:
    once = Record(stream="timeline", subject="home", data=msgspec.Raw(b"1"), once=True)
    owner = await harness.store.create(pasture("home"), log=[once])
    child = await harness.store.create(corral("child", owner=PASTURE.owner(owner)))
    current = await harness.store.update(with_spec(owner, acres=2))
    await refused(Conflict, harness.store.delete(Pasture, "home", uid=owner.uid, version=owner.version))
    await refused(Conflict, harness.store.delete(Pasture, "home", uid=child.uid))
    await refused(AlreadyExists, harness.store.delete(Pasture, "home", uid=owner.uid, log=[once]))

    async def is_untouched() -> bool:
        return (await find(harness, Corral, "child"), await find(harness, Pasture, "home")) == (child, current)

    await for_a_while(harness, "the owner and its child are as they were", is_untouched)


@guarantee(GUARANTEES, "What is as large as can be is marked, disowned, released and removed like anything else.")
async def the_largest_can_be_deleted(harness: Harness) -> None:
    owner = await harness.store.create(await largest(harness, horse("owner", finalizers=(HOLD,))))
    child = await harness.store.create(await largest(harness, horse("child", owner=HORSE.owner(owner))))
    await request_deletion(harness, owner)
    await gone(harness, child)
    await release(harness, owner)
    await gone(harness, owner)
    first, last = await harness.store.create(pasture("first")), await harness.store.create(pasture("last"))
    owners = (PASTURE.owner(first), replace(PASTURE.owner(last), controller=False))
    shared = await largest(harness, with_metadata(horse("shared"), owner_references=owners))
    shared = await harness.store.create(shared)
    for each in (first, last):
        await request_deletion(harness, each)
        await gone(harness, each)
    await gone(harness, shared)


async def largest(harness: Harness, wanted: Horse) -> Horse:
    """Return a horse with so many nicknames that a few more bytes would be refused."""
    rejection = await refused(Invalid, harness.store.create(with_spec(wanted, nicknames=("n" * ONE_MEBIBYTE,))))
    taken, bound = map(int, re.findall(r"\d+", rejection.message))
    return with_spec(wanted, nicknames=("n" * (ONE_MEBIBYTE - (taken - bound) - 8),))
