"""Harnesses over SQLite: on a real file in real time, and on the simulated machine."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from remuda.kernel.clock import Clock, SystemClock
from remuda.store.contract import Store
from remuda.store.logs import Log
from remuda.store.objects import Resource
from remuda.store.readside.reader import ReaderSettings
from remuda.store.readside.reads import MaintenanceSettings
from remuda.store.sqlite.batch import Batch
from remuda.store.sqlite.store import SqliteSettings, SqliteStore, open_store
from tests.kit.proofs.store_contract.harness import Harness
from tests.kit.sample_kinds import REGISTRY
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import SEALER, sim_ports


def impatient(*, bookmark_interval_s: float, ahead_timeout_s: float) -> SqliteSettings:
    """Settings under which little makes a store leave its cache, its tail and its first slice, and forget on demand."""
    reader = ReaderSettings(
        tail_changes=2, slice_objects=2, bookmark_interval_s=bookmark_interval_s, ahead_timeout_s=ahead_timeout_s
    )
    upkeep = MaintenanceSettings(history_age=timedelta(0), interval_s=86_400)
    return SqliteSettings(reader=reader, maintenance=upkeep)


class SqliteHarness:
    """The way behind the back of a SQLite store is SQL in its own write transaction."""

    def __init__(self, sound: SqliteStore, clock: Clock, *, seed: int) -> None:
        self.sound = sound
        self.store: Store = sound
        self.log: Log = sound
        self.clock = clock
        self.seed = seed

    async def plant(self, kind: type[Resource], name: str, patch: Mapping[str, Any]) -> None:
        await rewrite(self.sound, kind, name, patch)

    async def raw(self, kind: type[Resource], name: str) -> Mapping[str, Any]:
        return stored_document(self.sound, kind, name)

    async def forget_history(self) -> None:
        await self.sound.maintenance.compact()

    async def next_version(self) -> str:
        return str(self.sound._writer.version + 1)

    async def unreachable_version(self) -> str:
        return str(self.sound._writer.version + 1_000_000)


def stored_document(store: SqliteStore, kind: type[Resource], name: str) -> dict[str, Any]:
    reader = store._reader
    current = reader.tables.find(reader.names.kind(store.registry.of(kind)), name)
    assert current is not None, f"{kind.__name__} {name} is stored"
    document: dict[str, Any] = msgspec.json.decode(current.document)
    return document


async def rewrite(
    store: SqliteStore, kind: type[Resource], name: str, patch: Mapping[str, Any], *, read_again: bool = True
) -> None:
    """Merge into the stored document under its present version, and have the store read it again."""
    reader = store._reader
    number = reader.names.kind(store.registry.of(kind))

    def apply(batch: Batch) -> None:
        tables = batch._side.tables
        current = tables.find(number, name)
        assert current is not None, f"{kind.__name__} {name} is stored"
        document = msgspec.json.encode(merged(msgspec.json.decode(current.document), patch))
        tables.connection.execute("UPDATE revisions SET document = ? WHERE version = ?", (document, current.version))
        batch.is_dirty = True

    await store._writer.submit(apply)
    if read_again:
        reader._cache.clear()


def merged(document: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return patch
    kept = dict(document) if isinstance(document, Mapping) else {}
    for name, value in patch.items():
        kept[name] = merged(kept.get(name), value)
    return {name: value for name, value in kept.items() if value is not None}


@asynccontextmanager
async def real_file(path: Path) -> AsyncIterator[Harness]:
    settings = impatient(bookmark_interval_s=0.05, ahead_timeout_s=0.5)
    store = open_store(path, REGISTRY, SEALER, settings=settings)
    try:
        yield SqliteHarness(store, SystemClock(), seed=0)
    finally:
        await store.close()


@asynccontextmanager
async def simulated(world: World) -> AsyncIterator[SqliteHarness]:
    settings = impatient(bookmark_interval_s=1.0, ahead_timeout_s=3.0)
    path = world.disk.directory / "remuda.db"
    store = open_store(path, REGISTRY, SEALER, ports=sim_ports(world), settings=settings)
    try:
        yield SqliteHarness(store, world.clock, seed=world.seed)
    finally:
        await store.close()
