"""Sink: the task that copies the audit log of the store to the audit file.

It asks the store for new records once a second, in the order of their commits. The last line of the file says how far
it has got, so after a crash it continues there: no record is lost, and none is written twice. After a backup of the
store was restored, it continues after the last line whose record the store still has; the lines of records that the
restored store does not have stay.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import structlog

from remuda.auditfile.chain import ChainLine, Link
from remuda.auditfile.file import AuditFile
from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError
from remuda.store.background import BackgroundTasks
from remuda.store.logs import StreamReader

T = TypeVar("T")
_STREAM = "audit"
_INTERVAL_S = 1.0
_LINES = 500


@dataclass(frozen=True, slots=True)
class Cursor:
    """The end of the chain, and the position in the log after which to continue."""

    end: Link
    position: int


class RunInThread(Protocol):
    """Runs blocking work in a thread."""

    def __call__(self, work: Callable[[], T]) -> Awaitable[T]:
        """Return the result of the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSink:
    """Copies records from a store to a file."""

    log: StreamReader
    file: AuditFile
    clock: Clock
    run_blocking: RunInThread

    async def run(self) -> None:
        """Copy records until cancelled."""
        cursor = await self.resume()
        while True:
            cursor = await self.copy(cursor)
            await self.clock.sleep(_INTERVAL_S)

    async def resume(self) -> Cursor:
        """Repair the file, and return where to continue."""
        end = await self.run_blocking(self.file.recover)
        return Cursor(end, await self._position_of(end) if end.sequence else 0)

    async def copy(self, cursor: Cursor) -> Cursor:
        """Append all records after a position, and return where to continue."""
        end, position, is_last = cursor.end, cursor.position, False
        while not is_last:
            page = await self.log.read_stream(_STREAM, after=position)
            position, is_last = page.reached, page.is_last
            if page.entries:
                append = partial(self.file.append, end, page.entries)
                end = await self.run_blocking(append)
        return Cursor(end, position)

    async def _position_of(self, end: Link) -> int:
        """Return the position of the last line whose record the store has, or has deleted because of its age."""
        newest = await self.log.newest_position()
        examined = 0
        while lines := await self.run_blocking(partial(self.file.last_lines, skip=examined, count=_LINES)):
            for line in lines:
                if await self._has(line, is_restored=end.position > newest):
                    return line.position
            examined += len(lines)
        return min(end.position, newest)

    async def _has(self, line: ChainLine, *, is_restored: bool) -> bool:
        entry = await self.log.entry_at(_STREAM, line.position)
        if entry is None:
            return not is_restored
        return entry.subject == line.subject and bytes(entry.data) == bytes(line.record)


@asynccontextmanager
async def copying(sink: AuditSink) -> AsyncIterator[None]:
    """Copy records while the block runs, and the last ones after it."""
    tasks = BackgroundTasks(sink.clock)
    tasks.start("audit file", sink.run)
    try:
        yield
    finally:
        await tasks.stop()
        try:
            await sink.copy(await sink.resume())
        except RemudaError as error:
            structlog.get_logger().error("audit file not complete", cause=error.message)
