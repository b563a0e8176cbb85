"""What a write leaves in the stored document: all it knows as wanted, all it does not know as found."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from remuda.kernel.secrets import Secret
from tests.kit.proofs.store_contract.guarantee import Guarantee, guarantee
from tests.kit.proofs.store_contract.harness import UNKNOWN_FIELD, Harness
from tests.kit.proofs.store_contract.steps import HOLD, request_deletion, with_metadata, with_spec
from tests.kit.sample_kinds import READY, Horse, HorseSpec, HorseStatus, Saddle, Shoe, horse

GUARANTEES: list[Guarantee] = []

WILD: Mapping[str, str] = {UNKNOWN_FIELD: "wild"}


async def stored(harness: Harness, part: str) -> Mapping[str, Any]:
    """Return one part of the only horse's document."""
    found: Mapping[str, Any] = (await harness.raw(Horse, "bella")).get(part, {})
    return found


async def planted(harness: Harness, wanted: Horse, patch: Mapping[str, Any]) -> Horse:
    """Return a new horse in whose document there is more than we know."""
    await harness.store.create(wanted)
    await harness.plant(Horse, wanted.name, patch)
    return await harness.store.get(Horse, wanted.name)


@guarantee(GUARANTEES, "Fields of the spec that we do not know survive an update.")
async def unknown_fields_survive_an_update(harness: Harness) -> None:
    found = await planted(harness, horse("bella"), {"spec": WILD})
    await harness.store.update(with_spec(found, colour="grey"))
    assert await stored(harness, "spec") == {"colour": "grey", **WILD}


@guarantee(GUARANTEES, "Fields that we do not know survive inside a struct that we change.")
async def unknown_fields_survive_inside_a_struct(harness: Harness) -> None:
    found = await planted(harness, horse("bella", spec=HorseSpec(saddle=Saddle(size=1))), {"spec": {"saddle": WILD}})
    await harness.store.update(with_spec(found, saddle=Saddle(size=2)))
    assert (await stored(harness, "spec"))["saddle"] == {"size": 2, **WILD}


@guarantee(GUARANTEES, "Fields that we do not know survive inside the values of a map that we change.")
async def unknown_fields_survive_inside_a_map(harness: Harness) -> None:
    spec = HorseSpec(spare_saddles={"old": Saddle(size=1), "older": Saddle(size=1)})
    found = await planted(harness, horse("bella", spec=spec), {"spec": {"spareSaddles": {"old": WILD, "older": WILD}}})
    await harness.store.update(with_spec(found, spare_saddles={"old": Saddle(size=2), "older": Saddle(size=1)}))
    saddles = (await stored(harness, "spec"))["spareSaddles"]
    assert saddles == {"old": {"size": 2, **WILD}, "older": {"size": 1, **WILD}}


@guarantee(GUARANTEES, "Fields that we do not know survive inside the items of a keyed list that we change.")
async def unknown_fields_survive_inside_a_keyed_list(harness: Harness) -> None:
    spec = HorseSpec(shoes=(Shoe(hoof="left", size=1), Shoe(hoof="right", size=1)))
    shoes = [{"hoof": "left", "size": 1, **WILD}, {"hoof": "right", "size": 1, **WILD}]
    found = await planted(harness, horse("bella", spec=spec), {"spec": {"shoes": shoes}})
    new = (Shoe(hoof="front", size=3), Shoe(hoof="right", size=1), Shoe(hoof="left", size=2))
    await harness.store.update(with_spec(found, shoes=new))
    assert (await stored(harness, "spec"))["shoes"][1:] == [
        {"hoof": "right", "size": 1, **WILD},
        {"hoof": "left", "size": 2, **WILD},
    ]


@guarantee(GUARANTEES, "Fields of the spec that we do not know survive an update of the status.")
async def unknown_fields_of_the_spec_survive_a_status(harness: Harness) -> None:
    found = await planted(harness, horse("bella"), {"spec": WILD})
    await harness.store.update_status(replace(found, status=HorseStatus(place="prairie")))
    assert await stored(harness, "spec") == WILD


@guarantee(GUARANTEES, "Fields of the status that we do not know survive an update of the status.")
async def unknown_fields_of_the_status_survive_a_status(harness: Harness) -> None:
    found = await planted(harness, horse("bella"), {"status": WILD})
    await harness.store.update_status(replace(found, status=HorseStatus(place="prairie")))
    assert await stored(harness, "status") == {"place": "prairie", **WILD}


@guarantee(GUARANTEES, "Fields of the status that we do not know survive an update of the spec.")
async def unknown_fields_of_the_status_survive_an_update(harness: Harness) -> None:
    found = await planted(harness, horse("bella"), {"status": WILD})
    await harness.store.update(with_spec(found, colour="grey"))
    assert await stored(harness, "status") == WILD


@guarantee(GUARANTEES, "Fields that we do not know survive inside a condition that we change.")
async def unknown_fields_survive_inside_a_condition(harness: Harness) -> None:
    created = await harness.store.create(horse("bella"))
    await harness.store.update_status(replace(created, status=HorseStatus(conditions=(READY,))))
    (condition,) = (await stored(harness, "status"))["conditions"]
    await harness.plant(Horse, "bella", {"status": {"conditions": [{**condition, **WILD}]}})
    found = await harness.store.get(Horse, "bella")
    unready = replace(READY, status="False")
    await harness.store.update_status(replace(found, status=HorseStatus(conditions=(unready,))))
    assert (await stored(harness, "status"))["conditions"] == [{**condition, "status": "False", **WILD}]


@guarantee(GUARANTEES, "Fields that we do not know survive when all that we know is set back to its default.")
async def unknown_fields_survive_a_default(harness: Harness) -> None:
    spec = HorseSpec(colour="grey")
    found = await planted(harness, horse("bella", spec=spec), {"spec": WILD, "status": {"place": "prairie", **WILD}})
    bare = await harness.store.update(Horse(metadata=found.metadata))
    await harness.store.update_status(Horse(metadata=bare.metadata))
    assert (await stored(harness, "spec"), await stored(harness, "status")) == (WILD, WILD)


@guarantee(GUARANTEES, "Fields that we do not know survive the request of deletion.")
async def unknown_fields_survive_the_mark(harness: Harness) -> None:
    found = await planted(harness, horse("bella", finalizers=(HOLD,)), {"spec": WILD})
    await request_deletion(harness, found)
    assert await stored(harness, "spec") == WILD


@guarantee(GUARANTEES, "A field that we know and clear is gone from the document.")
async def a_cleared_field_is_gone(harness: Harness) -> None:
    spec = HorseSpec(colour="grey", saddle=Saddle(size=1))
    found = await planted(harness, horse("bella", spec=spec), {"status": WILD})
    assert (await harness.store.update(with_spec(found, saddle=None))).spec.saddle is None
    assert await stored(harness, "spec") == {"colour": "grey"}


@guarantee(GUARANTEES, "Maps are merged by key: a key that is not wanted any more goes, a new one comes.")
async def maps_are_merged_by_key(harness: Harness) -> None:
    created = await harness.store.create(horse("bella", spec=HorseSpec(feed={"hay": 1, "oats": 2})))
    await harness.store.update(with_spec(created, feed={"hay": 3, "corn": 4}))
    assert (await stored(harness, "spec"))["feed"] == {"hay": 3, "corn": 4}


@guarantee(GUARANTEES, "Labels and annotations are merged by key: one that is not wanted any more goes.")
async def labels_are_merged_by_key(harness: Harness) -> None:
    wanted = with_metadata(horse("bella", labels={"herd": "north", "old": "yes"}), annotations={"old": "yes"})
    created = await harness.store.create(wanted)
    await harness.store.update(with_metadata(created, labels={"herd": "north"}, annotations={}))
    metadata = await stored(harness, "metadata")
    assert (metadata["labels"], metadata.get("annotations", {})) == ({"herd": "north"}, {})


@guarantee(GUARANTEES, "Lists without a key are replaced whole.")
async def plain_lists_are_replaced(harness: Harness) -> None:
    created = await harness.store.create(horse("bella", spec=HorseSpec(nicknames=("smoke", "ash"))))
    await harness.store.update(with_spec(created, nicknames=("ash", "coal")))
    assert (await stored(harness, "spec"))["nicknames"] == ["ash", "coal"]


@guarantee(GUARANTEES, "Keyed lists have the wanted items in the wanted order: one that is not wanted any more goes.")
async def keyed_lists_have_the_wanted_items(harness: Harness) -> None:
    spec = HorseSpec(shoes=(Shoe(hoof="left", size=1), Shoe(hoof="right", size=1)))
    created = await harness.store.create(horse("bella", spec=spec))
    await harness.store.update(with_spec(created, shoes=(Shoe(hoof="front", size=3), Shoe(hoof="left", size=2))))
    assert (await stored(harness, "spec"))["shoes"] == [{"hoof": "front", "size": 3}, {"hoof": "left", "size": 2}]


@guarantee(GUARANTEES, "Secrets are sealed before they are stored, and opened for who reads the object.")
async def secrets_are_sealed(harness: Harness) -> None:
    await harness.store.create(horse("bella", spec=HorseSpec(brand=Secret("lazy eight"))))
    assert "lazy eight" not in str(await stored(harness, "spec"))
    brand = (await harness.store.get(Horse, "bella")).spec.brand
    assert brand is not None
    assert brand.reveal() == "lazy eight"
