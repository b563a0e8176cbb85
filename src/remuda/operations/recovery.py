"""Recovery: undoes what a process that is gone has left open.

Every open operation that nobody works on is turned to undoing by compare-and-swap and undone. Of the sagas that are
bound here,

- those of this very `Operations` that it does not have in hand are taken over at once;
- where this process is the only one (embedded), so are all others that it does not have in hand: a saga belongs to one
  `Operations` of a process, so nobody else has them;
- where others may live, theirs are taken over once their deadline and the grace have passed: a living run ends before
  that, and one that slept through it loses the swap and answers 503.

A saga that is not bound here is another service's, which undoes it, or one that a former release knew. Nothing is
written on it where others may live: it is told in the log and counted. Alone it is marked as stuck, so that somebody
looks; but only when those who might know it, in this process too, have had two graces of time since the start.

A record that cannot be read is told, counted and left; it holds up nobody.
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
_FORGET_EVERY_S = 3600.0
_BREATH_S = 0.05


@dataclass
class _Look:
    """What one look has found so far."""

    open: Counter[tuple[str, Phase]] = field(default_factory=Counter)
    obstructed: dict[str, Obstacle] = field(default_factory=dict)
    """What keeps us from undoing which operations."""
    tries: set[asyncio.Future[None]] = field(default_factory=set)
    """The first tries that are under way."""


class Recovery:
    """Looks after the operations that nobody works on."""

    def __init__(self, operations: Operations, *, is_alone: bool) -> None:
        self._operations = operations
        self._is_alone = is_alone
        """No other process uses this store."""
        self._began = operations.clock.now()
        self._last = _Look()

    async def keep(self) -> None:
        """Look at once and then now and then, for ever: a duty."""
        while True:
            await self.recover()
            await self._operations.clock.sleep(self._operations.settings.look_s)

    async def recover(self) -> None:
        """Look once; return when everything that was found has been tried once."""
        look = _Look()
        await self._each(OPEN, partial(self._look_at, look))
        if look.tries:
            await asyncio.wait(look.tries)
        self._last = look
        self._operations.reporter.open(look.open)
        self._operations.reporter.obstructed(look.obstructed, self._operations.sagas)

    async def keep_forgetting(self) -> None:
        """Forget at once and then now and then, for ever: a duty."""
        while True:
            await self.forget()
            await self._operations.clock.sleep(_FORGET_EVERY_S)

    async def forget(self) -> None:
        """Delete the records that closed longer ago than they are kept."""
        before = self._operations.clock.now() - self._operations.settings.retention
        unreadable: list[str] = []
        await self._each(CLOSED, partial(self._forget, before, unreadable))
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
            await self._operations.clock.sleep(_BREATH_S)

    async def _look_at(self, look: _Look, name: str) -> None:
        try:
            operation = await self._operations.journal.read(name)
        except NotFound:
            return
        except Unreadable as error:
            self._tell(look, name, "unreadable", error.sentence)
            return
        if not operation.is_open:
            return  # it was when the page was made
        look.open[operation.spec.saga, operation.phase] += 1
        if self._is_left(operation):
            await self._take_over(look, operation)

    async def _take_over(self, look: _Look, operation: Operation) -> None:
        try:
            look.tries.add(self._operations.take_over(operation).tried)
        except ObstructedError as error:
            self._tell(look, operation.name, error.obstacle, error.failure.sentence)
            await self._strand(operation, error)
        if len(look.tries) >= self._operations.settings.together:
            _, look.tries = await asyncio.wait(look.tries, return_when=asyncio.FIRST_COMPLETED)

    def _is_left(self, operation: Operation) -> bool:
        operations = self._operations
        if operations.is_stopping or operation.name in operations.in_hand:
            return False
        is_known = operations.sagas.get(operation.spec.saga) is not None
        if is_known and (self._is_alone or operation.spec.process == operations.process):
            return True
        grace = timedelta(seconds=operations.settings.grace_s)
        due = max(operation.spec.deadline, operation.status.next_try or operation.spec.deadline)
        waited_until = due + grace if is_known else max(due, self._began) + 2 * grace
        return operations.clock.now() > waited_until

    def _tell(self, look: _Look, name: str, obstacle: Obstacle, sentence: str) -> None:
        """Note an operation that we cannot undo, and tell of it once."""
        look.obstructed[name] = obstacle
        if self._last.obstructed.get(name) != obstacle:
            structlog.get_logger().error("operation cannot be undone", operation=name, error=sentence)

    async def _strand(self, operation: Operation, error: ObstructedError) -> None:
        """Mark an operation as stuck that nobody else can undo, once."""
        is_others = error.obstacle == "unknown_saga" and not self._is_alone
        if not is_others and operation.status.undo_error != error.failure:
            await self._operations.journal.move(operation, "stuck", among=OPEN_PHASES, undo_error=error.failure)

    async def _forget(self, before: datetime, unreadable: list[str], name: str) -> None:
        operations = self._operations
        try:
            found = await operations.journal.read(name)
            if found.status.closed is not None and found.status.closed < before:
                await operations.store.delete(Operation, name, uid=found.uid, version=found.version)
        except Unreadable:
            unreadable.append(name)
        except (NotFound, Conflict):
            return  # somebody else was faster
