"""When what the cloud answered for is on its disk.

Commits do not wait for the disk, because they happen on the event loop. An answer does: it leaves after a sync of the
write-ahead log that began after its commit, in a thread, and one sync serves all who wait for it. The log is moved into
the file there, too.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import apsw

_LOG_BYTES = 4 * 2**20


class Disk:
    """The disk under an open file."""

    def __init__(self, path: Path, *, sync: Callable[[int], None] = os.fsync) -> None:
        self._sync = sync
        self._log = os.open(path.with_name(path.name + "-wal"), os.O_RDWR)
        self._mover = apsw.Connection(str(path))
        self._mover.pragma("synchronous", "normal")
        self._under_way: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def reached(self) -> None:
        """Return when all that is committed now would survive a power cut."""
        # A sync that is under way may have begun before our commit: only the next one is sure to hold it.
        if self._next is None:
            self._next = asyncio.create_task(self._sync_after(self._under_way), name="cloud sync")
        await asyncio.shield(self._next)

    async def close(self) -> None:
        """Wait for the last sync, and let go of the file."""
        left = [task for task in (self._under_way, self._next) if task is not None]
        if left:
            await asyncio.wait(left)
        self._mover.close()
        os.close(self._log)

    async def _sync_after(self, earlier: "asyncio.Task[None] | None") -> None:
        if earlier is not None:
            await asyncio.wait((earlier,))
        self._under_way, self._next = self._next, None
        await asyncio.to_thread(self._write_back)

    def _write_back(self) -> None:
        self._sync(self._log)
        if os.fstat(self._log).st_size > _LOG_BYTES:
            self._mover.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
