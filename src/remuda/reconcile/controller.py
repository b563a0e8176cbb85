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

Workers: take keys from a queue and have each looked after, whatever comes of it.

One term of control: from when a process leads until it no longer does, or is stopped.

The driver: joins sources, queue and workers into a controller.

A reconciler is a function of a key and nothing else: it reads, does at most one effect, and returns a result. Whatever
it raises is contained, told in the log with all that is known, and to the world only as having failed. While the
process leads, sources and full scans fill the queue and workers empty it; when it no longer leads, all of that ends at
once. Every object is looked at when control begins or a source has missed something, those that are unsettled first,
and again now and then: such a scan must find nothing to do, and where it does, an event was lost, which is counted as
the bug it is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from structlog.contextvars import bind_contextvars

from remuda.kernel.clock import let_others_run
from remuda.kernel.errors import Conflict, RemudaError
from remuda.reconcile.deletion_guard import Breaker
from remuda.reconcile.ports import DriverSettings, ReconcilePorts
from remuda.reconcile.queue import Item, Queue, Rank
from remuda.reconcile.reporter import PassOutcome, tell
from remuda.reconcile.results import Again, Blocked, Cause, Failed, Result, Run
from remuda.reconcile.resync import Finds, Scan
from remuda.reconcile.sources import Source, Watcher
from remuda.store.background import Duties
from remuda.store.objects import Resource

LookAfter = Callable[[str, Item], Awaitable[None]]
"""Works on one key and tells the queue when it has finished. It should contain every error."""

_AFTER_FAULT_S = 60.0


class Workers:
    """Some tasks that empty one queue."""

    def __init__(self, count: int, queue: Queue, look_after: LookAfter, *, name: str) -> None:
        self._queue = queue
        self._look_after = look_after
        self._tasks = [asyncio.create_task(self._work(), name=f"{name}-{number}") for number in range(count)]

    async def stop(self, *, grace_s: float) -> None:
        """Take nothing new, let what is under way end within the grace, and cancel what has not."""
        self._queue.close()
        if grace_s > 0:
            await asyncio.wait(self._tasks, timeout=grace_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self) -> None:
        while (taken := await self._queue.take()) is not None:
            key, item = taken
            try:
                await self._look_after(key, item)
            except Exception:  # noqa: BLE001  a fault around a pass must end neither the worker nor its key
                structlog.get_logger().exception("worker failed", key=key)
                if self._queue.is_out(key):
                    self._queue.finish(key, again_s=_AFTER_FAULT_S, has_failed=True)
            # A pass that finds nothing to do waits for nothing, and there may be thousands of them.
            await let_others_run()


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


class Term:
    """Sources and scans fill a queue, workers empty it. It begins when it is made."""

    def __init__(
        self, kind: type[Resource], sources: Sequence[Source[Any]], passes: Passes, breakers: Sequence[Breaker]
    ) -> None:
        ports, settings, name = passes.ports, passes.settings, passes.name
        self.queue = Queue(ports.clock)
        self.scan = Scan(kind, ports.store, self.queue, ports.clock, settings.scan, self._scanned)
        self._passes = passes
        self._finds = Finds(self._found)
        self._deaf = set(range(len(sources)))
        """Which sources do not watch yet."""
        self._duties = Duties(ports.clock)
        for number, source in enumerate(sources):
            watcher = Watcher(source, ports.store, self._add, began=partial(self._hears, number))
            self._duties.start(f"{name} watches {source.kind.__name__}", watcher.run)
        self._duties.start(f"{name} scans", partial(self.scan.keep, ports.randomness))
        for breaker in breakers:
            self._duties.start(f"{name} reports its breaker", breaker.report)
        self._workers = Workers(settings.workers, self.queue, self._look_after, name=passes.name)

    async def end(self, *, grace_s: float) -> None:
        """Stop control. Passes under way may finish within the grace; without one they are cancelled at once."""
        await self._workers.stop(grace_s=grace_s)
        await self._duties.stop()
        self._finds.close()

    def wake(self, key: str) -> None:
        """Look at a key that no source has named."""
        self._add(key, "event", Rank.ROUTINE)

    def _add(self, key: str, cause: Cause, rank: Rank) -> None:
        self._finds.explain(key)
        self.queue.add(key, cause, rank)

    def _hears(self, number: int) -> None:
        """A source watches from now on: as soon as all do, look at everything, since what went before nobody told."""
        self._deaf.discard(number)
        if not self._deaf:
            self.scan.ask()

    def _scanned(self, keys: int) -> None:
        tell(self._passes.ports.reporter.scanned, self._passes.name, keys)

    def _found(self, run: Run) -> None:
        tell(self._passes.ports.reporter.scan_found, run)

    async def _look_after(self, key: str, item: Item) -> None:
        ports = self._passes.ports
        if not ports.leader.is_leading:
            self.queue.finish(key)  # whoever leads now looks at everything
            return
        run, began = self._passes.begin(key, item), ports.clock.monotonic()
        ending = await self._passes.perform(run, failures=self.queue.failures(key))
        came_again = self.queue.finish(key, again_s=ending.pause_s, has_failed=ending.has_failed)
        tell(ports.reporter.finished, run, ending.outcome, ports.clock.monotonic() - began)
        if ending.has_failed:
            tell(ports.reporter.retried, run, ending.pause_s or 0.0)
        if run.acted and item.cause == "scan" and item.was_idle and not came_again:
            self._finds.suspect(run)


class Driver:
    """One controller. Construct it, `start` it, and `stop` it before its store is closed."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        kind: type[Resource],
        ports: ReconcilePorts,
        sources: Sequence[Source[Any]] = (),
        breakers: Sequence[Breaker] = (),
        settings: DriverSettings | None = None,
    ) -> None:
        """Control objects of `kind`, whose names are the keys. Without sources it is woken by its own kind alone.

        What `breakers` have stopped is reported whenever control begins.
        """
        self.name = name
        self._kind = kind
        self._ports = ports
        self._sources = tuple(sources) or (Source(kind),)
        if not any(source.kind is kind for source in self._sources):
            raise ValueError(f"the sources of {name} must watch its own kind, {kind.__name__}, as well")
        self._breakers = tuple(breakers)
        self._settings = settings or DriverSettings()
        self._passes = Passes(name, reconcile, ports, self._settings)
        self._control: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        """Who starts or stops it waits for whoever does so already: of two at once, one would forget a task."""
        self._term: Term | None = None
        tell(ports.reporter.opened, name, depth=lambda: self.depth, oldest_s=self.oldest_s)

    @property
    def depth(self) -> int:
        """How many keys wait for a worker."""
        return self._term.queue.depth if self._term else 0

    @property
    def has_begun(self) -> bool:
        """It controls, and every object that cannot wait was handed out once."""
        return self._term is not None and self._term.scan.has_begun

    @property
    def is_quiet(self) -> bool:
        """It controls, what cannot wait was handed out once, and no key waits for a worker or is with one."""
        return self._term is not None and self._term.scan.has_begun and self._term.queue.is_quiet

    def oldest_s(self) -> float:
        """Return for how long the key that came first has waited for a worker."""
        return self._term.queue.oldest_s() if self._term else 0.0

    async def start(self) -> None:
        """Control whenever this process leads."""
        async with self._turn:
            if self._control is None:
                self._control = asyncio.create_task(self._lead(), name=f"driver {self.name}")

    async def stop(self) -> None:
        """End: passes under way may finish within the grace. If it is cancelled itself, call it again."""
        async with self._turn:
            if self._control is not None:
                self._control.cancel()
                await asyncio.gather(self._control, return_exceptions=True)
                self._control = None
            await self._end_term(grace_s=self._settings.grace_s)

    def wake(self, key: str) -> None:
        """Look at a key now, because something happened that no watch can tell, such as the end of a late call."""
        if self._term is not None:
            self._term.wake(key)

    async def scan(self) -> int:
        """Do a full scan now, as fast as workers go, and return how many keys were handed out."""
        return await self._term.scan.once("scan") if self._term else 0

    async def _lead(self) -> None:
        while True:
            await self._ports.leader.won()
            self._term = Term(self._kind, self._sources, self._passes, self._breakers)
            await self._ports.leader.lost()
            await self._end_term(grace_s=0)

    async def _end_term(self, *, grace_s: float) -> None:
        if self._term is not None:
            await self._term.end(grace_s=grace_s)
            self._term = None
