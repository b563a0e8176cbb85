"""What readers see of writes: their own at once, and never an older state after a newer one."""

import asyncio
from typing import Any

import msgspec
from msgspec.structs import replace

from remuda.kernel.errors import NotFound
from remuda.store.contract import Dependency, Mark, indexed, labelled, named
from tests.kit.proofs.store_contract.guarantee import Guarantee, guarantee
from tests.kit.proofs.store_contract.harness import Harness, for_a_while
from tests.kit.proofs.store_contract.steps import (
    HOLD,
    find,
    gone,
    names_of,
    present,
    refused,
    release,
    request_deletion,
    watching,
    with_metadata,
    with_spec,
)
from tests.kit.sample_kinds import PASTURE, Corral, Horse, HorseSpec, HorseStatus, corral, horse, pasture

GUARANTEES: list[Guarantee] = []

NAME, HERD, COLOUR = named(Horse, "bella"), labelled(Horse, "herd", "north"), indexed(Horse, "colour", "bay")
PARTS = (NAME, HERD, COLOUR)

WRITERS = 4


def rendered(resource: Horse) -> bytes:
    return msgspec.json.encode([resource.name, resource.version, resource.spec.colour, resource.status.place])


@guarantee(GUARANTEES, "You read your own writes by name, however many others write.")
async def you_read_your_own_writes(harness: Harness) -> None:
    async def write_and_read(name: str) -> None:
        created = await harness.store.create(horse(name))
        assert await harness.store.get(Horse, name) == created
        updated = await harness.store.update(with_spec(created, colour="grey"))
        assert await harness.store.get(Horse, name) == updated
        placed = await harness.store.update_status(replace(updated, status=HorseStatus(place="prairie")))
        assert await harness.store.get(Horse, name) == placed
        await request_deletion(harness, placed)
        found = await find(harness, Horse, name)
        assert found is None or found.is_deleting

    await asyncio.gather(*(write_and_read(f"horse-{number}") for number in range(WRITERS)))


@guarantee(GUARANTEES, "You find your own writes in lists, however many others write.")
async def you_list_your_own_writes(harness: Harness) -> None:
    async def write_and_list(name: str) -> None:
        created = await harness.store.create(horse(name, labels={"one": name}))
        assert (await harness.store.list(Horse, labels={"one": name})).items == [created]
        updated = await harness.store.update(with_metadata(created, labels={"other": name}))
        assert await names_of(harness, Horse, labels={"one": name}) == []
        assert (await harness.store.list(Horse, labels={"other": name})).items == [updated]
        assert updated in (await harness.store.list(Horse)).items
        await request_deletion(harness, updated)
        assert all(item.is_deleting for item in (await harness.store.list(Horse, labels={"other": name})).items)

    await asyncio.gather(*(write_and_list(f"horse-{number}") for number in range(WRITERS)))


@guarantee(GUARANTEES, "A view is rendered from the object as it stands, and goes with it.")
async def a_view_follows_its_object(harness: Harness) -> None:
    async def agrees(expected: Horse) -> None:
        for _ in range(2):
            assert await harness.store.get_view(Horse, "bella", rendered) == rendered(expected)

    created = await harness.store.create(horse("bella"))
    await agrees(created)
    updated = await harness.store.update(with_spec(created, colour="grey"))
    await agrees(updated)
    placed = await harness.store.update_status(replace(updated, status=HorseStatus(place="prairie")))
    await agrees(placed)
    await request_deletion(harness, placed)
    await gone(harness, placed)
    await refused(NotFound, harness.store.get_view(Horse, "bella", rendered))


@guarantee(GUARANTEES, "A list of names is what the list is, by name.")
async def listed_names_are_those_of_the_list(harness: Harness) -> None:
    for name, colour in {"a": "bay", "b": "grey", "c": "bay", "d": "bay"}.items():
        spec = HorseSpec(colour=colour)
        await harness.store.create(horse(name, labels={} if name == "c" else {"herd": "north"}, spec=spec))
    gone = await harness.store.create(horse("gone", labels={"herd": "north"}))
    await request_deletion(harness, gone)
    selections: tuple[dict[str, Any], ...] = (
        {},
        {"limit": 2},
        {"labels": {"herd": "north"}, "limit": 2},
        {"index": ("colour", "grey")},
    )
    for selection in selections:
        while True:  # a cluster has other writers, whose writes move the version between two reads
            page = await harness.store.list(Horse, **selection)
            names = await harness.store.list_names(Horse, **selection)
            if (await harness.store.list(Horse, **selection)).version == page.version:
                break
        assert list(names.items) == [item.name for item in page.items], selection
        assert (names.version, names.next) == (page.version, page.next), selection
        if page.next is not None:
            rest = await harness.store.list_names(Horse, **selection, after=names.next)
            assert not set(rest.items) & set(names.items)


@guarantee(GUARANTEES, "A list of views is what the list is, rendered.")
async def listed_views_follow_their_objects(harness: Harness) -> None:
    async def agrees(**selection: object) -> None:
        while True:  # as above
            page = await harness.store.list(Horse, **selection)  # type: ignore[arg-type]  # selectors by name
            views = await harness.store.list_views(Horse, rendered, **selection)  # type: ignore[arg-type]  # same
            if (await harness.store.list(Horse, **selection)).version == page.version:  # type: ignore[arg-type]  # same
                break
        assert list(views.items) == [rendered(item) for item in page.items]
        assert (views.version, views.next) == (page.version, page.next)

    async def all_agree() -> None:
        await agrees()
        await agrees(limit=2)
        await agrees(labels={"herd": "north"})
        await agrees(index=("colour", "grey"))

    first, second, _ = [await harness.store.create(horse(name, labels={"herd": "north"})) for name in ("a", "b", "c")]
    await all_agree()
    await harness.store.update(with_spec(first, colour="grey"))
    await harness.store.update_status(replace(second, status=HorseStatus(place="prairie")))
    await all_agree()


@guarantee(GUARANTEES, "Versions never go back: after an event, no read shows its object in an older state.")
async def reads_are_never_older_than_events(harness: Harness) -> None:
    since = await present(harness, Horse)
    states = [await harness.store.create(horse("bella"))]
    for colour in ("grey", "white", "roan"):
        states.append(await harness.store.update(with_spec(states[-1], colour=colour)))
    versions = [state.version for state in states]
    async with watching(harness, Horse, since=since) as watch:
        for position in range(len(states)):
            assert (await watch.change()).version == versions[position]
            seen = [await harness.store.get(Horse, "bella"), *(await harness.store.list(Horse)).items]
            assert [item.version for item in seen if item.version in versions[:position]] == []


@guarantee(
    GUARANTEES,
    "A change counter is another one after every write of one of its kinds, and never one that it was before.",
)
async def a_change_counter_moves_with_every_write(harness: Harness) -> None:
    store, seen = harness.store, [harness.store.change_counter([Horse, Corral])]

    def moved() -> None:
        """The change counter of two kinds is new, whichever of them was written."""
        seen.append(store.change_counter([Horse, Corral]))
        assert seen[-1] not in seen[:-1]

    home = await store.create(pasture("home"))
    placed = await store.create(horse("bella", owner=PASTURE.owner(home), finalizers=(HOLD,)))
    moved()
    placed = await store.update(with_spec(placed, colour="grey"))
    moved()
    placed = await store.update_status(replace(placed, status=HorseStatus(place="prairie")))
    moved()
    placed = await store.update(with_metadata(placed, labels={"herd": "north"}))
    moved()
    fenced = await store.create(corral("east", owner=PASTURE.owner(home)))
    moved()
    await request_deletion(harness, placed)
    moved()
    await release(harness, placed)
    await gone(harness, placed)
    moved()
    await request_deletion(harness, home)
    await gone(harness, fenced)
    moved()


@guarantee(
    GUARANTEES,
    "A change counter stays while none of its kinds is written, whatever is read and whatever else is written.",
)
async def a_change_counter_stays_while_nothing_is_written(harness: Harness) -> None:
    store = harness.store
    placed = await store.create(horse("bella"))
    change_count = store.change_counter([Horse])

    async def is_still_the_same() -> bool:
        assert await store.get(Horse, "bella") == placed
        assert (await store.list(Horse)).items == [placed]
        assert await store.get_view(Horse, "bella", rendered) == rendered(placed)
        return store.change_counter([Horse]) == change_count

    await for_a_while(harness, "the change counter stays while it is read", is_still_the_same)
    home = await store.create(pasture("home"))
    await store.update(with_spec(home, acres=7))
    assert await is_still_the_same()


@guarantee(
    GUARANTEES,
    "The change counter of a name, label or index value is higher after a write of what is, or was, found under it.",
)
async def a_change_counter_of_a_part_moves_with_what_is_or_was_in_it(harness: Harness) -> None:
    store = harness.store
    before = {part: store.change_counter([part]) for part in PARTS}

    def moved(*expected: Dependency) -> None:
        """These are higher, at the least: a store may be wrong about the others."""
        found = {part: store.change_counter([part]) for part in PARTS}
        assert all(found[part] > before[part] for part in expected)
        assert store.change_counter(PARTS) == max(found.values()) <= store.change_counter()
        before.update(found)

    bella = await store.create(horse("bella", labels={"herd": "north"}, finalizers=(HOLD,)))
    moved(NAME, HERD, COLOUR)
    bella = await store.update_status(replace(bella, status=HorseStatus(place="prairie")))
    moved(NAME, HERD, COLOUR)
    bella = await store.update(with_spec(bella, colour="grey"))
    moved(NAME, HERD, COLOUR)
    bella = await store.update(with_metadata(bella, labels={"herd": "south"}))
    moved(NAME, HERD)
    bella = await store.update(with_spec(bella, colour="bay"))
    moved(NAME, COLOUR)
    bella = await store.update(with_metadata(bella, labels={"herd": "north"}))
    moved(NAME, HERD, COLOUR)
    await request_deletion(harness, bella)
    moved(NAME, HERD, COLOUR)
    await release(harness, bella)
    await gone(harness, bella)
    moved(NAME, HERD, COLOUR)


@guarantee(GUARANTEES, "The change counter of a name, label or index value stays while only others are written.")
async def a_change_counter_of_a_part_stays_while_others_are_written(harness: Harness) -> None:
    store = harness.store
    await store.create(horse("bella", labels={"herd": "north"}))
    before = [store.change_counter([part]) for part in PARTS]
    other = await store.create(horse("other", labels={"herd": "south"}, spec=HorseSpec(colour="grey")))
    other = await store.update(with_spec(other, colour="white"))
    await request_deletion(harness, other)
    await gone(harness, other)
    assert [store.change_counter([part]) for part in PARTS] == before


@guarantee(
    GUARANTEES,
    "The recent changes since a mark lead from the list at the mark to the present one, unless they are unknown.",
)
async def recent_changes_lead_to_the_present(harness: Harness) -> None:
    store = harness.store
    bella = await store.create(horse("bella", labels={"herd": "north"}))
    states: list[tuple[Mark, dict[str, str]]] = []

    async def check() -> None:
        """From every earlier mark the changes lead to what a list has now."""
        present = {each.name: each.version for each in (await store.list(Horse)).items}
        states.append((store.recent_changes(Horse).mark, present))
        for mark, before in states:
            recent = store.recent_changes(Horse, mark)
            if recent.changes is None:
                continue
            found = dict(before)
            for change in recent.changes:
                found.pop(change.resource.name, None)
                if change.type != "deleted":
                    found[change.resource.name] = change.resource.version
            assert found == present

    await check()
    bella = await store.update(with_spec(bella, colour="grey"))
    await check()
    bella = await store.update_status(replace(bella, status=HorseStatus(place="prairie")))
    await check()
    cora = await store.create(horse("cora"))
    await check()
    await request_deletion(harness, bella)
    await gone(harness, bella)
    await check()
    await store.update(with_metadata(cora, labels={"herd": "south"}))
    await check()
