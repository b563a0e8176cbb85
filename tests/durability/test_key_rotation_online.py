"""Rotation of the sealing keys beside a running process: it goes on, and nothing is lost wherever it is interrupted."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from remuda.app import registry
from remuda.app.key_rotation import key_uses, remove, rotate
from remuda.app.key_watch import KeyWatch
from remuda.datadir import DataDirectory
from remuda.identity.kinds.oauth import OAuth2Provider, OAuth2ProviderSpec, Password, PasswordSpec
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Conflict, Invalid, Unusable
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.sealing import Keyring, load_keyring, rotate_keyring_file, write_keyring_file
from remuda.kernel.secrets import Secret
from remuda.resources.conventions import ORGANIZATION
from remuda.store.objects import Metadata
from remuda.store.sqlite.seals import drop_history, keys_of_seals
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.http_server import until
from tests.kit.processes.killed_steps import run_killed_at
from tests.kit.processes.sealed_data import NAMES, check

KILLS = 16
CHILD = """
import asyncio, sys
from pathlib import Path
from remuda.app import registry
from remuda.app.key_watch import KeyWatch
from remuda.datadir import DataDirectory
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.sealing import load_keyring, rotate_keyring_file
from remuda.store.sqlite.store import open_store
from tests.kit.processes.killed_steps import killed_at

async def run():
    data = DataDirectory(Path(sys.argv[1]))
    sealer = data.sealer()
    store = open_store(data.store, registry(), sealer)
    with killed_at(int(sys.argv[2])):
        rotate_keyring_file(data.keys, SystemRandomness())
        sealer.adopt(load_keyring(data.keys))
        await KeyWatch(data=data, store=store, sealer=sealer, clock=SystemClock()).reseal()
    await store.close()

asyncio.run(run())
"""


@asynccontextmanager
async def process(data: DataDirectory) -> AsyncIterator[SqliteStore]:
    """Have the store open and follow the key file, as a process does."""
    sealer = data.sealer()
    store = open_store(data.store, registry(), sealer)
    watch = KeyWatch(data=data, store=store, sealer=sealer, clock=SystemClock())
    running = asyncio.ensure_future(watch.run())
    try:
        yield store
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await store.close()


async def write_on(store: SqliteStore, written: dict[str, str], is_done: asyncio.Event) -> None:
    """Create and change objects with secrets until it is done."""
    number = 0
    while not is_done.is_set():
        number += 1
        name, secret = random_id(SystemRandomness()), f"written {number}"
        spec = OAuth2ProviderSpec(issuer="https://idp.example", client_secret=Secret(secret))
        metadata = Metadata(name=name, labels={ORGANIZATION: "one"})
        await store.create(OAuth2Provider(metadata=metadata, spec=spec))
        written[name] = secret
        found = await store.get(Password, NAMES[3])
        try:
            await store.update(replace(found, spec=PasswordSpec(hash=Secret(f"hash {NAMES[3]}"), reset_hash=secret)))
        except Conflict:  # it was sealed again meanwhile
            continue


async def test_m27_keys_are_rotated_beside_a_process_that_writes_all_the_time(data: DataDirectory) -> None:
    first = load_keyring(data.keys).current.id
    written: dict[str, str] = {}
    is_done = asyncio.Event()
    async with process(data) as store:
        writers = [asyncio.ensure_future(write_on(store, written, is_done)) for _ in range(3)]
        for _ in range(3):
            done = await rotate(data, SystemClock(), SystemRandomness())
            assert (done.is_new, done.is_beside_process) == (True, True)
            assert done.resealed >= len(NAMES)
        is_done.set()
        await asyncio.gather(*writers)
        assert written
    assert done.current.id != first
    current = load_keyring(data.keys).current.id
    assert done.current.id == current
    drop_history(data.store)
    assert set(keys_of_seals(data.store)) == {current}
    assert set(keys_of_seals(*data.cloud_files())) == {current}
    write_keyring_file(data.keys, Keyring(load_keyring(data.keys).current, (), load_keyring(data.keys).root))
    await check(data, data.sealer())
    store = open_store(data.store, registry(), data.sealer())
    try:
        for name, secret in written.items():
            assert (await store.get(OAuth2Provider, name)).spec.client_secret == Secret(secret)
    finally:
        await store.close()


async def test_a_key_is_removed_beside_a_process_only_when_nothing_needs_it(data: DataDirectory) -> None:
    first = load_keyring(data.keys).current.id
    async with process(data) as store:
        done = await rotate(data, SystemClock(), SystemRandomness())
        with pytest.raises(Invalid, match="wait until the history of the store no longer has them"):
            remove(data, first)
        assert key_uses(data)[1].is_replaced
        data.forget_reseal()
        assert not key_uses(data)[1].is_replaced
        with pytest.raises(Unusable, match="has not sealed everything with the current key yet"):
            remove(data, first)
        assert await store.get(Password, NAMES[3])
    drop_history(data.store)
    async with process(data):
        await rotated_to(data, done.current.id)
        remove(data, first)
    assert [use.key.id for use in key_uses(data)] == [done.current.id]
    await check(data, data.sealer())


async def rotated_to(data: DataDirectory, key: str) -> None:
    await until(lambda: data.resealed().key == key)


async def test_m27_a_rotation_whose_process_ends_is_completed_by_the_command(data: DataDirectory) -> None:
    store = open_store(data.store, registry(), data.sealer())  # a process that does not look at the key file any more
    running = asyncio.ensure_future(rotate(data, SystemClock(), SystemRandomness()))
    await until(lambda: load_keyring(data.keys).previous)
    assert not running.done()
    await store.close()
    done = await running
    assert done.is_new
    assert set(keys_of_seals(data.store)) == {done.current.id}
    await check(data, data.sealer())


async def test_m27_a_rotation_whose_command_ends_is_completed_by_the_process(data: DataDirectory) -> None:
    async with process(data):
        key = rotate_keyring_file(data.keys, SystemRandomness()).current.id
        await rotated_to(data, key)
        again = await rotate(data, SystemClock(), SystemRandomness())
        assert again.is_new, "the first one is complete"
    await check(data, data.sealer())


async def test_the_keys_of_another_system_are_not_adopted(data: DataDirectory, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    sealer = data.sealer()
    foreign = DataDirectory(other).prepare(SystemRandomness())
    assert foreign.current_id != sealer.current_id
    with pytest.raises(Invalid, match="belongs to another system"):
        sealer.adopt(load_keyring(other / "keys.json"))
    assert sealer.current_id == load_keyring(data.keys).current.id


def test_m24_a_process_that_is_killed_at_any_step_of_a_rotation_loses_nothing_and_the_next_completes_it(
    furnished: Path, tmp_path: Path
) -> None:
    count = run_killed_at(0, CHILD, shutil.copytree(furnished, tmp_path / "whole"))
    assert count > 2 * KILLS
    old = load_keyring(furnished / "keys.json").current.id
    for number in range(KILLS):
        data = DataDirectory(shutil.copytree(furnished, tmp_path / f"killed-{number}"))
        run_killed_at(1 + number * (count - 2) // (KILLS - 1), CHILD, data.path)
        asyncio.run(check(data, data.sealer()))
        asyncio.run(complete(data))
        current = load_keyring(data.keys).current.id
        drop_history(data.store)
        assert set(keys_of_seals(data.store)) | set(keys_of_seals(*data.cloud_files())) == {current}
        assert current != old or number == 0, "the first is killed before there is a key"
        asyncio.run(check(data, data.sealer()))


async def complete(data: DataDirectory) -> None:
    """Start the process again, until everything is sealed with the current key."""
    keyring = load_keyring(data.keys)
    async with process(data):
        if keyring.previous:
            await rotated_to(data, keyring.current.id)
