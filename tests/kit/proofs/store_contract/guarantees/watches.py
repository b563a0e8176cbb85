"""What a watch promises, one feature at a time. `streams` puts them under load together."""

import asyncio
from collections import Counter

from remuda.kernel.errors import Gone, Invalid
from remuda.store.contract import NAME_INDEX, Event, label_index
from tests.kit.proofs.store_contract.guarantee import Guarantee, guarantee
from tests.kit.proofs.store_contract.harness import A_WHILE_S, Harness
from tests.kit.proofs.store_contract.steps import (
    HOLD,
    Watching,
    gone,
    held_alone,
    names_of,
    present,
    refused,
    released,
    request_deletion,
    watching,
    with_metadata,
    with_spec,
)
from tests.kit.proofs.store_contract.validators import bookmarkable
from tests.kit.sample_kinds import Horse, HorseSpec, Pasture, corral, horse, pasture

GUARANTEES: list[Guarantee] = []

NORTH = {"herd": "north"}


async def seen_by(watch: Watching[Pasture], last: str) -> list[tuple[str, str]]:
    """Return type and name of all changes before the one of `last`."""
    return [(change.type, change.resource.name) for change in (await watch.until_named(last))[:-1]]


async def annotated(harness: Harness, resource: Pasture, note: str) -> Pasture:
    return await harness.store.update(with_metadata(resource, annotations={"note": note}))


@guarantee(GUARANTEES, "A watch shows every change: what came, what of it was changed, and that it went.")
async def a_watch_shows_every_change(harness: Harness) -> None:
    since = await present(harness, Pasture)
    created = await harness.store.create(pasture("home"))
    noted = await annotated(harness, created, "sold")
    updated = await harness.store.update(with_spec(noted, acres=1))
    await request_deletion(harness, updated)
    await gone(harness, updated)
    await harness.store.create(pasture("later"))
    async with watching(harness, Pasture, since=since) as watch:
        changes = await watch.until_named("later")
    expected = {("added", created.version), ("modified", noted.version), ("modified", updated.version)}
    assert expected <= {(change.type, change.resource.version) for change in changes}
    assert ("deleted", created.uid) in {(change.type, change.resource.uid) for change in changes}


@guarantee(GUARANTEES, "A change carries the object after it, and the version to go on from.")
async def a_change_carries_the_object(harness: Harness) -> None:
    since = await present(harness, Pasture)
    created = await harness.store.create(pasture("home", acres=1, labels=NORTH))
    async with watching(harness, Pasture, since=since) as watch:
        change = await watch.change()
        assert (change.type, change.version, change.resource) == ("added", created.version, created)


@guarantee(GUARANTEES, "A watch shows each change once.")
async def a_watch_shows_each_change_once(harness: Harness) -> None:
    since = await present(harness, Pasture)
    created = await harness.store.create(pasture("home"))
    await annotated(harness, created, "sold")
    await harness.store.create(pasture("later"))
    async with watching(harness, Pasture, since=since) as watch:
        changes = await watch.until_named("later")
    assert max(Counter(change.version for change in changes).values()) == 1


@guarantee(GUARANTEES, "A watch shows changes in the order in which they were made.")
async def a_watch_keeps_the_order(harness: Harness) -> None:
    since = await present(harness, Pasture)
    first = await harness.store.create(pasture("first"))
    second = await harness.store.create(pasture("second"))
    written = [first, second, await annotated(harness, first, "sold")]
    written.append(await harness.store.update(with_spec(second, acres=1)))
    written.append(await harness.store.create(pasture("later")))
    order = {resource.version: place for place, resource in enumerate(written)}
    async with watching(harness, Pasture, since=since) as watch:
        places = [order[change.version] for change in await watch.until_named("later")]
    assert places == sorted(places)


@guarantee(GUARANTEES, "A watch that has shown everything waits for the next change.")
async def a_watch_waits_for_the_next_change(harness: Harness) -> None:
    async with watching(harness, Pasture, since=await present(harness, Pasture)) as watch:
        for name in ("a", "b"):
            next_change = asyncio.create_task(watch.change())
            await harness.clock.sleep(A_WHILE_S)
            created = await harness.store.create(pasture(name))
            assert (await next_change).version == created.version


@guarantee(GUARANTEES, "A watch can be resumed after each change: nothing is repeated, nothing missed.")
async def a_watch_can_be_resumed_after_each_change(harness: Harness) -> None:
    since = await present(harness, Pasture)
    home = await harness.store.create(pasture("home"))
    moved = await harness.store.update(with_metadata(with_spec(home, acres=1), labels=NORTH))
    written = [home, moved, await harness.store.create(pasture("other"))]
    expected = [resource.version for resource in written]
    for position, version in enumerate([since, *expected[:-1]]):
        async with watching(harness, Pasture, since=version) as watch:
            assert (await watch.change()).version == expected[position]


@guarantee(GUARANTEES, "A watch is of one kind.")
async def a_watch_is_of_one_kind(harness: Harness) -> None:
    since = await present(harness, Pasture)
    await harness.store.create(corral("pen"))
    await harness.store.create(pasture("home"))
    async with watching(harness, Pasture, since=since) as watch:
        assert (await watch.change()).resource.name == "home"


@guarantee(GUARANTEES, "A filtered watch shows the objects that carry all its labels, and no others.")
async def a_filtered_watch_shows_what_carries_its_labels(harness: Harness) -> None:
    since, tame = await present(harness, Pasture), {"tame": "yes"}
    for name, labels in {"a": NORTH | tame, "b": NORTH, "c": tame, "d": {"herd": "south"} | tame, "e": {}}.items():
        await harness.store.create(pasture(name, labels=labels))
    await harness.store.create(pasture("later", labels=NORTH | tame))
    async with watching(harness, Pasture, since=since, labels=NORTH | tame) as watch:
        assert await seen_by(watch, "later") == [("added", "a")]


@guarantee(GUARANTEES, "A watch of any of several index entries shows what is, comes or was under one of them.")
async def a_watch_of_entries_shows_what_is_under_them(harness: Harness) -> None:
    since, south = await present(harness, Pasture), {"herd": "south"}
    entries = [(label_index("herd"), "north"), (NAME_INDEX, "named"), (NAME_INDEX, "later")]
    async with watching(harness, Pasture, since=since, any_of=entries) as watch, asyncio.TaskGroup() as group:
        seen = group.create_task(seen_by(watch, "later"))
        await harness.store.create(pasture("named"))
        created = await harness.store.create(pasture("a", labels=NORTH))
        other = await harness.store.create(pasture("b", labels=south))
        await harness.store.update(with_metadata(created, labels=south))
        await harness.store.update(with_metadata(other, labels=NORTH))
        await harness.store.create(pasture("later"))
        assert await seen == [("added", "named"), ("added", "a"), ("deleted", "a"), ("added", "b")]
    async with watching(harness, Pasture, since=since, any_of=entries) as again:
        assert await seen_by(again, "later") == await seen


@guarantee(GUARANTEES, "An object that enters the filter arrives as added.")
async def what_enters_the_filter_is_added(harness: Harness) -> None:
    created = await harness.store.create(pasture("home"))
    since = await present(harness, Pasture)
    await harness.store.update(with_metadata(created, labels=NORTH))
    async with watching(harness, Pasture, since=since, labels=NORTH) as watch:
        assert (await watch.change()).type == "added"


@guarantee(GUARANTEES, "An object that leaves the filter arrives as deleted.")
async def what_leaves_the_filter_is_deleted(harness: Harness) -> None:
    created = await harness.store.create(pasture("home", labels=NORTH))
    since = await present(harness, Pasture)
    await harness.store.update(with_metadata(created, labels={}))
    await harness.store.create(pasture("later", labels=NORTH))
    async with watching(harness, Pasture, since=since, labels=NORTH) as watch:
        assert await seen_by(watch, "later") == [("deleted", "home")]


@guarantee(GUARANTEES, "An object that leaves the filter arrives in its last state that matched.")
async def what_leaves_the_filter_carries_its_last_match(harness: Harness) -> None:
    created = await harness.store.create(pasture("home", acres=1, labels=NORTH))
    since = await present(harness, Pasture)
    left = await harness.store.update(with_metadata(with_spec(created, acres=2), labels={}))
    async with watching(harness, Pasture, since=since, labels=NORTH) as watch:
        change = await watch.change()
    assert (change.resource.spec.acres, change.resource.metadata.labels) == (1, NORTH)
    assert (change.version, change.resource.version) == (left.version, left.version)


@guarantee(GUARANTEES, "An object that leaves the filter with its last write arrives as deleted.")
async def what_leaves_the_filter_with_its_last_write_is_deleted(harness: Harness) -> None:
    created = await harness.store.create(pasture("home", labels=NORTH, finalizers=(HOLD,)))
    await request_deletion(harness, created)
    marked = await held_alone(harness, created)
    since = await present(harness, Pasture)
    await harness.store.update(with_metadata(released(marked), labels={"herd": "south"}))
    await gone(harness, created)
    await harness.store.create(pasture("later", labels=NORTH))
    async with watching(harness, Pasture, since=since, labels=NORTH) as watch:
        assert ("deleted", "home") in await seen_by(watch, "later")


@guarantee(GUARANTEES, "A change of labels carries the state before.")
async def a_change_of_labels_carries_the_state_before(harness: Harness) -> None:
    created = await harness.store.create(pasture("home", acres=1, labels=NORTH))
    since = await present(harness, Pasture)
    await harness.store.update(with_metadata(with_spec(created, acres=2), labels={"herd": "south"}))
    async with watching(harness, Pasture, since=since) as watch:
        before = (await watch.change()).before
    assert before is not None
    assert (before.spec.acres, before.metadata.labels) == (1, NORTH)


@guarantee(GUARANTEES, "A change of what a declared index finds an object by carries the state before.")
async def a_change_of_an_index_carries_the_state_before(harness: Harness) -> None:
    created = await harness.store.create(horse("bella", spec=HorseSpec(colour="bay")))
    since = await present(harness, Horse)
    await harness.store.update(with_spec(created, colour="grey"))
    async with watching(harness, Horse, since=since) as watch:
        before = (await watch.change()).before
    assert before is not None
    assert before.spec.colour == "bay"


@guarantee(GUARANTEES, "Bookmarks come, and a watch resumed from one misses nothing and repeats nothing.")
async def bookmarks_come_and_can_be_resumed_from(harness: Harness) -> None:
    since = await present(harness, Pasture)
    await harness.store.create(pasture("first", labels=NORTH))
    stranger = await harness.store.create(pasture("stranger"))
    async with watching(harness, Pasture, since=since, labels=NORTH) as watch:
        stream: list[Event[Pasture]] = [await watch.change(), await watch.bookmark()]
        await harness.store.update(with_spec(stranger, acres=1))
        await harness.store.create(pasture("second", labels=NORTH))
        stream.append(await watch.change())
    await harness.store.create(pasture("later", labels=NORTH))
    resumed = {}
    for bookmark in stream[1:2]:
        async with watching(harness, Pasture, since=bookmark.version, labels=NORTH) as watch:
            resumed[bookmark.version] = (await watch.until_named("later"))[:-1]
    bookmarkable(stream, resumed)


@guarantee(GUARANTEES, "A version that is too old is told Gone; the version of a new list is not.")
async def a_version_that_is_too_old_is_gone(harness: Harness) -> None:
    since = await present(harness, Pasture)
    await harness.store.create(pasture("home"))
    await harness.store.create(pasture("other"))
    await harness.forget_history()
    async with watching(harness, Pasture, since=since) as watch:
        await refused(Gone, watch.event())
    since = await present(harness, Pasture)
    await harness.store.create(pasture("later"))
    async with watching(harness, Pasture, since=since) as watch:
        assert (await watch.change()).resource.name == "later"


@guarantee(
    GUARANTEES, "A kind that is quiet loses no history, whatever is forgotten of others: its list can be watched from."
)
async def a_quiet_kind_loses_no_history(harness: Harness) -> None:
    await harness.store.create(pasture("home"))
    before = await present(harness, Pasture)
    for number in range(6):
        await harness.store.create(horse(f"horse-{number}"))
    await harness.forget_history()
    after = await present(harness, Pasture)
    await harness.store.create(pasture("later"))
    for since in (before, after):
        async with watching(harness, Pasture, since=since) as watch:
            assert await seen_by(watch, "later") == []


@guarantee(GUARANTEES, "A reader that is too slow is told Gone: it never skips a change.")
async def a_reader_that_is_too_slow_is_gone(harness: Harness) -> None:
    since = await present(harness, Pasture)
    names = [f"pasture-{number:02}" for number in range(12)]
    for name in names[:2]:
        await harness.store.create(pasture(name))
    async with watching(harness, Pasture, since=since) as watch:
        seen = [(await watch.change()).resource.name]
        for name in names[2:]:
            await harness.store.create(pasture(name))
        await harness.forget_history()

        async def read_on() -> None:
            while len(seen) < len(names):
                seen.append((await watch.change()).resource.name)

        await refused(Gone, read_on())
    assert seen == names[: len(seen)]
    assert await names_of(harness, Pasture) == names


@guarantee(GUARANTEES, "A version that lies ahead is waited for, and what comes after it is shown.")
async def a_version_ahead_is_waited_for(harness: Harness) -> None:
    await harness.store.create(pasture("home"))
    since = await harness.next_version()
    async with watching(harness, Pasture, since=since) as watch:
        shown = asyncio.create_task(watch.until_named("second"))
        await harness.clock.sleep(A_WHILE_S / 8)
        assert not shown.done()
        first = await harness.store.create(pasture("first"))
        second = await harness.store.create(pasture("second"))
        expected = [second] if first.version == since else [first, second]  # the first write reaches it or passes it
        assert [change.resource for change in await shown] == expected


@guarantee(GUARANTEES, "A version that lies ahead and does not come is told Gone.")
async def a_version_that_never_comes_is_gone(harness: Harness) -> None:
    async with watching(harness, Pasture, since=await harness.unreachable_version()) as watch:
        await refused(Gone, watch.event())


@guarantee(GUARANTEES, "A version that is none of the store's is Invalid.")
async def a_nonsense_version_is_refused(harness: Harness) -> None:
    for version in ("", "nonsense", "-1", "1.5"):
        async with watching(harness, Pasture, since=version) as watch:
            await refused(Invalid, watch.event())
