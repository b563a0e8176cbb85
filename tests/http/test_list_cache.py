"""Whole lists are kept between requests, and are never older than the request nor another reader's."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from remuda.access.principal import AccessList, OrganizationAccess, Permission
from remuda.http.asgi import Message
from remuda.http.buffer_shares import SLICE_BYTES
from remuda.http.list_cache import MAX_ITEMS, CachedList, ListCache, LongList
from remuda.http.page_reads import Reading, page_slots
from remuda.http.pagination import Cursors, PageTokens, access_digest, list_response
from remuda.http.responses import Collection, EtagView, GuardedView, Response
from remuda.http.schema import ListQuery
from remuda.kernel.randomness import SeededRandomness
from remuda.store.contract import Page
from remuda.store.objects import NAME_LABEL
from remuda.store.readside.reader import ReaderSettings
from remuda.store.sqlite.store import SqliteSettings, SqliteStore
from tests.kit.forwarding_store import Passing
from tests.kit.sample_api.collections import ANNA, BAY, body_of, fill, headers, herd, ids, read, sample_store, view
from tests.kit.sample_kinds import Horse, HorseSpec, horse
from tests.kit.simulation.store import SEALER

TOKENS = PageTokens(SEALER, path="/horses", caller="anna")
PLACES = Cursors(AccessList())
OTHERS = Cursors(AccessList(everywhere=frozenset({Permission("horses", "read")})))


def cache(**more: Any) -> ListCache:
    return ListCache(SeededRandomness(1), **more)


def alone() -> Reading:
    """Return a read without others beside it."""
    return Reading(page_slots(), "")


def kept(store: Any, *, visible: Callable[[Horse], bool] | None = None, **more: Any) -> Collection[Horse, Any]:
    return herd(store, visible=visible, **{"selection": "horses", **more})


async def listed(
    lists: ListCache, collection: Collection[Horse, Any], *, by: Cursors = PLACES, known: str | None = None
) -> Response:
    sent = None if known is None else known.encode()
    return await list_response(collection, ListQuery(), TOKENS, by, lists=lists, if_none_match=sent)


def is_grey(one: Horse) -> bool:
    return one.spec.colour == "grey"


async def change_something(store: SqliteStore, chance: random.Random) -> None:
    """Create, repaint, move or delete one of a few horses."""
    name = f"h-{chance.randrange(12):02}"
    found = {each.name: each for each in (await store.list(Horse)).items}.get(name)
    herd_name, colour = chance.choice(["bay", "other"]), chance.choice(["grey", "bay"])
    if found is None:
        await store.create(horse(name, labels={"herd": herd_name}, spec=HorseSpec(colour=colour)))
    elif chance.random() < 0.3:
        await store.delete(Horse, name, uid=found.uid)
    elif chance.random() < 0.5:
        await store.update(replace(found, spec=HorseSpec(colour=colour)))
    else:
        await store.update(replace(found, metadata=replace(found.metadata, labels={"herd": herd_name})))


@pytest.mark.parametrize("seed", range(8))
async def test_a_kept_list_is_what_reading_it_again_would_give(tmp_path: Path, seed: int) -> None:
    chance, lists = random.Random(seed), cache()
    settings = SqliteSettings(reader=ReaderSettings(tail_changes=7))  # so that changes are unknown at times
    async with sample_store(tmp_path, settings=settings) as store:
        await fill(store, ["h-03", "h-05"])
        for _ in range(120):
            for _ in range(chance.choice([0, 1, 1, 2, 9])):
                await change_something(store, chance)
            for collection in (
                kept(store),
                kept(store, labels=BAY),
                kept(store, visible=is_grey, selection="grey"),
                kept(store, labels=BAY, visible=is_grey, selection="grey"),
            ):
                answer = await listed(lists, collection)
                expected = await list_response(replaced(collection, selection=None), ListQuery(), TOKENS, PLACES)
                assert await body_of(answer) == await body_of(expected)
                assert headers(answer)["x-resource-version"] == headers(expected)["x-resource-version"]
        assert len(lists) == 4


async def head_of(response: Response) -> dict[str, str]:
    """Return the headers of the response to HEAD."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await response.send_head(send)
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}


async def test_a_list_that_has_not_changed_is_304_and_any_other_is_sent(tmp_path: Path) -> None:
    lists = cache()
    async with sample_store(tmp_path) as store:
        await fill(store, ["anna", "bella"])
        first = headers(await listed(lists, kept(store, labels=BAY)))
        for known in (first["etag"], f"W/{first['etag']}", f'"other", {first["etag"]}', "*"):
            again = await listed(lists, kept(store, labels=BAY), known=known)
            assert (again.status, again.body) == (304, b"")
            assert headers(again)["etag"] == first["etag"]
            assert "content-length" not in await head_of(again)
        await fill(store, ["cora"], herd="other")
        assert (await listed(lists, kept(store, labels=BAY), known=first["etag"])).status == 304
        await fill(store, ["dora"])
        changed = await listed(lists, kept(store, labels=BAY), known=first["etag"])
        assert changed.status == 200
        assert await ids(changed) == ["anna", "bella", "dora"]
        assert headers(changed)["etag"] != first["etag"]


async def test_an_etag_of_another_process_is_never_ours(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, ["anna"])
        one, other = ListCache(SeededRandomness(1)), ListCache(SeededRandomness(2))
        known = headers(await listed(one, kept(store)))["etag"]
        assert (await listed(other, kept(store), known=known)).status == 200


async def test_readers_with_other_permissions_have_lists_and_etags_of_their_own(tmp_path: Path) -> None:
    lists = cache()
    async with sample_store(tmp_path) as store:
        await fill(store, ["anna"], colour="grey")
        await fill(store, ["bella"])
        everything = await listed(lists, kept(store, visible=lambda _: True), by=OTHERS)
        assert await ids(everything) == ["anna", "bella"]
        some = await listed(lists, kept(store, visible=is_grey), known=headers(everything)["etag"])
        assert await ids(some) == ["anna"]


async def test_equal_permissions_have_equal_digests_and_others_have_others() -> None:
    permission = Permission("horses", "read")
    one, equal = (AccessList(organizations={"o": OrganizationAccess(frozenset({permission}))}) for _ in range(2))
    assert access_digest(one) == access_digest(equal) == access_digest(one)
    assert access_digest(one) != access_digest(AccessList(everywhere=frozenset({permission})))


async def test_a_list_that_is_too_long_is_sent_in_parts_and_not_kept(tmp_path: Path) -> None:
    lists = cache()
    async with sample_store(tmp_path) as store:
        await fill(store, [f"h-{number:05}" for number in range(MAX_ITEMS)])
        collection = kept(store, view=EtagView(read, lambda one: one.spec))
        assert isinstance(await lists.get(collection, access="", reading=alone()), CachedList)
        await fill(store, ["zorro"])
        found = await lists.get(collection, access="", reading=alone())
        assert isinstance(found, LongList)
        assert found.first is not None
        assert sum(map(len, found.first.items)) <= SLICE_BYTES
        assert len(lists) == 0
        answer = await listed(lists, collection, known="*")
        assert answer.status == 200
        assert not isinstance(answer.body, bytes)
        found = msgspec.json.decode(await body_of(answer))
        assert [each["id"] for each in found] == [f"h-{number:05}" for number in range(MAX_ITEMS)] + ["zorro"]


async def test_m27_the_rest_of_a_long_list_is_read_while_it_is_sent(tmp_path: Path) -> None:
    def read_long(one: Horse) -> dict[str, str]:
        return {"id": one.name, "about": "x" * 20_000}

    lists = cache()
    async with sample_store(tmp_path) as store:
        await fill(store, [f"h-{number:05}" for number in range(60)])
        collection = kept(store, view=EtagView(read_long, lambda one: one.spec))
        found = await lists.get(collection, access="", reading=alone())
        assert isinstance(found, LongList)
        assert found.first is None, "its first slice is large"
        answer = await listed(lists, collection)
        assert [each["id"] for each in msgspec.json.decode(await body_of(answer))] == [
            f"h-{number:05}" for number in range(60)
        ]


async def test_no_more_is_kept_than_the_limit_in_bytes(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, [f"h-{number:05}" for number in range(50)])
        one = await cache().get(kept(store), access="", reading=alone())
        assert isinstance(one, CachedList)
        lists = cache(limit_bytes=3 * one.weight)
        for number in range(10):
            await lists.get(kept(store, selection=number), access="", reading=alone())
        assert len(lists) == 3
        small = cache(limit_bytes=one.weight - 1)
        assert await ids(await listed(small, kept(store))) == await ids(await listed(lists, kept(store)))
        assert len(small) == 0


async def test_empty_lists_of_many_queries_count_too(tmp_path: Path) -> None:
    lists = cache(limit_bytes=1 << 20)
    async with sample_store(tmp_path) as store:
        for number in range(1_000):
            await lists.get(kept(store).named(f"no-{number}"), access="", reading=alone())
        assert 100 < len(lists) < 1_000
        for number in range(100):
            await list_response(
                kept(store, selection=number),
                ListQuery(),
                TOKENS,
                PLACES,
                query_string="tag=" + 30_000 * "a",
                lists=lists,
            )
        assert len(lists) == 3


class _Counting(Passing):
    """Counts what is read."""

    reads = 0

    async def list(self, kind: Any, **selection: Any) -> Page[Any]:
        self.reads += 1
        await asyncio.sleep(0)
        return await super().list(kind, **selection)


async def test_many_requests_for_a_list_at_once_read_it_once(tmp_path: Path) -> None:
    lists = cache()
    async with sample_store(tmp_path) as store:
        await fill(store, ["anna"])
        counting = _Counting(store)
        answers = await asyncio.gather(*(listed(lists, kept(counting)) for _ in range(20)))
        assert {await body_of(each) for each in answers} == {b"[%b]" % view(await store.get(Horse, "anna"))}
        assert counting.reads == 1


async def test_a_list_that_could_not_be_updated_is_read_again(tmp_path: Path) -> None:
    lists = cache()

    def failing(one: Horse) -> bytes:
        if one.spec.colour == "broken":
            raise ValueError("cannot be shown")
        return view(one)

    async with sample_store(tmp_path) as store:
        await fill(store, ["anna"])
        await listed(lists, kept(store, view=failing))
        await fill(store, ["bella"], colour="broken")
        for _ in range(2):
            with pytest.raises(ValueError, match="cannot be shown"):
                await listed(lists, kept(store, view=failing))
        bella = await store.get(Horse, "bella")
        await store.update(replace(bella, spec=HorseSpec(colour="bay")))
        assert await ids(await listed(lists, kept(store, view=failing))) == ["anna", "bella"]


async def test_a_list_may_be_stored_by_clients_unless_it_shows_a_guarded_part(tmp_path: Path) -> None:
    lists = cache()
    guarded = GuardedView(
        EtagView(read, lambda one: one.spec),
        hidden=lambda one: one if one.spec.feed == {} else replace(one, spec=replace(one.spec, feed={})),
        is_shown=lambda reader, _: reader is ANNA,
    )
    async with sample_store(tmp_path) as store:
        await fill(store, ["anna"])
        collection = kept(store, view=guarded, reader=ANNA)
        assert headers(await listed(lists, collection))["cache-control"] == "no-cache"
        anna = await store.get(Horse, "anna")
        await store.update(replace(anna, spec=replace(anna.spec, feed={"oats": 1})))
        assert headers(await listed(lists, collection))["cache-control"] == "no-store"
        other = replaced(collection, reader=None)
        assert headers(await listed(lists, other, by=OTHERS))["cache-control"] == "no-cache"
        await store.update(replace(await store.get(Horse, "anna"), spec=HorseSpec()))
        assert headers(await listed(lists, collection))["cache-control"] == "no-cache"


async def test_a_list_filtered_by_name_is_another_list(tmp_path: Path) -> None:
    lists = cache()
    async with sample_store(tmp_path) as store:
        for name in ("anna", "bella"):
            await store.create(horse(name, labels={NAME_LABEL: name}))
        assert await ids(await listed(lists, kept(store))) == ["anna", "bella"]
        assert await ids(await listed(lists, kept(store).named("anna"))) == ["anna"]
        assert await ids(await listed(lists, kept(store).named("bella"))) == ["bella"]
