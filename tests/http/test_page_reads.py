"""Reads of many objects take turns, and count for the caller."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remuda.access.principal import AccessList, Principal
from remuda.http.list_cache import ListCache
from remuda.http.page_reads import Reading, page_slots, reader_key
from remuda.http.pagination import Cursors, PageTokens, list_response
from remuda.http.schema import ListQuery
from remuda.kernel.randomness import SeededRandomness
from remuda.store.contract import Page
from tests.kit.forwarding_store import Passing
from tests.kit.sample_api.collections import fill, headers, herd, ids, sample_store
from tests.kit.sample_kinds import Horse
from tests.kit.simulation.store import SEALER

TOKENS = PageTokens(SEALER, path="/horses", caller="anna")
CURSORS = Cursors(AccessList())
MIB = 1 << 20


class Begun(Passing):
    """A store that counts the lists that are read at a time."""

    begun = ended = most = 0

    async def list(self, kind: Any, **selection: Any) -> Page[Any]:
        self._begin(selection)
        return await self.inner.list(kind, **selection)

    async def list_views(self, kind: Any, view: Any, **selection: Any) -> Page[bytes]:
        self._begin(selection)
        return await self.inner.list_views(kind, view, **selection)

    def _begin(self, selection: Any) -> None:
        self.begun += selection.get("after") is None
        self.most = max(self.most, self.begun - self.ended)


@pytest.mark.parametrize("mode", ["page", "visible", "whole", "cache miss"])
async def test_m27_lists_that_must_be_read_take_turns(tmp_path: Path, mode: str) -> None:
    async with sample_store(tmp_path) as inner:
        await fill(inner, [f"h-{number:05}" for number in range(250)])
        store, slots, lists = Begun(inner), page_slots(), ListCache(SeededRandomness(1))
        visible = (lambda _: True) if mode == "visible" else None
        query = ListQuery(limit=250 if mode in {"page", "visible"} else None)

        async def read(number: int) -> None:
            collection = herd(store, visible=visible, selection=number if mode == "cache miss" else None)
            reading = Reading(slots, "one")
            response = await list_response(collection, query, TOKENS, CURSORS, reading=reading, lists=lists)
            store.ended += 1
            assert len(await ids(response)) >= 200

        await asyncio.gather(*map(read, range(60)))
        assert store.most <= 2


async def test_m27_a_page_of_large_objects_ends_early(tmp_path: Path) -> None:
    def view(one: Horse) -> bytes:
        return msgspec.json.encode({"id": one.name, "text": "x" * 20_000})

    async with sample_store(tmp_path) as store:
        await fill(store, [f"h-{number:05}" for number in range(300)])
        found: list[str] = []
        after = None
        while True:
            response = await list_response(
                herd(store, view=view), ListQuery(limit=1000, continue_=after), TOKENS, CURSORS
            )
            assert len(response.body) < 4 * MIB  # type: ignore[arg-type]  # a page is one body
            found += await ids(response)
            after = headers(response).get("x-continue")
            if after is None:
                break
        assert found == [f"h-{number:05}" for number in range(300)]


def test_m27_a_caller_chooses_no_other_turn_than_that_of_its_organization() -> None:
    account = Principal(subject="ann@example.com", type="user", organizations=("one",))
    assert reader_key(account) == reader_key(account.with_payer("other", None)) == "one"
    both = Principal(subject="bob@example.com", type="user", organizations=("two", "one"))
    assert reader_key(both) == "one two"
    assert reader_key(both.with_payer("two", None)) == "two"
