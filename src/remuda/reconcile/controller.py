"""Passes: run a reconciler once, contain what it raises, and decide when its key is looked at again.

::

    result or error      next look                                     what is said
    Done                 at the next event
    Again                after the time it asks for
    Blocked              at the next event, or now and then
    Failed               after a growing pause
    Conflict             very soon: somebody else wrote first          nothing, it is no trouble
    an error to retry    after a growing pause                         a line in the log
    past its deadline    after a growing pause                         a line in the log
    any other error      after a growing pause                         all that is known, in the log
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from structlog.contextvars import bind_contextvars

from remuda.kernel.errors import Conflict, RemudaError
from remuda.reconcile.ports import DriverSettings, ReconcilePorts
from remuda.reconcile.queue import Item
from remuda.reconcile.reporter import PassOutcome
from remuda.reconcile.results import Again, Blocked, Failed, Result
from remuda.reconcile.run import Run

Reconcile = Callable[[str, Run], Awaitable[Result]]
"""Looks after one key. It reads, does at most one effect, and waits for nothing."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a pass ended."""

    outcome: PassOutcome
    pause_s: float | None = None
    """After how long to look again, if nothing happens before."""
    has_failed: bool = False


_DONE = Ending("done")


class Passes:
    """The passes of one controller."""

    def __init__(self, name: str, reconcile: Reconcile, ports: ReconcilePorts, settings: DriverSettings) -> None:
        self.name = name
        self.ports = ports
        self.settings = settings
        self._reconcile = reconcile

    def begin(self, key: str, item: Item) -> Run:
        """Return a new pass, whose id from now on is in the log lines of the present task."""
        store, randomness = self.ports.store, self.ports.randomness
        run = Run(controller=self.name, key=key, cause=item.cause, registry=store.registry, randomness=randomness)
        bind_contextvars(reconcile_id=run.id)
        return run

    async def perform(self, run: Run, *, failures: int) -> Ending:
        """Look after the key once. Nothing is raised but the cancellation of the task that calls."""
        timer = asyncio.timeout(self.settings.deadline_s)
        try:
            async with timer:
                result = await self._reconcile(run.key, run)
        except asyncio.CancelledError:
            if _is_ending():
                raise
            ending = self._broken(run, failures)  # something that it awaited was cancelled, which is no order to us
        except Exception as error:  # noqa: BLE001  whatever it was, the other keys go on
            ending = self._late(run, failures) if timer.expired() else self._raised(error, run, failures)
        else:
            ending = self._ended(result, failures)
        if run.wake_s is not None and (ending.pause_s is None or run.wake_s < ending.pause_s):
            return Ending(ending.outcome, run.wake_s, ending.has_failed)
        return ending

    def _ended(self, result: Result, failures: int) -> Ending:
        match result:
            case Again():
                return Ending("again", result.after_s)
            case Blocked():
                return Ending("blocked", self.ports.randomness.uniform(*self.settings.blocked_within_s))
            case Failed():
                return self._failed("failed", failures)
        return _DONE

    def _raised(self, error: Exception, run: Run, failures: int) -> Ending:
        if isinstance(error, Conflict):
            pause_s = self.settings.conflict_backoff.pause_s(failures + 1, self.ports.randomness)
            return Ending("conflict", pause_s, has_failed=True)
        if isinstance(error, RemudaError) and error.retry:
            run.log.warning("pass put off", cause=error.sentence)
            return self._failed("unavailable", failures)
        return self._broken(run, failures)

    def _late(self, run: Run, failures: int) -> Ending:
        run.log.warning("pass cut off", deadline_s=self.settings.deadline_s)
        return self._failed("late", failures)

    def _broken(self, run: Run, failures: int) -> Ending:
        run.log.exception("pass failed")  # noqa: LOG004  every caller handles an exception
        return self._failed("failed", failures)

    def _failed(self, outcome: PassOutcome, failures: int) -> Ending:
        pause_s = self.settings.backoff.pause_s(failures + 1, self.ports.randomness)
        return Ending(outcome, pause_s, has_failed=True)


def _is_ending() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
