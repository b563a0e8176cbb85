"""Watch over the sealing keys of a running process: a new key seals from then on, and what is stored is sealed again.

`remuda keys rotate` only adds a key to the key file. The process finds it, seals with it, and seals every stored secret
again in the background, by ordinary updates, which clients see as a new version at most. Then it records with which key
all that was done. An interruption at any point loses nothing: the earlier key stays in the file, and the next start
continues.

A write that was sealed with the earlier key may still be on its way. It is durable before an empty write that follows
it, so the search for earlier seals begins after one.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from remuda.datadir import DataDirectory, ResealRecord
from remuda.http.server.tls import WatchedFiles
from remuda.kernel.clock import Clock
from remuda.kernel.sealing import Sealer, load_keyring
from remuda.process import ProcessPorts
from remuda.providers.simulated.server_documents import reseal_servers
from remuda.store.background import BackgroundTasks
from remuda.store.reseal import reseal
from remuda.store.sqlite.store import SqliteStore

_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyWatch:
    """The sealing keys of a process, as its key file changes."""

    data: DataDirectory
    store: SqliteStore
    sealer: Sealer
    clock: Clock

    async def run(self) -> None:
        """Follow the key file until stopped."""
        watched = WatchedFiles([self.data.keys], self._adopt, what="sealing keys")
        self._adopt()  # it may have changed before the files were watched
        while True:
            await self.reseal()
            await self.clock.sleep(_INTERVAL_S)
            watched.check()

    async def reseal(self) -> None:
        """Seal what is stored with the current key, unless that was done."""
        key = self.sealer.current_id
        if not self.sealer.has_previous_keys or self.data.resealed().key == key:
            return
        await self.store.append([])
        resealed = 0
        while written := await reseal(self.store):
            resealed += written
        for cloud in self.data.cloud_files():
            resealed += await asyncio.to_thread(self._reseal_cloud, cloud)
        self.data.record_reseal(ResealRecord(key=key, resealed=resealed))
        structlog.get_logger().info("stored secrets are sealed with the current key", key=key, resealed=resealed)

    def _adopt(self) -> None:
        self.sealer.adopt(load_keyring(self.data.keys))

    def _reseal_cloud(self, path: Path) -> int:
        return reseal_servers(path, self.sealer, self.clock)


@asynccontextmanager
async def watching_keys(process: ProcessPorts) -> AsyncIterator[None]:
    """Follow the key file for the block, which begins when the simulated clouds are open."""
    watch = KeyWatch(data=process.data, store=process.store, sealer=process.sealer, clock=process.clock)
    tasks = BackgroundTasks(process.clock)
    tasks.start("sealing keys", watch.run)
    try:
        yield
    finally:
        await tasks.stop()
