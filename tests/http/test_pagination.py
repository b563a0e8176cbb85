import base64
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from remuda.access.principal import AccessList
from remuda.http.buffer_shares import SLICE_BYTES
from remuda.http.pagination import SLICE, Cursors, PageTokens, SliceReader, batches, list_response
from remuda.http.responses import Collection, Response, etag_view
from remuda.http.schema import ListQuery
from remuda.kernel.errors import Malformed
from tests.kit.sample_api.collections import body_of, fill, headers, herd, ids, read, sample_store, view
from tests.kit.sample_kinds import Horse
from tests.kit.simulation.store import SEALER

PLACES = Cursors(AccessList())


def names(count: int, prefix: str = "h") -> list[str]:
    return [f"{prefix}-{number:05}" for number in range(count)]


def tokens(path: str = "/horses", caller: str = "anna") -> PageTokens:
    return PageTokens(SEALER, path=path, caller=caller)


async def listed(
    collection: Collection[Horse, Any],
    *,
    limit: int | None = None,
    after: str | None = None,
    by: PageTokens | None = None,
) -> Response:
    return await list_response(collection, ListQuery(limit=limit, continue_=after), by or tokens(), PLACES)


async def pages(collection: Collection[Horse, Any], limit: int) -> AsyncIterator[list[str]]:
    after: str | None = None
    while True:
        answer = await listed(collection, limit=limit, after=after)
        yield await ids(answer)
        after = headers(answer).get("x-continue")
        if after is None:
            return


async def test_without_limit_it_is_everything_in_the_order_of_ids(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, reversed(names(30)))
        answer = await listed(herd(store))
        assert await ids(answer) == names(30)
        assert headers(answer).keys() == {"content-type", "x-resource-version"}


async def test_nothing_is_an_empty_array(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        assert await body_of(await listed(herd(store))) == b"[]"
        assert await body_of(await listed(herd(store, visible=lambda _: True))) == b"[]"
        await fill(store, ["one"])
        assert await body_of(await listed(herd(store))) == b"[%b]" % view(await store.get(Horse, "one"))
        assert await body_of(await listed(herd(store), limit=5)) == await body_of(await listed(herd(store)))


async def test_a_long_list_is_streamed_in_chunks_and_is_one_array(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(1_450))
        for collection in (herd(store), herd(store, visible=lambda _: True)):
            answer = await listed(collection)
            assert not isinstance(answer.body, bytes)
            chunks = [chunk async for chunk in answer.body]
            assert len(chunks) > 2
            assert [item["id"] for item in msgspec.json.decode(b"".join(chunks))] == names(1_450)


async def test_a_long_list_of_which_nothing_may_be_seen_is_an_empty_array(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(SLICE + 1))
        answer = await listed(herd(store, visible=lambda _: False))
        assert not isinstance(answer.body, bytes)
        assert await body_of(answer) == b"[]"


async def test_pages_follow_each_other_by_key(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(25))
        assert [len(page) async for page in pages(herd(store), 10)] == [10, 10, 5]
        assert [name async for page in pages(herd(store), 10) for name in page] == names(25)


async def test_every_page_has_the_version_of_the_first(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(4))
        first = await listed(herd(store), limit=2)
        await fill(store, ["zorro"])
        second = await listed(herd(store), limit=2, after=headers(first)["x-continue"])
        assert headers(first)["x-resource-version"] == headers(second)["x-resource-version"]
        assert await ids(second) == names(4)[2:]


async def test_the_link_leads_to_the_next_page_and_keeps_the_filters(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(3))
        query = ListQuery(limit=2)
        answer = await list_response(
            herd(store), query, tokens("/a%2Fb/hörses"), PLACES, query_string="tag=a%3Db&limit=2&tag=c"
        )
        found = re.fullmatch(r'<(.+)>; rel="next"', headers(answer)["link"])
        assert found is not None
        link = urlsplit(found[1])
        assert link.path == "/a%2Fb/h%C3%B6rses"
        token = headers(answer)["x-continue"]
        assert parse_qs(link.query) == {"tag": ["a=b", "c"], "limit": ["2"], "continue": [token]}


async def test_permissions_are_applied_after_the_page_is_read(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(40), herd="theirs")
        await fill(store, names(40, prefix="i"), herd="mine")
        looked: list[str] = []

        def visible(one: Horse) -> bool:
            looked.append(one.name)
            return one.metadata.labels["herd"] == "mine"

        answer = await listed(herd(store, visible=visible), limit=2)
        assert await ids(answer) == []
        assert looked == names(20), "a request looks at ten times its limit"
        found = [name async for page in pages(herd(store, visible=visible), 2) for name in page]
        assert found == names(40, prefix="i"), "continue is the last key looked at, so nothing is left out"


async def test_a_page_is_never_longer_than_its_limit(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(60))
        sizes = [len(page) async for page in pages(herd(store, visible=lambda one: one.name[-1] in "13579"), 7)]
        assert max(sizes) <= 7
        assert sum(sizes) == 30


async def test_a_tagged_view_is_listed_without_its_tags(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(3))
        with_tags = etag_view(read, lambda one: one.spec)
        for visible in (None, lambda _: True):
            collection = herd(store, view=with_tags, visible=visible)
            assert await body_of(await listed(collection)) == await body_of(await listed(herd(store)))


async def test_labels_and_index_narrow_the_list(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, ["a", "b"], colour="grey", herd="x")
        await fill(store, ["c", "d"], colour="bay", herd="x")
        await fill(store, ["e"], colour="grey", herd="y")
        narrow = herd(store, labels={"herd": "x"}, index=("colour", "grey"))
        assert await ids(await listed(narrow)) == ["a", "b"]


@pytest.mark.parametrize("token", ["", "nonsense", "x.y", "ö", "." * 300])
async def test_a_token_that_is_none_is_told(tmp_path: Path, token: str) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(3))
        with pytest.raises(Malformed, match='"continue" is not a token of this list') as told:
            await listed(herd(store), limit=1, after=token)
        assert told.value.problems[0][0] == "continue"


async def test_a_token_of_another_list_is_told(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(3))
        token = headers(await listed(herd(store), limit=1))["x-continue"]
        with pytest.raises(Malformed, match="continue"):
            await listed(herd(store, labels={"herd": "bay"}), limit=1, after=token)
        with pytest.raises(Malformed, match="continue"):
            await listed(herd(store), limit=1, after=token, by=tokens("/ponies"))


async def test_a_token_of_somebody_else_is_told(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(3))
        token = headers(await listed(herd(store), limit=1))["x-continue"]
        with pytest.raises(Malformed, match="continue"):
            await listed(herd(store), limit=1, after=token, by=tokens(caller="bert"))


async def test_a_token_that_was_made_or_changed_by_hand_is_told(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(3))
        page = await store.list(Horse, limit=1)
        token = headers(await listed(herd(store), limit=1))["x-continue"]
        assert page.next is not None
        for forged in (page.next, token[:-3] + ("AAA" if token[-3:] != "AAA" else "BBB"), token + "A"):
            with pytest.raises(Malformed, match="continue"):
                await listed(herd(store), limit=1, after=forged)


async def test_a_token_tells_nothing_of_what_was_looked_at(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(30, "hidden"))
        token = headers(await listed(herd(store, visible=lambda _: False), limit=1))["x-continue"]
        parts = [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split(":")]
        assert not any(b"hidden" in part for part in [*parts, token.encode()])


async def test_what_goes_while_a_list_is_read_is_left_out(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(1_300))
        answer = await listed(herd(store))
        assert not isinstance(answer.body, bytes)
        chunks = [await anext(answer.body)]
        last = await store.get(Horse, names(1_300)[-1])
        await store.delete(Horse, last.name, uid=last.uid)
        chunks += [chunk async for chunk in answer.body]
        assert [item["id"] for item in msgspec.json.decode(b"".join(chunks))] == names(1_299)


def read_long(one: Horse) -> dict[str, str]:
    return {"id": one.name, "about": "x" * 20_000}


LONG = etag_view(read_long, lambda one: one.spec)


async def test_few_objects_that_are_long_are_sent_in_parts_too(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(80))
        for collection in (herd(store, view=LONG), herd(store, view=LONG, visible=lambda _: True)):
            answer = await listed(collection)
            assert not isinstance(answer.body, bytes)
            parts = [part async for part in answer.body]
            assert max(map(len, parts)) < 64 * 1024, "nobody who does not read holds more"
            assert [item["id"] for item in msgspec.json.decode(b"".join(parts))] == names(80)
            page = await listed(collection, limit=80)
            assert page.body == b"".join(parts), "a page is counted as a whole"


async def test_m27_a_slow_reader_of_large_objects_occupies_few_of_them(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await fill(store, names(60))
        for collection in (herd(store, view=LONG), herd(store, view=LONG, visible=lambda _: True)):
            slices, found, after = SliceReader(collection, most=25, slice_bytes=SLICE_BYTES), 0, None
            while True:
                page = await slices.read(after)
                assert sum(map(len, page.items)) <= SLICE_BYTES
                found, after = found + len(page.items), page.next
                if after is None:
                    break
            assert found == 60
            (item,) = (await SliceReader(collection, most=25, slice_bytes=1).read()).items
            assert len(item) > 20_000, "one object is read however large it is"


async def test_slices_of_small_objects_are_long_again_after_those_of_large_ones(tmp_path: Path) -> None:
    def read_some_long(one: Horse) -> dict[str, str]:
        return read_long(one) if one.name < "h-00010" else {"id": one.name}

    async with sample_store(tmp_path) as store:
        await fill(store, names(200))
        view = etag_view(read_some_long, lambda one: one.spec)
        slices, after = SliceReader(herd(store, view=view), most=25, slice_bytes=SLICE_BYTES), None
        lengths: list[int] = []
        while not lengths or after is not None:
            page = await slices.read(after)
            lengths.append(len(page.items))
            after = page.next
        assert sum(lengths) == 200
        assert lengths[0] < 4
        assert 25 in lengths


def test_m27_a_cursor_shows_a_part_of_the_digest_by_which_lists_are_kept() -> None:
    assert re.fullmatch("[0-9a-f]{64}", PLACES.digest)
    assert PLACES.write("7") == f"7-{PLACES.digest[:16]}"
    PLACES.check(PLACES.write("7"), "Horse")


def test_batches_are_as_long_as_they_may_be_and_no_longer() -> None:
    items = [b"a" * length for length in (1, 2, 3, 9, 4, 4)]
    assert [[len(item) for item in batch] for batch in batches(view, items, 8)] == [[1, 2, 3], [9], [4, 4]]
    assert [*batches(view, [], 8)] == []
