"""Writer with group commit: concurrent writes share one commit and one flush.

Requests queue up while a commit runs. The next batch is built from them on the event loop, in slices short enough for
other tasks, and committed in an executor. Callers get their result or rejection only when the state it is based on is
durable. A failing disk fails the batch, never the store: the next batch tries again.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import apsw

from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError, StoreClosed
from remuda.store.readside.sql import storage_error
from remuda.store.sqlite.batch import Batch, WriteSide
from remuda.store.sqlite.executor import Executor

ResultT = TypeVar("ResultT")
Apply = Callable[[Batch], Any]

_SLICE_S = 0.005
_BATCH_REQUESTS = 512
_BATCH_BYTES = 16 << 20
"""Size of the changes after which a batch takes no more requests: it is what a commit adds to the log at once."""
_MAX_WAIT_ITERATIONS = 8
"""Maximum iterations of the event loop for which a batch waits for more requests. More bring no benefit."""

CHECKPOINT_PAGES = 8_000
"""Pages of the write-ahead log after which they are moved into the file: 64 MiB, so that a page that is written
repeatedly is moved once. More would take longer to read after a crash, and saves little.
"""


class _Request:
    """A write, its caller's future, and its outcome."""

    __slots__ = ("apply", "error", "future", "result")

    def __init__(self, apply: Apply, future: asyncio.Future[Any]) -> None:
        self.apply, self.future = apply, future
        self.result: Any = None
        self.error: Exception | None = None

    def resolve(self, error: Exception | None = None) -> None:
        """Resolve the caller's future, if it still waits."""
        error = error or self.error
        if self.future.done():
            return
        if error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(error)


class Writer:
    """Applies and commits all writes of a store."""

    def __init__(
        self, side: WriteSide, horizon: tuple[int, int], *, executor: Executor, clock: Clock, path: str
    ) -> None:
        self.version, self.floor = horizon
        self._loop = asyncio.get_running_loop()
        self._side = side
        self._connection = side.tables.connection
        self._executor, self._clock, self._path = executor, clock, path
        self._queue: deque[_Request] = deque()
        self._taken: list[_Request] = []
        self._last_batch_size = 0
        self._batch: Batch | None = None
        self._is_scheduled = False
        self._is_closed = False
        self._idle: asyncio.Future[None] | None = None
        self._log_pages = 0
        self._connection.set_wal_hook(self._measure)

    def submit(self, apply: Callable[[Batch], ResultT]) -> asyncio.Future[ResultT]:
        """Apply a rule in the next batch; the result is available when it is durable."""
        if self._is_closed:
            raise StoreClosed(self._path)
        future: asyncio.Future[ResultT] = self._loop.create_future()
        self._queue.append(_Request(apply, future))
        self._schedule()
        return future

    @property
    def pending(self) -> int:
        """Number of writes that are not durable yet."""
        return len(self._queue) + len(self._taken)

    async def close(self) -> None:
        """Accept no more writes, and return when none is pending."""
        self._is_closed = True
        while self._queue or self._batch is not None:
            self._idle = self._idle or self._loop.create_future()
            await asyncio.shield(self._idle)

    def _schedule(self) -> None:
        """Build a batch in a few iterations of the loop, so that the callers of the last batch can join it."""
        if self._batch is None and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._wait_for_requests, min(self._last_batch_size, _MAX_WAIT_ITERATIONS))

    def _wait_for_requests(self, iterations: int) -> None:
        if iterations > 1:
            self._loop.call_soon(self._wait_for_requests, iterations - 1)
        else:
            self._begin()

    def _begin(self) -> None:
        self._is_scheduled = False
        if self._batch is not None or not self._queue:
            return
        self._taken = []
        self._batch = Batch(self._side, version=self.version, floor=self.floor, now=self._clock.now())
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except apsw.Error as error:
            self._fail(error)
            return
        self._fill(self._batch)

    def _fill(self, batch: Batch) -> None:
        """Apply requests until there are no more, or until this time slice is used up."""
        until = self._clock.monotonic() + _SLICE_S
        try:
            while self._step(batch):
                if self._clock.monotonic() > until:
                    self._loop.call_soon(self._fill, batch)
                    return
            self._commit(batch)
        except apsw.Error as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001  a request was applied in part: only that one fails
            self._reject_last(error)

    def _step(self, batch: Batch) -> bool:
        if batch.has_work():
            batch.work()
        elif self._queue and len(self._taken) < _BATCH_REQUESTS and batch.bytes < _BATCH_BYTES:
            self._take(batch, self._queue.popleft())
        else:
            return False
        return True

    def _take(self, batch: Batch, request: _Request) -> None:
        if request.future.cancelled():
            return
        self._taken.append(request)
        changes = self._connection.total_changes()
        request.error = None
        try:
            request.result = request.apply(batch)
        except RemudaError as rejection:
            if self._connection.total_changes() != changes:
                raise
            batch.drop_work()
            request.error = rejection

    def _commit(self, batch: Batch) -> None:
        if not batch.is_dirty:
            self._connection.execute("ROLLBACK")
            self._resolve_all()
            self._finish()
            return
        self._side.tables.set_version(batch.version)
        self._side.reader.pin()
        self._executor.submit(self._flush, lambda error: self._committed(batch, error))

    def _flush(self) -> None:
        """Wait for the disk. The only line of the writer that runs off the event loop."""
        self._connection.execute("COMMIT")

    def _measure(self, _: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _committed(self, batch: Batch, error: BaseException | None) -> None:
        self._side.reader.unpin()
        if error is not None:
            self._fail(error)
            return
        self.version = batch.version
        self._side.names.commit()
        batch.publish()
        if batch.floor > self.floor:
            self._raise_floor(batch.floor)
        self._resolve_all()
        if self._log_pages > CHECKPOINT_PAGES:
            self._executor.submit(self._checkpoint, lambda _: self._finish())
        else:
            self._finish()

    def _raise_floor(self, floor: int) -> None:
        self.floor = floor
        for feed in self._side.reader.feeds():
            feed.compact(floor)

    def _free(self, memory: list[object]) -> None:
        """Free the memory of a batch, a little at a time: after a long cascade it is much."""
        del memory[-_BATCH_REQUESTS:]
        if memory:
            self._loop.call_soon(self._free, memory)

    def _checkpoint(self) -> None:
        """Move the write-ahead log into the file. No snapshot is pinned now, so the log can restart after it."""
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _fail(self, error: BaseException) -> None:
        """Fail all requests of this batch, none of which was applied."""
        self._roll_back()
        if not self._taken:
            self._taken = [self._queue.popleft() for _ in range(min(len(self._queue), _BATCH_REQUESTS))]
        self._resolve_all(storage_error(self._path, error))
        self._finish()

    def _reject_last(self, error: Exception) -> None:
        """Roll back the batch because of its last request, and try the others again without it."""
        self._roll_back()
        *others, culprit = self._taken
        culprit.resolve(error)
        self._queue.extendleft(reversed(others))
        self._taken = []
        self._finish()

    def _roll_back(self) -> None:
        self._side.names.roll_back()
        with contextlib.suppress(apsw.Error):  # if that fails, so does the next BEGIN, which comes here again
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _resolve_all(self, error: Exception | None = None) -> None:
        taken, self._taken = self._taken, []
        self._last_batch_size = len(taken)
        for request in taken:
            request.resolve(error)

    def _finish(self) -> None:
        if self._batch is not None:
            self._loop.call_soon(self._free, self._batch.entries())
        self._batch = None
        if self._queue:
            self._schedule()
        elif self._idle is not None:
            self._idle.set_result(None)
            self._idle = None
