"""The whole store on a bad machine: random writes, watches, compaction, a failing disk and power cuts, by seed."""

import asyncio
import os
from collections import Counter
from contextlib import suppress
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from remuda.kernel.errors import NotFound, StoreInaccessible, Unavailable
from remuda.store.readside.reader import ReaderSettings
from remuda.store.readside.reads import MaintenanceSettings
from remuda.store.sqlite import writer as writing
from remuda.store.sqlite.store import SqliteSettings, SqliteStore
from tests.kit.sample_kinds import REGISTRY, Horse, Pasture
from tests.kit.sim_store.clients import HELD, WritingClient
from tests.kit.sim_store.history import KINDS, Ledger, things_in
from tests.kit.sim_store.watchers import Watcher
from tests.kit.simulation.platter import Keep
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated
from tests.kit.store.checks import audit

SEEDS = 30
"""The widest system has the others."""
BOOTS = 3
CLIENTS = 3
WRITES = 16
QUIET_S = 5
KEEP: tuple[Keep, ...] = ("none", "some", "all")
SETTINGS = SqliteSettings(
    reader=ReaderSettings(bookmark_interval_s=1, tail_changes=3, cache_bytes=8_000),
    maintenance=MaintenanceSettings(history_changes=12, interval_s=0.3),
)
RATES = {
    "disk.read_error": 0.002,
    "disk.write_error": 0.005,
    "disk.full": 0.005,
    "disk.sync_error.wal": 0.03,
    "disk.sync_error.main": 0.05,
    "disk.fills_up": 0.05,
    "power.cut": 0.1,
    "watch.cut": 0.1,
    "watch.slow": 0.05,
}
EXPECTED = {
    *("acknowledged", "Conflict", "NotFound", "AlreadyExists", "OwnerRejected", "ReferenceRejected"),
    *("StorageFull", "StorageFailing", "Gone", "failed, yet there after a crash"),
}


class Machine:
    """A world with a store in it, which is opened again whenever the power went."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ledger = Ledger()
        self.watchers = [Watcher(world, Horse), Watcher(world, Horse, {"side": "left"}), Watcher(world, Pasture)]
        self.store: SqliteStore
        self._version = 0

    async def boot(self) -> None:
        """Open the store on what is there, as often as it takes."""
        while True:
            if self.world.disk.is_cut:
                self.world.power_cut()
            try:
                self.store = open_simulated(self.world, REGISTRY, settings=SETTINGS)
                break
            except StoreInaccessible:
                await self.world.clock.sleep(1)
        await self.check(after_crash=not self.store._file.was_clean)

    async def check(self, *, after_crash: bool) -> None:
        """Find all that was acknowledged, and nothing that failed: only a crash may bring that back."""
        while not self.world.disk.is_cut:
            with suppress(Unavailable):
                await self.ledger.check(self.store, after_crash=after_crash)
                return
            await self.world.clock.sleep(0.1)

    async def work(self) -> None:
        """Let everybody use the store until they are done or the power goes."""
        others = [asyncio.create_task(watcher.follow(self.store)) for watcher in self.watchers]
        others.append(asyncio.create_task(self._trouble()))
        self.world.invariants[:] = [self._check_progress]
        await asyncio.gather(*[self._write(WritingClient(self.world, self.ledger)) for _ in range(CLIENTS)])
        self.world.invariants.clear()
        await stop(others)

    async def shut_down(self) -> None:
        await self.check(after_crash=False)
        self.world.disk.free()
        with suppress(apsw.Error):
            await self.store.close()

    async def _write(self, client: WritingClient) -> None:
        for _ in range(WRITES):
            await self.world.clock.sleep(self.world.randomness.uniform(0, 0.1))
            with suppress(Unavailable):
                await client.write(self.store)
            if self.world.disk.is_cut:
                return

    async def _trouble(self) -> None:
        faults, draw = self.world.faults, self.world.randomness.randrange
        while True:
            await self.world.clock.sleep(0.1)
            if faults.fires("disk.fills_up"):
                self.world.disk.fill()
                await self.world.clock.sleep(0.3)
                self.world.disk.free()
            if faults.fires("power.cut"):
                self.world.plan_power_cut(1 + draw(4), keep=KEEP[draw(3)], tear=draw(2) == 1)
                return

    def _check_progress(self) -> None:
        """Versions only rise, over power cuts too; none was told that is not reached; upkeep goes on."""
        writer = self.store._writer
        assert writer.floor <= writer.version
        assert not self.store._tasks.failing
        assert max(self._version, self.ledger.newest) <= writer.version
        self._version = writer.version


async def stop(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome


async def come_to_rest(machine: Machine) -> None:
    """Without faults every watch catches up, every write succeeds and every deletion ends."""
    store, clock = machine.store, machine.world.clock
    following = [asyncio.create_task(watcher.follow(store)) for watcher in machine.watchers]
    await clock.sleep(QUIET_S)
    for watcher in machine.watchers:
        page = await store.list(watcher.kind, labels=watcher.labels)
        assert watcher.known == {each.name: each for each in page.items}
    await remove_everything(store)
    assert await things_in(store) == {}
    await clock.sleep(QUIET_S)
    assert not any(watcher.known for watcher in machine.watchers)
    await stop(following)


async def remove_everything(store: SqliteStore) -> None:
    for kind in KINDS:
        for each in (await store.list(kind)).items:
            with suppress(NotFound):  # another one may have taken it along
                await store.update(unbound(await store.get(kind, each.name)))
    for kind in KINDS:
        for each in (await store.list(kind)).items:
            with suppress(NotFound):
                await store.delete(kind, each.name, uid=each.uid)


def unbound(resource: Any) -> Any:
    """Return an object that neither holds anything nor is held by a finalizer of its clients."""
    finalizers = tuple(each for each in resource.metadata.finalizers if each != HELD)
    freed = replace(resource, metadata=replace(resource.metadata, finalizers=finalizers))
    return replace(freed, spec=replace(freed.spec, favourite=None)) if isinstance(freed, Pasture) else freed


def test_the_store_keeps_its_invariant_on_a_bad_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "CHECKPOINT_PAGES", 20)
    outcomes: Counter[str] = Counter()

    async def live(world: World) -> None:
        machine = Machine(world)
        for _ in range(BOOTS):
            await machine.boot()
            await machine.work()
            await machine.shut_down()
        world.faults.stop()
        world.power_cut()
        await machine.boot()
        await come_to_rest(machine)
        await machine.store.close()
        audit(world.disk.directory / "remuda.db")
        outcomes.update(machine.ledger.outcomes)
        outcomes.update(key for watcher in machine.watchers for key in watcher.outcomes.elements())

    simulate(live, SEEDS, rates=RATES)
    if "REMUDA_SEED" not in os.environ:
        assert outcomes.keys() >= EXPECTED
