"""Recovery: undoes the open operations of processes that are gone.

Every open operation that no process works on is turned to undoing by compare-and-swap and undone. Of the sagas that are
bound here,

- those of this very `Operations` instance that it is not running are taken over at once;
- if this process is the only one (embedded), so are all others that it is not running: a saga belongs to one
 `Operations` instance of a process, so no other instance runs them;
- if there may be other processes, theirs are taken over once their deadline and the grace period have passed: a live
 run ends before that, and one that was suspended loses the compare-and-swap and responds 503.

A saga that is not bound here belongs to another service, which undoes it, or to a former release. If there may be other
processes, it is only logged and counted. Otherwise it is marked as stuck, so that an operator notices; but only after
two grace periods since the start, in which another service of this process may have taken it.

A record that cannot be read is logged, counted and skipped.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog

from remuda.kernel.errors import Conflict, NotFound, Unreadable
from remuda.operations.kinds import CLOSED, OPEN, OPEN_PHASES, Obstacle, Operation, Phase
from remuda.operations.runner import ObstructedError
from remuda.operations.service import Operations

_PAGE = 100
_RETENTION_INTERVAL_S = 3600.0
_PAGE_PAUSE_S = 0.05


@dataclass
class _Scan:
    """The findings of one scan so far."""

    open: Counter[tuple[str, Phase]] = field(default_factory=Counter)
    obstructed: dict[str, Obstacle] = field(default_factory=dict)
    """The operations that cannot be undone here, with the obstacle."""
    attempts: set[asyncio.Future[None]] = field(default_factory=set)
    """The first attempts that are running."""


class OperationRecovery:
    """Undoes the operations that no process works on."""

    def __init__(self, operations: Operations, *, is_only_process: bool) -> None:
        self._operations = operations
        self._is_only_process = is_only_process
        """Whether no other process uses this store."""
        self._began = operations.clock.now()
        self._last = _Scan()

    async def run(self) -> None:
        """Background task: scan at once and then at an interval, until stopped."""
        while True:
            await self.recover()
            await self._operations.clock.sleep(self._operations.settings.recovery_interval_s)

    async def recover(self) -> None:
        """Scan once; return when every operation that was found has been attempted once."""
        scan = _Scan()
        await self._each(OPEN, partial(self._examine, scan))
        if scan.attempts:
            await asyncio.wait(scan.attempts)
        self._last = scan
        self._operations.reporter.open(scan.open)
        self._operations.reporter.obstructed(scan.obstructed, self._operations.sagas)

    async def run_retention(self) -> None:
        """Background task: delete old records at once and then at an interval, until stopped."""
        while True:
            await self.delete_old()
            await self._operations.clock.sleep(_RETENTION_INTERVAL_S)

    async def delete_old(self) -> None:
        """Delete the closed records whose retention has passed."""
        before = self._operations.clock.now() - self._operations.settings.retention
        unreadable: list[str] = []
        await self._each(CLOSED, partial(self._delete_closed, before, unreadable))
        if unreadable:
            structlog.get_logger().warning(
                "closed operations cannot be read and are kept", count=len(unreadable), operation=unreadable[0]
            )

    async def _each(self, index: tuple[str, str], act: Callable[[str], Awaitable[None]]) -> None:
        after: str | None = None
        while True:
            page = await self._operations.store.list_names(Operation, index=index, limit=_PAGE, after=after)
            for name in page.items:
                await act(name)
            after = page.next
            if after is None:
                return
            await self._operations.clock.sleep(_PAGE_PAUSE_S)

    async def _examine(self, scan: _Scan, name: str) -> None:
        try:
            operation = await self._operations.journal.read(name)
        except NotFound:
            return
        except Unreadable as error:
            self._record_obstacle(scan, name, "unreadable", error.message)
            return
        if not operation.is_open:
            return  # closed since the page was read
        scan.open[operation.spec.saga, operation.phase] += 1
        if self._is_orphaned(operation):
            await self._take_over(scan, operation)

    async def _take_over(self, scan: _Scan, operation: Operation) -> None:
        try:
            scan.attempts.add(self._operations.take_over(operation).attempted)
        except ObstructedError as error:
            self._record_obstacle(scan, operation.name, error.obstacle, error.failure.message)
            await self._mark_stuck(operation, error)
        if len(scan.attempts) >= self._operations.settings.concurrency:
            _, scan.attempts = await asyncio.wait(scan.attempts, return_when=asyncio.FIRST_COMPLETED)

    def _is_orphaned(self, operation: Operation) -> bool:
        operations = self._operations
        if operations.is_stopping or operation.name in operations.running:
            return False
        is_known = operations.sagas.get(operation.spec.saga) is not None
        if is_known and (self._is_only_process or operation.spec.process == operations.process):
            return True
        grace = timedelta(seconds=operations.settings.grace_s)
        due = max(operation.spec.deadline, operation.status.next_attempt or operation.spec.deadline)
        taken_over_at = due + grace if is_known else max(due, self._began) + 2 * grace
        return operations.clock.now() > taken_over_at

    def _record_obstacle(self, scan: _Scan, name: str, obstacle: Obstacle, message: str) -> None:
        """Record an operation that cannot be undone here, and log it once."""
        scan.obstructed[name] = obstacle
        if self._last.obstructed.get(name) != obstacle:
            structlog.get_logger().error("operation cannot be undone", operation=name, error=message)

    async def _mark_stuck(self, operation: Operation, error: ObstructedError) -> None:
        """Mark an operation that no other process can undo as stuck, once."""
        is_others = error.obstacle == "unknown_saga" and not self._is_only_process
        if not is_others and operation.status.undo_error != error.failure:
            await self._operations.journal.move(operation, "stuck", among=OPEN_PHASES, undo_error=error.failure)

    async def _delete_closed(self, before: datetime, unreadable: list[str], name: str) -> None:
        operations = self._operations
        try:
            found = await operations.journal.read(name)
            if found.status.closed is not None and found.status.closed < before:
                await operations.store.delete(Operation, name, uid=found.uid, version=found.version)
        except Unreadable:
            unreadable.append(name)
        except (NotFound, Conflict):
            return  # another process was first
