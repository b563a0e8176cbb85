import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from remuda.http.pagination import SLICE, Cursors
from remuda.http.responses import etag_view
from remuda.http.watch import WatchPorts, watch_response
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Gone, Malformed
from remuda.store.contract import Store
from remuda.store.objects import NAME_LABEL
from tests.kit.proofs.store_contract.backends import impatient
from tests.kit.sample_api.collections import ANNA, fill, herd, read, sample_store, view
from tests.kit.sample_api.watch_reader import PermissionSet, watching
from tests.kit.sample_kinds import Horse, HorseSpec, horse


async def paint(store: Store, name: str, colour: str) -> Horse:
    found = await store.get(Horse, name)
    return await store.update(replace(found, spec=replace(found.spec, colour=colour)))


async def move(store: Store, name: str, to: str) -> None:
    found = await store.get(Horse, name)
    await store.update(replace(found, metadata=replace(found.metadata, labels={"herd": to})))


async def remove(store: Store, name: str) -> None:
    found = await store.get(Horse, name)
    await store.delete(Horse, name, uid=found.uid)


SYNCED = ("bookmark", '{"synced":true}')
PLACES = Cursors(ANNA.access)


async def test_a_stream_begins_with_what_is_there_and_goes_on_with_what_happens(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, ["a", "b"])
        async with watching(herd(store)) as reader:
            assert await reader.told(3) == [("added", "a bay"), ("added", "b bay"), SYNCED]
            await fill(store, ["c"])
            await paint(store, "a", "grey")
            await remove(store, "b")
            assert await reader.told(3) == [("added", "c bay"), ("modified", "a grey"), ("deleted", "b bay")]


async def test_a_stream_by_name_follows_what_is_renamed(tmp_path: Path) -> None:
    async def rename(name: str, to: str) -> None:
        found = await store.get(Horse, name)
        labels = dict(found.metadata.labels) | {NAME_LABEL: to}
        await store.update(replace(found, metadata=replace(found.metadata, labels=labels)))

    async with sample_store(tmp_path) as store:
        await fill(store, ["a", "b", "c"])
        await rename("a", "star")
        async with watching(herd(store).named("star")) as reader:
            assert await reader.told(2) == [("added", "a bay"), SYNCED]
            await paint(store, "b", "grey")
            await rename("b", "star")
            await rename("a", "moon")
            await paint(store, "a", "grey")
            await paint(store, "b", "black")
            await remove(store, "b")
            expected = [("added", "b grey"), ("deleted", "a bay"), ("modified", "b black"), ("deleted", "b black")]
            assert await reader.told(4) == expected


async def test_a_stream_over_nothing_says_that_it_is_synced(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store, watching(herd(store)) as reader:
        assert await reader.told(1) == [SYNCED]


async def test_what_is_there_is_told_in_chunks(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        names = [f"h-{number:04}" for number in range(2 * SLICE + 1)]
        await fill(store, names)
        async with watching(herd(store)) as reader:
            assert [event for event, _ in await reader.told(len(names))] == ["added"] * len(names)
            assert await reader.told(1) == [SYNCED]


async def test_present_objects_have_no_id_because_nobody_can_resume_among_them(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, ["a"])
        async with watching(herd(store)) as reader:
            assert (await reader.next()).id is None
            assert (await reader.next()).id


async def test_a_stream_resumes_after_any_event(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, ["a"])
        async with watching(herd(store)) as reader:
            await reader.told(1)
            synced = await reader.next()
            await paint(store, "a", "grey")
            grey = await reader.next()
        await paint(store, "a", "black")
        async with watching(herd(store), since=synced.id) as reader:
            assert await reader.told(2) == [("modified", "a grey"), ("modified", "a black")]
        async with watching(herd(store), since=grey.id) as reader:
            assert await reader.told(1) == [("modified", "a black")]


async def test_a_tagged_view_is_streamed_without_its_tags(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, ["a"])
        async with watching(herd(store, view=etag_view(read, lambda one: one.spec))) as reader:
            assert await reader.told(2) == [("added", "a bay"), SYNCED]
            await paint(store, "a", "grey")
            assert await reader.told(1) == [("modified", "a grey")]


async def test_a_version_that_is_too_old_is_gone_before_anything_is_sent(tmp_path: Path) -> None:
    async with sample_store(tmp_path, settings=impatient(bookmark_interval_s=9, ahead_timeout_s=1)) as store:
        first = await store.create(horse("a"))
        await paint(store, "a", "grey")
        await store.maintenance.compact()
        with pytest.raises(Gone):
            async with watching(herd(store), since=PLACES.write(first.version)):
                pass


async def test_an_id_that_is_none_is_told_by_its_header(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        for wrong in ("yesterday", PLACES.write("yesterday"), PLACES.write("9" * 5_000), PLACES.write("٣")):
            with pytest.raises(Malformed, match="Last-Event-ID is not an id of this stream"):
                async with watching(herd(store), since=wrong):
                    pass


async def test_a_reader_that_falls_too_far_behind_is_told_gone_and_forgets_its_id(tmp_path: Path) -> None:
    async with sample_store(tmp_path, settings=impatient(bookmark_interval_s=9, ahead_timeout_s=1)) as store:
        await fill(store, ["a"])
        async with watching(herd(store)) as reader:
            await reader.told(2)
            await paint(store, "a", "grey")
            assert await reader.told(1) == [("modified", "a grey")]
            for shade in range(20):
                await paint(store, "a", f"grey-{shade}")
            await store.maintenance.compact()
            *_, last = await reader.rest()
            assert (last.type, last.id) == ("gone", "")


async def test_nothing_is_read_ahead_for_a_reader_that_does_not_read(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        rendered: list[str] = []

        def counted(one: Horse) -> bytes:
            rendered.append(one.spec.colour)
            return view(one)

        async with watching(herd(store, view=counted)) as reader:
            await reader.told(1)
            await fill(store, ["a"])
            await reader.told(1)
            for shade in range(50):
                await paint(store, "a", f"grey-{shade}")
            assert rendered == ["bay"]
            assert await reader.told(1) == [("modified", "a grey-0")]


async def test_what_becomes_visible_is_added_and_what_leaves_it_deleted_in_its_last_visible_state(
    tmp_path: Path,
) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, ["a"], herd="mine")
        await fill(store, ["b"], herd="theirs")
        mine = herd(store, visible=lambda one: one.metadata.labels["herd"] == "mine")
        async with watching(mine) as reader:
            assert await reader.told(2) == [("added", "a bay"), SYNCED]
            await paint(store, "b", "secret")
            await move(store, "b", "mine")
            assert await reader.told(1) == [("added", "b secret")]
            gone = replace(await store.get(Horse, "a"), spec=HorseSpec(colour="secret"))
            await store.update(replace(gone, metadata=replace(gone.metadata, labels={"herd": "theirs"})))
            assert await reader.told(1) == [("deleted", "a bay")]
            await paint(store, "a", "black")
            await remove(store, "a")
            await remove(store, "b")
            assert await reader.told(1) == [("deleted", "b secret")]


async def test_visibility_is_validated_on_resuming_just_as_it_would_have_been(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, ["a"], herd="mine")
        mine = herd(store, visible=lambda one: one.metadata.labels["herd"] == "mine")
        async with watching(mine) as reader:
            await reader.next()
            synced = await reader.next()
        await move(store, "a", "theirs")
        await fill(store, ["b"], herd="theirs")
        await fill(store, ["c"], herd="mine")
        async with watching(mine, since=synced.id) as reader:
            assert await reader.told(2) == [("deleted", "a bay"), ("added", "c bay")]


async def test_an_index_is_watched_like_a_label(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, ["a", "b"], herd="x")
        await fill(store, ["c"], herd="y")
        async with watching(herd(store, labels={"herd": "x"}, index=("colour", "bay"))) as reader:
            assert await reader.told(3) == [("added", "a bay"), ("added", "b bay"), SYNCED]
            await paint(store, "a", "grey")
            await move(store, "b", "y")
            await move(store, "c", "x")
            await paint(store, "a", "bay")
            expected = [("deleted", "a bay"), ("deleted", "b bay"), ("added", "c bay"), ("added", "a bay")]
            assert await reader.told(4) == expected


async def test_a_server_that_closes_ends_its_streams_at_once(tmp_path: Path) -> None:
    ports = WatchPorts(clock=SystemClock())
    async with sample_store(tmp_path) as store, watching(herd(store), ports=ports) as reader:
        synced = await reader.next()
        waiting = asyncio.create_task(reader.rest())
        await asyncio.sleep(0)
        ports.closing.set()
        (end,) = await waiting
        assert (end.type, end.data, end.id) == ("end", b'{"reason":"closing"}', synced.id)
    async with sample_store(tmp_path) as store, watching(herd(store), ports=ports) as reader:
        assert [event.type for event in await reader.rest()] == ["bookmark", "end"]


async def test_a_store_that_closes_ends_its_streams(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store, watching(herd(store)) as reader:
        await reader.next()
        await store.close()
        (end,) = await reader.rest()
        assert (end.type, end.data) == ("end", b'{"reason":"store_closed"}')


async def test_a_stream_that_is_left_leaves_nothing_behind(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        before = asyncio.all_tasks()
        async with watching(herd(store)) as reader:
            await reader.next()
            waiting = asyncio.create_task(reader.next())
            await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await watch_response(
            herd(store),
            last_event_id=PLACES.write("1"),
            principal=ANNA,
            host="192.0.2.1",
            renew=PermissionSet().renew,
            ports=WatchPorts(clock=SystemClock()),
        )
        await asyncio.sleep(0)
        assert asyncio.all_tasks() <= before
