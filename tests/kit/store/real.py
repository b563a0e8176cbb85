"""The store on the machine's own disk and clock, for tests that need no simulation."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from remuda.kernel.sealing import Sealer
from remuda.store.kinds import Registry
from remuda.store.sqlite.store import SqliteSettings, SqliteStore, open_store
from tests.kit.sample_kinds import REGISTRY
from tests.kit.simulation.store import SEALER


@asynccontextmanager
async def opened(
    path: Path,
    registry: Registry = REGISTRY,
    sealer: Sealer = SEALER,
    *,
    settings: SqliteSettings | None = None,
) -> AsyncIterator[SqliteStore]:
    """Open a store and close it afterwards."""
    store = open_store(path, registry, sealer, settings=settings)
    try:
        yield store
    finally:
        await store.close()
