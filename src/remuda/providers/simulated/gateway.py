"""Gateway of the simulated cloud: latency, faults and commits of every call, and the tables of its documents.

A write runs as its own task, so it completes even if its caller gives up, as it would in a real cloud. A cloud without
latency, faults and durability needs no task: all writes of one event-loop iteration share a commit, because a commit
costs as much as several writes.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import apsw
import msgspec

from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.errors import NotFound
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.providers.contract.common import Handle
from remuda.providers.contract.provider import EventSubject
from remuda.providers.simulated.catalogue import SimCatalogue
from remuda.providers.simulated.database import CloudDatabase, ShouldAnnounce
from remuda.providers.simulated.faults import (
    CloudFailed,
    Fault,
    FaultBounds,
    Faults,
    Latency,
    NoFaults,
    RateLimited,
    StaleReads,
)
from remuda.providers.simulated.timers import Timers

T = TypeVar("T")


class EffectBatch:
    """Batch of the writes of one event-loop iteration: one commit, in which each write is atomic by itself."""

    def __init__(self, timers: Timers, storage: CloudDatabase, *, should_announce: ShouldAnnounce) -> None:
        self._timers, self._storage, self._should_announce = timers, storage, should_announce
        self._pending: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    @property
    def is_busy(self) -> bool:
        return bool(self._pending)

    async def run(self, effect: Callable[[], T]) -> T:
        """Run a write in the commit at the end of this iteration. It is done even if the caller is cancelled."""
        loop = asyncio.get_running_loop()
        if not self._pending:
            loop.call_soon(self._commit)
        future: asyncio.Future[T | Exception] = loop.create_future()
        self._pending.append((effect, future))
        outcome = await future
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _commit(self) -> None:
        pending, self._pending = self._pending, []
        for (_, future), outcome in zip(pending, self._outcomes([effect for effect, _ in pending]), strict=True):
            if not future.done():
                future.set_result(outcome)

    def _outcomes(self, effects: Sequence[Callable[[], Any]]) -> Sequence[Any]:
        try:
            self._timers.apply_due()
            return self._storage.write_all(effects, should_announce=self._should_announce)
        except Exception as error:  # noqa: BLE001  every caller gets it as the outcome
            return [error] * len(effects)


_LOG_BYTES = 4 * 2**20


class DiskSync:
    """Durability of committed writes in an open file.

    Commits do not wait for the disk, because they happen on the event loop. A response does: it is returned after a
    sync of the write-ahead log that began after its commit. The sync runs in a thread and serves all waiting responses.
    The same thread moves the log into the database file.
    """

    def __init__(self, path: Path, *, sync: Callable[[int], None] = os.fsync) -> None:
        self._sync = sync
        self._log = os.open(path.with_name(path.name + "-wal"), os.O_RDWR)
        self._checkpointer = apsw.Connection(str(path))
        self._checkpointer.pragma("synchronous", "normal")
        self._under_way: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        """Wait until everything that is committed now would survive a power failure."""
        # A sync in progress may have begun before our commit: only the next one is sure to include it.
        if self._next is None:
            self._next = asyncio.create_task(self._sync_after(self._under_way), name="cloud sync")
        await asyncio.shield(self._next)

    async def close(self) -> None:
        """Wait for the last sync, and close the file."""
        left = [task for task in (self._under_way, self._next) if task is not None]
        if left:
            await asyncio.wait(left)
        self._checkpointer.close()
        os.close(self._log)

    async def _sync_after(self, earlier: "asyncio.Task[None] | None") -> None:
        if earlier is not None:
            await asyncio.wait((earlier,))
        self._under_way, self._next = self._next, None
        await asyncio.to_thread(self._write_back)

    def _write_back(self) -> None:
        self._sync(self._log)
        if os.fstat(self._log).st_size > _LOG_BYTES:
            self._checkpointer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)


Page = tuple[Sequence[T], Any]

PAGE_SIZE = 500


@dataclass(slots=True, kw_only=True)
class Gateway:
    """Entry point of all calls to the simulated cloud."""

    clock: Clock
    randomness: Randomness
    storage: CloudDatabase
    timers: Timers
    latency: Latency
    faults: Faults
    bounds: FaultBounds
    stale_reads: StaleReads
    disk: DiskSync | None = None
    """Set if responses wait until their writes are durable."""
    _under_way: dict[asyncio.Task[Any], None] = field(default_factory=dict, init=False)  # a dict, to keep the order
    _is_faultless: bool = field(init=False)
    _is_immediate: bool = field(init=False)
    _batch: EffectBatch = field(init=False)

    def __post_init__(self) -> None:
        self._is_faultless = isinstance(self.faults, NoFaults)
        self._is_immediate = self._is_faultless and self.latency.is_zero and self.disk is None
        self._batch = EffectBatch(self.timers, self.storage, should_announce=self._should_announce)
        if not self._is_faultless:
            self.storage.before_change = self.stale_reads.remember

    @property
    def lag_s(self) -> float:
        return 0.0 if self._is_faultless else self.bounds.stale_s

    @property
    def is_busy(self) -> bool:
        return bool(self._under_way) or self._batch.is_busy

    async def write(self, method: str, effect: Callable[[], T]) -> T:
        if self._is_immediate:
            return await self._batch.run(effect)
        task = asyncio.create_task(self._work(method, effect), name=f"cloud {method}")
        self._under_way[task] = None
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def record_created(self, subject: EventSubject, handle: Handle) -> None:
        if not self._is_faultless and self._fires("not_visible_yet", subject):
            self.stale_reads.hide(subject, handle)

    async def read(self, method: str, read: Callable[[], T]) -> T:
        await self._begin(method)
        self.timers.apply_due()
        return read()

    async def find(
        self, method: str, subject: EventSubject, handle: Handle, read: Callable[[Handle], T | None]
    ) -> T | None:
        await self._begin(method)
        self.timers.apply_due()
        found = read(handle)
        if self._is_faultless:
            return found
        return self.stale_reads.visible(subject, handle, found, is_stale=self._fires("stale", method))  # type: ignore[no-any-return]  # it has the type that `read` returns

    async def pages(
        self,
        method: str,
        subject: EventSubject,
        page: Callable[[Any], Page[T]],
        handle_of: Callable[[T], Handle],
        show: Callable[[Any], T] = lambda item: item,
    ) -> AsyncIterator[Sequence[T]]:
        """Yield all objects of a kind.

        `page` reads those after a position, and returns them with the next position or None.

        `show` converts what a read of one object returns into an entry of the list.
        """
        is_stale = self._fires("stale", method)
        position = None
        while True:
            await self._begin(method)
            self.timers.apply_due()
            objects, position = page(position)
            if not self._is_faultless:
                present: dict[Handle, Any] = {handle_of(item): item for item in objects}
                if is_stale and position is None:
                    present.update(dict.fromkeys(self.stale_reads.removed(subject)))
                objects = [show(item) for item in self.stale_reads.rows(subject, present, is_stale=is_stale)]
                objects += objects[:1] if self._fires("duplicate_rows", method) else []
            yield objects
            if position is None:
                return
            await yield_to_loop()

    async def close(self) -> None:
        """Cancel the writes that have not been done."""
        left = list(self._under_way)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)

    def _commit_write(self, effect: Callable[[], T]) -> T:
        self.timers.apply_due()
        return self.storage.write(effect, should_announce=self._should_announce)

    def _should_announce(self, result: object) -> bool:
        """Return whether a change is announced: not if its response shows the object and is sure to arrive."""
        return result is None or not self._is_faultless

    async def _work(self, method: str, effect: Callable[[], T]) -> T:
        await self._begin(method)
        result = self._commit_write(effect)
        if self.disk is not None:
            await self.disk.wait()
        if self._fires("error_after_write", method):
            raise CloudFailed
        if self._fires("timeout_after_write", method):
            await self.clock.sleep(self.bounds.lost_response_s)
        return result

    async def _begin(self, method: str) -> None:
        if self._is_immediate:
            return
        pause_s = self.latency.of(method, self.randomness)
        if self._fires("slow", method):
            pause_s += self.randomness.uniform(0, self.bounds.slow_s)
        if pause_s > 0:
            await self.clock.sleep(pause_s)
        if self._fires("rate_limited", method):
            raise RateLimited
        if self._fires("error", method):
            raise CloudFailed

    def _fires(self, fault: Fault, method: str) -> bool:
        if self._is_faultless:
            return False
        return any([self.faults.fires(f"cloud.{fault}"), self.faults.fires(f"cloud.{fault}.{method}")])

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._under_way.pop(task, None)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it: a waiting caller gets it anyway


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudContext:
    """Dependencies of every capability of the simulated cloud."""

    catalogue: SimCatalogue
    storage: CloudDatabase
    timers: Timers
    gateway: Gateway
    randomness: Randomness
    sealer: Sealer


encode: Callable[[Any], bytes] = msgspec.msgpack.Encoder().encode


class DocumentTable(Generic[T]):
    """Table of documents, one for each handle."""

    def __init__(self, storage: CloudDatabase, table: str, kind: str, document: type[T]) -> None:
        self._storage, self._kind = storage, kind
        self._decode = msgspec.msgpack.Decoder(document).decode
        self._find = f"SELECT document FROM {table} WHERE tenancy = ? AND name = ?"  # noqa: S608  the table name is a constant
        self._list = (
            f"SELECT tenancy, name, document FROM {table} WHERE (tenancy, name) > (?, ?) "  # noqa: S608  same
            f"ORDER BY tenancy, name LIMIT {PAGE_SIZE}"
        )
        self._remove = f"DELETE FROM {table} WHERE tenancy = ? AND name = ?"  # noqa: S608  same

    def read(self, handle: Handle) -> T | None:
        row = self._storage.row(self._find, (handle.tenancy, handle.name))
        return None if row is None else self._decode(row[0])

    def get(self, handle: Handle) -> T:
        """Return a document, or raise NotFound."""
        found = self.read(handle)
        if found is None:
            raise NotFound(self._kind, handle.name)
        return found

    def page(self, position: Any) -> tuple[list[T], Any]:
        """Return the documents after a position, and the position of the last one if there may be more."""
        rows = self._storage.rows(self._list, position or ("", ""))
        return [self._decode(row[2]) for row in rows], rows[-1][:2] if len(rows) == PAGE_SIZE else None

    def remove(self, handle: Handle) -> None:
        self._storage.run(self._remove, (handle.tenancy, handle.name))
