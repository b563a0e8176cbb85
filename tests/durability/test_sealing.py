"""A secret is in no byte of anything that leaves the program: database, log, backup, output, error."""

import logging
import traceback
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from msgspec.structs import replace

from remuda.kernel.errors import RemudaError, StorageFull, Unreadable, Unsealable
from remuda.kernel.sealing import Keyring, Sealer, SealingKey
from remuda.kernel.secrets import Secret
from remuda.store.logs import Record
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import options
from tests.kit.sample_kinds import REGISTRY, Horse, HorseSpec, horse
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import open_simulated
from tests.kit.store.checks import spoil
from tests.kit.store.disguises import disguises
from tests.kit.store.real import opened

CANARY = "canary-7f3a9c-brand-of-the-lazy-S"
OLD, NEW, STRANGE = (SealingKey(name, name[0].encode() * 32) for name in ("old", "new", "strange"))
BEFORE = Sealer(Keyring(OLD))
ROTATED = Sealer(Keyring(NEW, previous=(OLD,)))
AFTER = Sealer(Keyring(NEW))
STRANGER = Sealer(Keyring(STRANGE))


def assert_unseen(where: str, content: bytes) -> None:
    for disguise in disguises(CANARY):
        assert disguise not in content, f"the secret is in {where}"


def assert_unseen_below(directory: Path, *, at_least: set[str]) -> None:
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert at_least <= {path.name for path in files}
    for path in files:
        assert_unseen(path.name, path.read_bytes())


def branded(name: str, secret: str = CANARY) -> Horse:
    return horse(name, labels={"side": "left"}, spec=HorseSpec(brand=Secret(secret)))


async def test_a_secret_is_in_no_file_of_the_store(tmp_path: Path) -> None:
    async with opened(tmp_path / "remuda.db") as store:
        found = await store.create(branded("mare"))
        found = await store.update(replace(found, metadata=replace(found.metadata, labels={"side": "right"})))
        await store.create(branded("colt"))
        await store.delete(Horse, "colt", uid=(await store.get(Horse, "colt")).uid)
        await store.back_up(tmp_path / "backup.db")
        assert_unseen_below(tmp_path, at_least={"remuda.db", "remuda.db-wal", "remuda.db-shm", "backup.db"})
        assert (await store.get(Horse, "mare")).spec.brand == Secret(CANARY)
    assert_unseen_below(tmp_path, at_least={"remuda.db", "backup.db"})


async def test_the_search_would_find_a_secret_that_was_not_sealed(tmp_path: Path) -> None:
    async with opened(tmp_path / "remuda.db") as store:
        await store.create(horse("mare", spec=HorseSpec(colour=CANARY)))
        with pytest.raises(AssertionError, match="the secret is in remuda"):
            assert_unseen_below(tmp_path, at_least={"remuda.db-wal"})


@pytest.fixture
def output(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """Collect everything that is printed or logged, and look through it at the end."""
    said: list[str] = []
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as events:
        yield said
    printed = capfd.readouterr()
    everything = [*said, repr(events), caplog.text, printed.out, printed.err]
    assert_unseen("the output", "\n".join(everything).encode())


async def refused(act: Awaitable[Any], said: list[str], *, with_locals: bool = True) -> RemudaError:
    """Make something fail, and note the error, its repr, and its traceback with all it carries."""
    with pytest.raises(RemudaError) as caught:
        await act
    error = caught.value
    said += [str(error), repr(error), repr(vars(error))]
    said += traceback.TracebackException.from_exception(error, capture_locals=with_locals).format()
    return error


async def test_no_error_of_the_store_holds_a_secret(tmp_path: Path, output: list[str]) -> None:
    path = tmp_path / "remuda.db"
    async with opened(path) as store:
        found = await store.create(branded("mare"))
        await store.create(branded("colt"))
        await refused(store.create(branded("mare")), output)
        await refused(store.create(branded("No Name!")), output)
        await refused(store.create(branded("huge", CANARY * 40_000)), output, with_locals=False)
        await refused(store.update(replace(found, metadata=replace(found.metadata, resource_version="1000"))), output)
        await refused(store.delete(Horse, "mare", uid="another"), output)
        await refused(
            store.create(replace(branded("orphan"), spec=HorseSpec(brand=Secret(CANARY), corrals=("no",)))), output
        )
    spoil(path, "mare", b'"sealed:', b'"spoilt:')
    spoil(path, "colt", b'"spec":{', b'"spec":[')
    async with opened(path) as store:
        assert isinstance(await refused(store.get(Horse, "mare"), output), Unsealable)
        assert isinstance(await refused(store.get(Horse, "colt"), output), Unreadable)
        await refused(store.list(Horse), output)
    async with opened(path, sealer=STRANGER) as store:
        await refused(store.get(Horse, "mare"), output)


@options(seeds=range(1))
async def test_no_error_of_a_full_disk_holds_a_secret(world: World, output: list[str]) -> None:
    store = open_simulated(world, REGISTRY)
    world.disk.fill()
    assert isinstance(await refused(store.create(branded("mare")), output), StorageFull)
    world.disk.free()
    await store.close()
    assert_unseen_below(world.disk.directory, at_least={"remuda.db"})


def test_a_log_record_cannot_hold_a_secret() -> None:
    with pytest.raises(TypeError) as caught:
        Record(stream="audit", subject="mare", data=msgspec.Raw(msgspec.json.encode({"brand": Secret(CANARY)})))
    assert_unseen("the error", str(caught.value).encode())


async def brand_in(path: Path, sealer: Sealer) -> Secret | None:
    async with opened(path, sealer=sealer) as store:
        return (await store.get(Horse, "mare")).spec.brand


async def touch(store: SqliteStore) -> None:
    found = await store.get(Horse, "mare")
    await store.update(replace(found, spec=replace(found.spec, colour="dun")))


async def test_after_a_rotation_old_seals_still_open_and_an_update_seals_again(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    async with opened(path, sealer=BEFORE) as store:
        await store.create(branded("mare"))
    assert await brand_in(path, ROTATED) == Secret(CANARY)
    with pytest.raises(Unsealable, match="key old "):
        await brand_in(path, AFTER)
    async with opened(path, sealer=ROTATED) as store:
        await touch(store)
    assert await brand_in(path, AFTER) == Secret(CANARY)


async def test_a_seal_of_an_unknown_key_names_the_key_and_nothing_else(tmp_path: Path, output: list[str]) -> None:
    path = tmp_path / "remuda.db"
    async with opened(path, sealer=STRANGER) as store:
        await store.create(branded("mare"))
    error = await refused(brand_in(path, ROTATED), output)
    assert isinstance(error, Unsealable)
    assert str(error).startswith("A field sealed with key strange cannot be decrypted:")
    assert "sealed:v1" not in str(error)
    assert CANARY not in str(error)
