"""What update and update_status promise, and whom a stale version stops."""

import asyncio
import contextlib

from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists, Conflict, NotFound
from remuda.kernel.secrets import Secret
from remuda.store.objects import ResourceT
from tests.kit.proofs.store_contract.guarantee import Guarantee, guarantee
from tests.kit.proofs.store_contract.harness import Harness
from tests.kit.proofs.store_contract.steps import HOLD, refused, request_deletion, watching, with_metadata, with_spec
from tests.kit.sample_kinds import ONE_MEBIBYTE, READY, Horse, HorseSpec, HorseStatus, Pasture, Shoe, at, horse, pasture

GUARANTEES: list[Guarantee] = []


async def is_no_write(harness: Harness, before: ResourceT, after: ResourceT, *, since: str) -> None:
    """Show by a later change of the kind that nothing was announced before it."""
    assert after == before
    assert await harness.store.get(type(before), before.name) == before
    await harness.store.create(with_metadata(before, name="later"))
    async with watching(harness, type(before), since=since) as watch:
        assert [change.resource.name for change in await watch.until_named("later")] == ["later"]


@guarantee(GUARANTEES, "Update writes metadata and spec, and returns what is stored.")
async def update_writes_metadata_and_spec(harness: Harness) -> None:
    created = await harness.store.create(pasture("home", acres=1, labels={"kept": "no"}))
    changed = with_metadata(created, labels={"new": "yes"}, annotations={"note": "sold"})
    updated = await harness.store.update(with_spec(changed, acres=2))
    assert (updated.spec.acres, updated.metadata.labels) == (2, {"new": "yes"})
    assert updated.metadata.annotations == {"note": "sold"}
    assert await harness.store.get(Pasture, "home") == updated


@guarantee(GUARANTEES, "Update does not touch status.")
async def update_keeps_status(harness: Harness) -> None:
    created = await harness.store.create(horse("bella"))
    placed = await harness.store.update_status(at("prairie", created))
    updated = await harness.store.update(at("elsewhere", with_spec(placed, colour="grey")))
    assert updated.status.place == "prairie"
    assert (await harness.store.get(Horse, "bella")).status.place == "prairie"


@guarantee(GUARANTEES, "Update_status writes status, and returns what is stored.")
async def update_status_writes_status(harness: Harness) -> None:
    created = await harness.store.create(horse("bella"))
    status = HorseStatus(place="prairie", conditions=(READY,))
    placed = await harness.store.update_status(replace(created, status=status))
    assert placed.status == status
    assert await harness.store.get(Horse, "bella") == placed


@guarantee(GUARANTEES, "Update_status touches neither spec nor metadata.")
async def update_status_keeps_the_rest(harness: Harness) -> None:
    created = await harness.store.create(horse("bella", labels={"herd": "north"}))
    wanted = with_metadata(with_spec(created, colour="grey"), labels={"herd": "south"})
    placed = await harness.store.update_status(at("prairie", wanted))
    assert (placed.spec.colour, placed.metadata.labels) == ("bay", {"herd": "north"})
    assert (await harness.store.get(Horse, "bella")).spec.colour == "bay"


@guarantee(GUARANTEES, "Update fails with Conflict on any version but the one that was read.")
async def a_stale_update_conflicts(harness: Harness) -> None:
    stale = await harness.store.create(pasture("home", acres=1))
    current = await harness.store.update(with_spec(stale, acres=2))
    await refused(Conflict, harness.store.update(with_spec(stale, acres=3)))
    assert await harness.store.get(Pasture, "home") == current


@guarantee(GUARANTEES, "Update_status fails with Conflict on any version but the one that was read.")
async def a_stale_status_conflicts(harness: Harness) -> None:
    stale = await harness.store.create(horse("bella"))
    current = await harness.store.update_status(at("prairie", stale))
    await refused(Conflict, harness.store.update_status(at("elsewhere", stale)))
    assert await harness.store.get(Horse, "bella") == current


@guarantee(GUARANTEES, "A stale update conflicts even if it would change nothing.")
async def a_stale_update_conflicts_before_nothing_changed(harness: Harness) -> None:
    stale = await harness.store.create(pasture("home", acres=1))
    await harness.store.update(with_spec(stale, acres=2))
    await refused(Conflict, harness.store.update(with_spec(stale, acres=2)))


@guarantee(GUARANTEES, "A stale status conflicts even if it would change nothing.")
async def a_stale_status_conflicts_before_nothing_changed(harness: Harness) -> None:
    stale = await harness.store.create(horse("bella"))
    await harness.store.update_status(at("prairie", stale))
    await refused(Conflict, harness.store.update_status(at("prairie", stale)))


@guarantee(GUARANTEES, "A stale version is found before references are validated.")
async def a_stale_update_conflicts_before_references_are_checked(harness: Harness) -> None:
    stale = await harness.store.create(horse("bella"))
    await harness.store.update(with_spec(stale, colour="grey"))
    await refused(Conflict, harness.store.update(with_spec(stale, corrals=("nowhere",))))


@guarantee(GUARANTEES, "A stale update conflicts even if it is Invalid as well.")
async def a_stale_update_conflicts_before_it_is_checked(harness: Harness) -> None:
    stale = await harness.store.create(horse("bella"))
    await harness.store.update(with_spec(stale, colour="grey"))
    for wrong in (
        with_metadata(stale, labels={"key": "v" * 64}),
        with_metadata(stale, finalizers=("two words",)),
        with_spec(stale, shoes=(Shoe(hoof="left"), Shoe(hoof="left"))),
        with_spec(stale, colour="c" * ONE_MEBIBYTE),
    ):
        await refused(Conflict, harness.store.update(wrong))


@guarantee(GUARANTEES, "A stale status conflicts even if it is Invalid as well.")
async def a_stale_status_conflicts_before_it_is_checked(harness: Harness) -> None:
    stale = await harness.store.create(horse("bella"))
    await harness.store.update_status(at("prairie", stale))
    for status in (HorseStatus(conditions=(READY, READY)), HorseStatus(place="p" * ONE_MEBIBYTE)):
        await refused(Conflict, harness.store.update_status(replace(stale, status=status)))


@guarantee(GUARANTEES, "A stale update of a marked object conflicts before its finalizers are validated.")
async def a_stale_update_conflicts_before_late_finalizers_are_checked(harness: Harness) -> None:
    stale = await harness.store.create(pasture("home", finalizers=(HOLD,)))
    await request_deletion(harness, stale)
    late = (HOLD, "example.org/late")
    await refused(Conflict, harness.store.update(with_metadata(stale, finalizers=late)))


@guarantee(GUARANTEES, "Of those who write at once from one version, one succeeds and the others conflict.")
async def one_of_many_writers_wins(harness: Harness) -> None:
    created = await harness.store.create(pasture("home"))
    attempts = [harness.store.update(with_spec(created, acres=acres)) for acres in range(1, 6)]
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    (winner,) = [outcome for outcome in outcomes if isinstance(outcome, Pasture)]
    assert [type(outcome) for outcome in outcomes if outcome is not winner] == [Conflict] * 4
    assert await harness.store.get(Pasture, "home") == winner


@guarantee(GUARANTEES, "Update of what is not there fails with NotFound.")
async def update_of_the_absent_is_not_found(harness: Harness) -> None:
    created = await harness.store.create(pasture("home"))
    await refused(NotFound, harness.store.update(with_metadata(created, name="away")))


@guarantee(GUARANTEES, "Update_status of what is not there fails with NotFound.")
async def update_status_of_the_absent_is_not_found(harness: Harness) -> None:
    created = await harness.store.create(horse("bella"))
    await refused(NotFound, harness.store.update_status(at("prairie", with_metadata(created, name="away"))))


@guarantee(GUARANTEES, "An update that changes nothing is no write: no version, no event.")
async def an_update_without_change_is_no_write(harness: Harness) -> None:
    since = (await harness.store.create(pasture("home", acres=1))).version
    before = await harness.store.get(Pasture, "home")
    await is_no_write(harness, before, await harness.store.update(before), since=since)


@guarantee(GUARANTEES, "A status that changes nothing is no write: no version, no event.")
async def a_status_without_change_is_no_write(harness: Harness) -> None:
    placed = await harness.store.update_status(at("prairie", await harness.store.create(horse("bella"))))
    await is_no_write(harness, placed, await harness.store.update_status(at("prairie", placed)), since=placed.version)


@guarantee(GUARANTEES, "Writing a secret again changes nothing.")
async def the_same_secret_again_is_no_write(harness: Harness) -> None:
    before = await harness.store.create(horse("bella", spec=HorseSpec(brand=Secret("lazy eight"))))
    again = with_spec(before, brand=Secret("lazy eight"))
    await is_no_write(harness, before, await harness.store.update(again), since=before.version)


@guarantee(GUARANTEES, "A write that was refused is no write: no version, no event.")
async def a_refused_write_is_no_write(harness: Harness) -> None:
    before = await harness.store.create(pasture("home"))
    with contextlib.suppress(AlreadyExists):
        await harness.store.create(pasture("home", acres=5))
    await is_no_write(harness, before, await harness.store.get(Pasture, "home"), since=before.version)


@guarantee(GUARANTEES, "Generation begins at one and moves when the spec changes.")
async def generation_moves_with_the_spec(harness: Harness) -> None:
    created = await harness.store.create(pasture("home"))
    updated = await harness.store.update(with_spec(created, acres=2))
    assert (created.metadata.generation, updated.metadata.generation) == (1, 2)


@guarantee(GUARANTEES, "Generation does not move when metadata changes.")
async def generation_stays_when_metadata_changes(harness: Harness) -> None:
    created = await harness.store.create(pasture("home"))
    updated = await harness.store.update(with_metadata(created, labels={"new": "yes"}, annotations={"note": "sold"}))
    assert updated.metadata.generation == created.metadata.generation


@guarantee(GUARANTEES, "Generation does not move when status changes.")
async def generation_stays_when_status_changes(harness: Harness) -> None:
    created = await harness.store.create(horse("bella"))
    placed = await harness.store.update_status(at("prairie", created))
    assert placed.metadata.generation == created.metadata.generation
