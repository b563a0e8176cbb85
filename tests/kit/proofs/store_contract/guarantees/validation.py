"""What every backend rejects, so that what one accepts all accept."""

from msgspec.structs import replace

from remuda.kernel.errors import Invalid
from remuda.store.objects import Resource, ResourceT
from tests.kit.proofs.store_contract.guarantee import Guarantee, guarantee
from tests.kit.proofs.store_contract.harness import Harness
from tests.kit.proofs.store_contract.steps import names_of, refused, watching, with_metadata, with_spec
from tests.kit.sample_kinds import (
    ONE_MEBIBYTE,
    PASTURE,
    READY,
    Horse,
    HorseSpec,
    HorseStatus,
    Pasture,
    Shoe,
    horse,
    pasture,
)

GUARANTEES: list[Guarantee] = []

BAD_NAMES = ("", "Upper", "under_score", "-dash", "dash-", "dot.", "a..b", "sl/ash", "umläut", "a" * 254)
BAD_LABELS: tuple[dict[str, str], ...] = (
    {"key": "v" * 64},
    {"key": "somebody@example.org"},
    {"key": "two words"},
    {"key": "-dash"},
    {"key": "dot."},
    {"": "value"},
    {"k" * 64: "value"},
    {"two/sla/shes": "value"},
    {"Upper.example/key": "value"},
    {"at@sign": "value"},
)
BAD_FINALIZERS = ("", "two words", "example.org/", "example.org/" + "f" * 64, "Example.org/hold", "a/b/c")


async def is_refused(harness: Harness, wanted: Resource, *, field: str) -> None:
    """Show that an object is refused, with the field named, and that nothing of it is stored."""
    error = await refused(Invalid, harness.store.create(wanted))
    assert error.field.startswith(field), f"{error.field} is named instead of {field}"
    assert await names_of(harness, type(wanted)) == []


async def is_refused_as_update(harness: Harness, before: ResourceT, wanted: ResourceT, *, field: str) -> None:
    """Show that an update is refused, with the field named, and that nothing has changed."""
    error = await refused(Invalid, harness.store.update(wanted))
    assert error.field.startswith(field), f"{error.field} is named instead of {field}"
    assert await harness.store.get(type(before), before.name) == before


@guarantee(GUARANTEES, "A name that some backend would reject is Invalid.")
async def bad_names_are_refused(harness: Harness) -> None:
    for name in BAD_NAMES:
        await is_refused(harness, pasture(name), field="metadata.name")


@guarantee(GUARANTEES, "A label that some backend would reject is Invalid.")
async def bad_labels_are_refused(harness: Harness) -> None:
    for labels in BAD_LABELS:
        await is_refused(harness, pasture("home", labels=labels), field="metadata.labels")


@guarantee(GUARANTEES, "An annotation that some backend would reject is Invalid.")
async def bad_annotations_are_refused(harness: Harness) -> None:
    for annotations in ({"two words": ""}, {"k" * 64: ""}, {"big": "b" * (256 * 1024)}):
        await is_refused(harness, with_metadata(pasture("home"), annotations=annotations), field="metadata.annotations")


@guarantee(GUARANTEES, "A finalizer that is no qualified name is Invalid.")
async def bad_finalizers_are_refused(harness: Harness) -> None:
    for finalizer in BAD_FINALIZERS:
        await is_refused(harness, pasture("home", finalizers=(finalizer,)), field="metadata.finalizers")


@guarantee(GUARANTEES, "A reference to what cannot be a name is Invalid.")
async def bad_references_are_refused(harness: Harness) -> None:
    for name in ("Upper", "", "a" * 254):
        wanted = horse("bella", spec=HorseSpec(corrals=(name,)))
        await is_refused(harness, wanted, field="the reference to corrals.test.remuda")


@guarantee(GUARANTEES, "An owner that is named in part is Invalid.")
async def bad_owners_are_refused(harness: Harness) -> None:
    whole = PASTURE.owner(await harness.store.create(pasture("home")))
    owners = (replace(whole, uid=""), replace(whole, name=""), replace(whole, kind=""))
    for owner in (*owners, replace(whole, block_owner_deletion=False)):
        await is_refused(harness, horse("bella", owner=owner), field="metadata.ownerReferences")
    two_controllers = with_metadata(horse("bella"), owner_references=(whole, replace(whole, name="away")))
    await is_refused(harness, two_controllers, field="metadata.ownerReferences")


@guarantee(GUARANTEES, "An object that is too large for some backend is Invalid.")
async def too_large_objects_are_refused(harness: Harness) -> None:
    await is_refused(harness, horse("bella", spec=HorseSpec(colour="c" * ONE_MEBIBYTE)), field="the object")


@guarantee(GUARANTEES, "A keyed list with two items of one key is Invalid.")
async def two_items_of_one_key_are_refused(harness: Harness) -> None:
    twice = (Shoe(hoof="left", size=1), Shoe(hoof="right"), Shoe(hoof="left", size=2))
    await is_refused(harness, horse("bella", spec=HorseSpec(shoes=twice)), field="spec.shoes")
    before = await harness.store.create(horse("bella"))
    await is_refused_as_update(harness, before, with_spec(before, shoes=twice), field="spec.shoes")
    status = HorseStatus(conditions=(READY, replace(READY, status="False")))
    error = await refused(Invalid, harness.store.update_status(replace(before, status=status)))
    assert error.field == "status.conditions"
    assert await harness.store.get(Horse, "bella") == before


@guarantee(GUARANTEES, "An update is checked like a create, and changes nothing when it is Invalid.")
async def bad_updates_are_refused(harness: Harness) -> None:
    before = await harness.store.create(pasture("home"))
    for field, wrong in {
        "metadata.labels": with_metadata(before, labels={"key": "v" * 64}),
        "metadata.finalizers": with_metadata(before, finalizers=("example.org/" + "f" * 64,)),
        "metadata.annotations": with_metadata(before, annotations={"two words": ""}),
    }.items():
        await is_refused_as_update(harness, before, wrong, field=field)


@guarantee(GUARANTEES, "A label selector that could select nothing is Invalid, for a list as for a watch.")
async def bad_selectors_are_refused(harness: Harness) -> None:
    since = (await harness.store.list(Horse)).version
    for labels in BAD_LABELS:
        await refused(Invalid, harness.store.list(Horse, labels=labels))
        async with watching(harness, Horse, since=since, labels=labels) as watch:
            await refused(Invalid, watch.event())


@guarantee(GUARANTEES, "What every backend takes is accepted, up to the last character.")
async def the_longest_of_everything_is_accepted(harness: Harness) -> None:
    labels = {"p" * 63 + ".example/" + "k" * 63: "v" * 63, "empty": ""}
    wanted = pasture("n" * 253, labels=labels, finalizers=("example.org/" + "f" * 63,))
    created = await harness.store.create(wanted)
    assert created.metadata.labels == labels
    assert await names_of(harness, Pasture, labels=labels) == ["n" * 253]
