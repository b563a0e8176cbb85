"""What create promises."""

import asyncio
from datetime import UTC, datetime

from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists, TooManyObjects
from tests.kit.proofs.store_contract.guarantee import Guarantee, guarantee
from tests.kit.proofs.store_contract.harness import Harness
from tests.kit.proofs.store_contract.steps import gone, refused, request_deletion, with_metadata
from tests.kit.sample_kinds import FARM, MOST_PASTURES, Horse, HorseSpec, HorseStatus, Pasture, corral, horse, pasture

GUARANTEES: list[Guarantee] = []


@guarantee(GUARANTEES, "Create fails with AlreadyExists on a taken name, and leaves alone what has it.")
async def create_rejects_a_taken_name(harness: Harness) -> None:
    await harness.store.create(pasture("home", acres=1))
    await refused(AlreadyExists, harness.store.create(pasture("home", acres=2)))
    assert (await harness.store.get(Pasture, "home")).spec.acres == 1


@guarantee(GUARANTEES, "A name is taken within its kind alone.")
async def kinds_do_not_share_names(harness: Harness) -> None:
    await harness.store.create(pasture("home"))
    assert (await harness.store.create(corral("home"))).name == "home"


@guarantee(GUARANTEES, "Create stores what was asked for and returns what is stored.")
async def create_returns_what_is_stored(harness: Harness) -> None:
    spec = HorseSpec(colour="grey", nicknames=("smoke",))
    wanted = with_metadata(horse("bella", labels={"herd": "north"}, spec=spec), annotations={"note": "shy"})
    created = await harness.store.create(wanted)
    assert (created.spec, created.metadata.labels) == (spec, {"herd": "north"})
    assert created.metadata.annotations == {"note": "shy"}
    assert await harness.store.get(Horse, "bella") == created


@guarantee(GUARANTEES, "Create stores no status of the caller's.")
async def create_stores_no_status(harness: Harness) -> None:
    wanted = replace(horse("bella"), status=HorseStatus(place="prairie"))
    assert (await harness.store.create(wanted)).status.place == ""
    assert (await harness.store.get(Horse, "bella")).status.place == ""


@guarantee(GUARANTEES, "Create stores no uid of the caller's.")
async def create_gives_a_uid_of_its_own(harness: Harness) -> None:
    created = await harness.store.create(with_metadata(pasture("home"), uid="mine"))
    assert created.uid not in {"mine", ""}


@guarantee(GUARANTEES, "An object recreated under its old name is another incarnation: it has another uid.")
async def each_incarnation_has_a_uid_of_its_own(harness: Harness) -> None:
    first = await harness.store.create(pasture("home"))
    await request_deletion(harness, first)
    await gone(harness, first)
    second = await harness.store.create(pasture("home"))
    assert second.uid != first.uid


@guarantee(GUARANTEES, "The store fills in the metadata that a caller may not set.")
async def create_fills_in_what_callers_may_not_set(harness: Harness) -> None:
    never = datetime(1970, 1, 1, tzinfo=UTC)
    claim = {"generation": 7, "creation_timestamp": never, "deletion_timestamp": never, "resource_version": "7"}
    metadata = (await harness.store.create(with_metadata(pasture("home"), **claim))).metadata
    assert (metadata.generation, metadata.deletion_timestamp) == (1, None)
    assert metadata.creation_timestamp not in {never, None}
    assert metadata.resource_version not in {"7", ""}


@guarantee(GUARANTEES, "Concurrent creates never exceed the object limit of their kind.")
async def concurrent_creates_stay_within_the_object_limit(harness: Harness) -> None:
    creates = [harness.store.create(pasture(f"home-{number}", labels={FARM: "ours"})) for number in range(8)]
    done = await asyncio.gather(*creates, return_exceptions=True)
    rejected = [each for each in done if isinstance(each, TooManyObjects)]
    assert len(rejected) == len(creates) - MOST_PASTURES
    assert "delete those that are not needed" in rejected[0].message
    stored = (await harness.store.list_names(Pasture, labels={FARM: "ours"})).items
    assert len(stored) == MOST_PASTURES


@guarantee(GUARANTEES, "The object limit is per scope, does not apply outside of any, and counts what is there.")
async def the_object_limit_counts_what_is_there(harness: Harness) -> None:
    ours = [await harness.store.create(pasture(f"ours-{n}", labels={FARM: "ours"})) for n in range(MOST_PASTURES)]
    for number in range(MOST_PASTURES + 1):
        await harness.store.create(pasture(f"nobody-{number}"))
    await harness.store.create(pasture("theirs", labels={FARM: "theirs"}))
    await refused(TooManyObjects, harness.store.create(pasture("more", labels={FARM: "ours"})))
    await request_deletion(harness, ours[0])
    await gone(harness, ours[0])
    await harness.store.create(pasture("more", labels={FARM: "ours"}))
