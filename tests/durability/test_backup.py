"""An online backup is one consistent state, whole or not there at all, and shows no secret without the key."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from remuda.kernel.errors import Invalid, StorageFailing, StorageFull, Unsealable
from remuda.kernel.sealing import Keyring, Sealer, SealingKey
from remuda.kernel.secrets import Secret
from tests.kit.environment import options
from tests.kit.sample_kinds import REGISTRY, Horse, HorseSpec, horse
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import open_simulated
from tests.kit.store.checks import audit, check_stories
from tests.kit.store.real import opened
from tests.kit.store.write_load import Writer

WRITERS = [f"writer-{number}" for number in range(8)]


@contextmanager
def nothing_left_in(directory: Path) -> Iterator[None]:
    before = sorted(directory.iterdir())
    yield
    assert sorted(directory.iterdir()) == before


def test_a_backup_during_writes_is_a_consistent_snapshot_that_opens_as_a_store(tmp_path: Path) -> None:
    writers = [Writer(name) for name in WRITERS]
    target = tmp_path / "backup.db"

    async def write_and_back_up() -> list[Writer]:
        async with opened(tmp_path / "remuda.db") as store:

            async def tell(writer: Writer) -> None:
                while not target.exists() or writer.told < 30:
                    await writer.tell(store)

            writing = [asyncio.create_task(tell(writer)) for writer in writers]
            while any(writer.told < 20 for writer in writers):
                await asyncio.wait(writing, timeout=0.001)
            told_before = {writer.name: writer.told for writer in writers}
            await store.back_up(target)
            asked_before = {writer.name: writer.asked for writer in writers}
            await asyncio.gather(*writing)
        return [between(name, told_before[name], asked_before[name]) for name in WRITERS]

    async def check(snapshot: list[Writer]) -> None:
        async with opened(target) as store:
            await check_stories(store, snapshot)

    asyncio.run(check(asyncio.run(write_and_back_up())))
    audit(target)
    audit(tmp_path / "remuda.db")


def between(name: str, told: int, asked: int) -> Writer:
    """Return a writer whose story may have come so far or further, but not beyond."""
    writer = Writer(name, told=told)
    writer.asked = asked
    return writer


def unfinished_in(directory: Path) -> list[Path]:
    return list(directory.glob("*unfinished*"))


async def test_only_the_owner_may_read_a_backup(tmp_path: Path) -> None:
    async with opened(tmp_path / "remuda.db") as store:
        await store.back_up(tmp_path / "backup.db")
    assert (tmp_path / "backup.db").stat().st_mode & 0o777 == 0o600
    assert not unfinished_in(tmp_path)


async def test_a_backup_overwrites_nothing(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    async with opened(tmp_path / "remuda.db") as store:
        with nothing_left_in(tmp_path), pytest.raises(Invalid, match="would overwrite"):
            await store.back_up(target)
    assert target.read_text() == "precious"


async def test_a_backup_into_no_directory_fails_in_one_sentence(tmp_path: Path) -> None:
    async with opened(tmp_path / "remuda.db") as store:
        with nothing_left_in(tmp_path), pytest.raises(StorageFailing, match="No such file or directory"):
            await store.back_up(tmp_path / "absent" / "backup.db")
        await store.create(horse("after"))


@options(seeds=range(5))
async def test_a_backup_that_finds_no_space_leaves_nothing_behind_and_the_store_goes_on(world: World) -> None:
    directory = world.disk.directory
    store = open_simulated(world, REGISTRY)
    await store.create(horse("before"))
    world.disk.fill()
    with nothing_left_in(directory), pytest.raises(StorageFull, match=r"backup\.db is full"):
        await store.back_up(directory / "backup.db")
    world.disk.free()
    await store.create(horse("after"))
    await store.back_up(directory / "backup.db")
    await store.close()
    audit(directory / "backup.db")


async def test_a_backup_shows_no_secret_without_the_key(tmp_path: Path) -> None:
    async with opened(tmp_path / "remuda.db") as store:
        await store.create(horse("branded", spec=HorseSpec(brand=Secret("lazy S"))))
        await store.back_up(tmp_path / "backup.db")
    async with opened(tmp_path / "backup.db") as store:
        assert (await store.get(Horse, "branded")).spec.brand == Secret("lazy S")
    stranger = Sealer(Keyring(SealingKey("stranger", b"s" * 32)))
    async with opened(tmp_path / "backup.db", sealer=stranger) as store:
        with pytest.raises(Unsealable):
            await store.get(Horse, "branded")
    assert b"lazy S" not in (tmp_path / "backup.db").read_bytes()
