"""A damaged file is refused when it is opened or found out by the check in the background; it crashes nobody."""

import asyncio
import random
from contextlib import closing, suppress
from pathlib import Path

import apsw
import msgspec
import pytest

from remuda.kernel.errors import RemudaError, StoreDamaged, StoreForeign, Unreadable
from remuda.store.logs import Record
from remuda.store.sqlite.maintenance import Integrity
from tests.kit.environment import options
from tests.kit.sample_kinds import PASTURE, REGISTRY, Corral, Horse, HorseSpec, Pasture, corral, horse, pasture
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import lose_power, open_simulated
from tests.kit.store.checks import integrity_found, spoil, steps_logged
from tests.kit.store.real import opened
from tests.kit.store.write_load import STREAM, Writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "remuda.db"

    async def fill() -> None:
        async with opened(path) as store:
            for name in ("ann", "bob"):
                writer = Writer(name)
                for _ in range(60):
                    await writer.tell(store)

    asyncio.run(fill())
    return path


def leave_unclean(path: Path) -> None:
    """Let the file look as if its last process had died."""
    path.with_name(path.name + ".lock").write_bytes(b"open\n")


async def look_at(path: Path) -> Integrity:
    """Use all of a store and return what its check found; our errors are answers, any other one is a crash."""
    async with opened(path) as store:
        for kind in store.registry.kinds:
            with suppress(RemudaError):
                await store.list(kind.type)
            with suppress(RemudaError):
                await store.list(kind.type, labels={"writer": "ann"})
        with suppress(RemudaError):
            await store.create(horse("new"))
        return await integrity_found(store)


def pages_in_use(path: Path) -> list[int]:
    """Return the pages of all tables and indexes but the first, which holds the header."""
    with closing(apsw.Connection(str(path))) as connection:
        return [page for (page,) in connection.execute("SELECT pageno FROM dbstat WHERE pageno > 1")]


def overwrite(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def test_a_page_that_is_none_is_found_out(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        size = connection.pragma("page_size")
    whole = path.read_bytes()
    for page in pages_in_use(path):
        path.write_bytes(whole)
        overwrite(path, (page - 1) * size, b"\xff" * 16)
        leave_unclean(path)
        try:
            found = asyncio.run(look_at(path))
        except StoreDamaged:
            found = "damaged"
        assert found == "damaged", f"page {page}"


@pytest.mark.parametrize("seed", range(40))
def test_bytes_flipped_anywhere_crash_nobody(path: Path, seed: int) -> None:
    draws = random.Random(seed)
    for _ in range(draws.randrange(1, 200)):
        overwrite(path, draws.randrange(path.stat().st_size), draws.randbytes(4))
    leave_unclean(path)
    with suppress(StoreDamaged, StoreForeign):
        asyncio.run(look_at(path))


def test_a_file_cut_short_is_found_out(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    leave_unclean(path)
    try:
        found = asyncio.run(look_at(path))
    except StoreDamaged:
        found = "damaged"
    assert found == "damaged"


@options(seeds=range(10))
async def test_after_an_unclean_stop_the_store_is_of_use_at_once_and_checked_in_the_background(world: World) -> None:
    store = open_simulated(world, REGISTRY)
    await store.create(horse("old"))
    await lose_power(world, store, "all")
    store = open_simulated(world, REGISTRY)
    assert store.integrity == "unchecked"
    await store.create(horse("new"))
    await world.clock.sleep(60)
    assert await integrity_found(store) == "sound"
    await store.close()
    store = open_simulated(world, REGISTRY)
    assert store.integrity == "sound"
    await store.close()


async def test_a_check_that_was_not_finished_is_restarted_by_the_next_one_to_open_the_file(path: Path) -> None:
    leave_unclean(path)
    async with opened(path) as store:
        assert store.integrity == "unchecked"
    async with opened(path) as store:
        assert await integrity_found(store) == "sound"
    async with opened(path) as store:
        assert store.integrity == "sound"


@options(seeds=range(10))
async def test_a_disk_that_fails_during_the_check_is_not_taken_for_damage(world: World) -> None:
    store = open_simulated(world, REGISTRY)
    await store.create(horse("old"))
    await lose_power(world, store, "all")
    store = open_simulated(world, REGISTRY)
    world.faults.at("disk.read_error", world.faults.counts["disk.read_error"].asked + 1)
    await world.clock.sleep(60)
    assert store.integrity == "unchecked"
    await store.close()
    store = open_simulated(world, REGISTRY)
    assert await integrity_found(store) == "sound"
    await store.close()


async def test_a_write_that_a_spoilt_document_stops_halfway_leaves_nothing_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    record = Record(stream=STREAM, subject="ann", data=msgspec.Raw(b"1"))
    async with opened(path) as store:
        owner = await store.create(pasture("owner"))
        target = await store.create(corral("target", owner=PASTURE.owner(owner)))
        await store.create(horse("referrer", spec=HorseSpec(corrals=("target",))))
    spoil(path, "owner", b'"metadata":{', b'"metadata":[')
    async with opened(path) as store:
        outcomes = await asyncio.gather(
            store.create(horse("bystander")),
            store.delete(Corral, "target", uid=target.uid, log=[record]),
            store.create(horse("another")),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [Horse, Unreadable, Horse]
        assert await steps_logged(store, "ann") == 0
        assert await store.get(Corral, "target") == target


async def test_names_are_listed_past_a_spoilt_document(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    async with opened(path) as store:
        for name in ("a", "b", "c"):
            await store.create(pasture(name))
    spoil(path, "b", b'"metadata":{', b'"metadata":[')
    async with opened(path) as store:
        with pytest.raises(Unreadable):
            await store.list(Pasture)
        assert list((await store.list_names(Pasture)).items) == ["a", "b", "c"]
