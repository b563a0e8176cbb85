"""Rendered objects are kept in the store for the next process: never stale, never with a secret, never too many."""

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from remuda.access.principal import AccessList
from remuda.http.list_cache import ListCache
from remuda.http.pagination import Cursors, PageTokens, list_response
from remuda.http.responses import Collection, EtagView, GuardedView, StoredForm
from remuda.http.schema import ListQuery
from remuda.kernel.randomness import SeededRandomness
from remuda.kernel.secrets import Secret
from remuda.store.codec import Codec
from remuda.store.readside.reader import ReaderSettings
from remuda.store.sqlite.store import SqliteSettings, SqliteStore
from tests.kit.sample_api.collections import ANNA, BAY, body_of, fill, read, sample_store
from tests.kit.sample_kinds import Horse, HorseSpec, horse
from tests.kit.simulation.store import SEALER

TOKENS = PageTokens(SEALER, path="/horses", caller="anna")
PLACES = Cursors(AccessList())
BRAND = "canary-4711"


def shown(one: Horse) -> dict[str, str]:
    brand = one.spec.brand
    return read(one) if brand is None else read(one) | {"brand": brand.reveal()}


def without_brand(one: Horse) -> Horse:
    return one if one.spec.brand is None else replace(one, spec=replace(one.spec, brand=None))


VIEW = GuardedView(
    EtagView(shown, lambda one: without_brand(one).spec),
    hidden=without_brand,
    is_shown=lambda reader, _: reader is ANNA,
)


@asynccontextmanager
async def opened(directory: Path, revision: str = "one") -> AsyncIterator[SqliteStore]:
    settings = SqliteSettings(reader=ReaderSettings(code_revision=revision))
    async with sample_store(directory, settings=settings) as store:
        yield store


def herd(store: SqliteStore, *, reader: Any = None, of: str | None = None) -> Collection[Horse, Any]:
    def is_visible(labels: Mapping[str, str]) -> bool:
        return of is None or labels.get("herd") == of

    return Collection(
        store=store,
        kind=Horse,
        view=VIEW,
        reader=reader,
        selection=("horses", of),
        visible=lambda one: is_visible(one.metadata.labels),
        stored_form=StoredForm("horses", is_visible),
    )


async def listed(collection: Collection[Horse, Any]) -> bytes:
    """Return a list as a process shows it that has not listed before."""
    lists = ListCache(SeededRandomness(1))
    return await body_of(await list_response(collection, ListQuery(), TOKENS, PLACES, lists=lists))


async def stored(store: SqliteStore) -> list[str]:
    """Return the names of the renderings in the file."""
    await store._renderings.flush()
    with closing(apsw.Connection(str(store.path))) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM renderings ORDER BY name")]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the objects that are decoded from now on."""
    names: list[str] = []
    decode = Codec.decode

    def noted(codec: Codec[Any], document: bytes, name: str) -> Any:
        names.append(name)
        return decode(codec, document, name)

    monkeypatch.setattr(Codec, "decode", noted)
    return names


async def test_a_process_lists_what_an_earlier_one_rendered_without_decoding_it(
    tmp_path: Path, decoded: list[str]
) -> None:
    async with opened(tmp_path) as store:
        await fill(store, ["anna", "bella"])
        before = await listed(herd(store))
    decoded.clear()
    async with opened(tmp_path) as store:
        assert await listed(herd(store)) == before
        assert not decoded
        await fill(store, ["cora"])
        await listed(herd(store))
        found = await store.get(Horse, "anna")
        await store.update(replace(found, spec=HorseSpec(colour="grey")))
    decoded.clear()
    async with opened(tmp_path) as store:
        assert b'"grey"' in await listed(herd(store))
        assert decoded == ["anna"], "the others were rendered in their present state"


async def test_what_another_revision_of_the_code_rendered_is_not_shown(tmp_path: Path, decoded: list[str]) -> None:
    async with opened(tmp_path) as store:
        await fill(store, ["anna"])
        await listed(herd(store))
    for revision in ("two", ""):
        decoded.clear()
        async with opened(tmp_path, revision) as store:
            await listed(herd(store))
            assert decoded == ["anna"]


@pytest.mark.parametrize("seed", range(6))
async def test_a_stored_rendering_is_never_stale(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(6):
        async with opened(tmp_path, chance.choice(["one", "one", "two"])) as store:
            for _ in range(25):
                await _change_something(store, chance)
                if chance.random() < 0.3:
                    await store._renderings.flush()
                collection = herd(store, reader=chance.choice([None, ANNA]), of=chance.choice([None, "bay"]))
                expected = await list_response(replaced(collection, selection=None), ListQuery(), TOKENS, PLACES)
                assert await listed(collection) == await body_of(expected)
            names = {each.name for each in (await store.list(Horse)).items}
            assert set(await stored(store)) <= names, "a deleted object leaves nothing"


async def _change_something(store: SqliteStore, chance: random.Random) -> None:
    name = f"h-{chance.randrange(8)}"
    found = {each.name: each for each in (await store.list(Horse)).items}.get(name)
    brand = Secret(BRAND) if chance.random() < 0.3 else None
    spec = HorseSpec(colour=chance.choice(["grey", "bay"]), brand=brand)
    if found is None:
        await store.create(horse(name, labels={"herd": chance.choice(["bay", "other"])}, spec=spec))
    elif chance.random() < 0.3:
        await store.delete(Horse, name, uid=found.uid)
    elif chance.random() < 0.5:
        await store.update(replace(found, spec=spec))
    else:
        await store.update(replace(found, metadata=replace(found.metadata, labels={"herd": chance.choice("ab")})))


async def test_no_secret_is_stored_in_clear(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await fill(store, ["plain"])
        await store.create(horse("secret", labels=BAY, spec=HorseSpec(brand=Secret(BRAND))))
        assert BRAND.encode() in await listed(herd(store, reader=ANNA)), "she may see it"
        assert BRAND.encode() not in await listed(herd(store))
        assert await stored(store) == ["plain"]
    for path in list(tmp_path.glob("prairie.db*")):  # noqa: ASYNC240  a few files
        assert BRAND.encode() not in path.read_bytes(), path.name
    async with opened(tmp_path) as store:
        assert BRAND.encode() in await listed(herd(store, reader=ANNA))
        assert BRAND.encode() not in await listed(herd(store))


async def test_only_who_may_see_an_object_is_shown_its_rendering(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await fill(store, ["anna"])
        await fill(store, ["other"], herd="other")
        await listed(herd(store))
        assert await stored(store) == ["anna", "other"]
    async with opened(tmp_path) as store:
        assert await listed(herd(store, of="bay")) == b'[{"id":"anna","colour":"bay"}]'


async def test_a_state_that_was_superseded_before_it_was_stored_is_not_stored(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await fill(store, ["anna", "bella"])
        await listed(herd(store))
        found = await store.get(Horse, "anna")
        await store.update(replace(found, spec=HorseSpec(colour="grey")))
        bella = await store.get(Horse, "bella")
        await store.delete(Horse, "bella", uid=bella.uid)
        assert await stored(store) == []


async def test_a_large_rendering_is_not_stored(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        nicknames = tuple(f"name-{number}" for number in range(10))
        await store.create(horse("large", labels=BAY, spec=HorseSpec(colour="x" * 20_000, nicknames=nicknames)))
        await fill(store, ["small"])
        await listed(herd(store))
        assert await stored(store) == ["small"]
