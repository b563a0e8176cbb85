"""The SQLite store on the simulated machine: its disk, its clock, its chance, its lanes."""

from contextlib import suppress

import apsw

from remuda.kernel.sealing import Keyring, Sealer, SealingKey
from remuda.store.kinds import Registry
from remuda.store.sqlite.store import SqlitePorts, SqliteSettings, SqliteStore, open_store
from tests.kit.simulation.executor import SimExecutor
from tests.kit.simulation.platter import Keep
from tests.kit.simulation.runner import World

SEALER = Sealer(Keyring(SealingKey("test", b"k" * 32)))


def sim_ports(world: World) -> SqlitePorts:
    return SqlitePorts(
        clock=world.clock,
        randomness=world.randomness,
        commits=lambda: SimExecutor(world.randomness),
        background=lambda: SimExecutor(world.randomness),
        vfs=world.disk.vfs_name,
    )


async def lose_power(world: World, store: SqliteStore, keep: Keep = "some", *, tear: bool = False) -> None:
    """Cut the power under an open store, and release what is left of it."""
    world.power_cut(keep, tear=tear)
    with suppress(apsw.Error):
        await store.close()


def open_simulated(world: World, registry: Registry, *, settings: SqliteSettings | None = None) -> SqliteStore:
    """Open the store on the world's present disk: after a power cut, on what was left."""
    path = world.disk.directory / "remuda.db"
    return open_store(path, registry, SEALER, ports=sim_ports(world), settings=settings)
