"""Recovery: undoes what a process that is gone has left open.

Every open operation that nobody works on is turned to undoing by compare-and-swap and undone. Where this process is
the only one (embedded), those are all that it does not have in hand. Where others may live, it is those of its own boot
that it does not have in hand, and those of others once their deadline and the grace have passed: a living run ends
before that, and one that slept through it loses the swap and answers 503.
"""

from collections import Counter
from datetime import timedelta

from remuda.kernel.errors import Conflict, NotFound
from remuda.operations.kinds import CLOSED, OPEN, Operation, Phase
from remuda.operations.operations import Operations

__all__ = ["Recovery"]

_PAGE = 200
_FORGET_EVERY_S = 3600.0
_BREATH_S = 0.05


class Recovery:
    """Looks after the operations that nobody works on."""

    def __init__(self, operations: Operations, *, is_alone: bool) -> None:
        self._operations = operations
        self._is_alone = is_alone
        """No other process uses this store."""

    async def keep(self) -> None:
        """Look at once and then now and then, for ever: a duty."""
        while True:
            await self.recover()
            await self._operations.clock.sleep(self._operations.settings.look_s)

    async def recover(self) -> None:
        """Look once; return when everything that was found has been tried once."""
        counts: Counter[tuple[str, Phase]] = Counter()
        after: str | None = None
        while True:
            page = await self._operations.store.list(Operation, index=OPEN, limit=_PAGE, after=after)
            counts.update((each.spec.saga, each.phase) for each in page.items)
            await self._take_over([each for each in page.items if self._is_left(each)])
            after = page.next
            if after is None:
                break
        self._operations.reporter.open(counts)

    async def keep_forgetting(self) -> None:
        """Forget at once and then now and then, for ever: a duty."""
        while True:
            await self.forget()
            await self._operations.clock.sleep(_FORGET_EVERY_S)

    async def forget(self) -> None:
        """Delete the records that closed longer ago than they are kept."""
        operations = self._operations
        before = operations.clock.now() - operations.settings.retention
        after: str | None = None
        while True:
            page = await operations.store.list(Operation, index=CLOSED, limit=_PAGE, after=after)
            for each in page.items:
                if each.status.closed is not None and each.status.closed < before:
                    await self._delete(each)
            after = page.next
            if after is None:
                return
            await operations.clock.sleep(_BREATH_S)

    async def _take_over(self, left: list[Operation]) -> None:
        together = self._operations.settings.together
        for start in range(0, len(left), together):
            runs = [await self._operations.take_over(each) for each in left[start : start + together]]
            for run in runs:
                if run is not None:
                    await run.tried.wait()

    def _is_left(self, operation: Operation) -> bool:
        if operation.name in self._operations.in_hand:
            return False
        if self._is_alone or operation.spec.process == self._operations.process:
            return True
        due = max(operation.spec.deadline, operation.status.next_try or operation.spec.deadline)
        return self._operations.clock.now() > due + timedelta(seconds=self._operations.settings.grace_s)

    async def _delete(self, operation: Operation) -> None:
        try:
            await self._operations.store.delete(Operation, operation.name, uid=operation.uid, version=operation.version)
        except (NotFound, Conflict):
            return  # somebody else was faster
