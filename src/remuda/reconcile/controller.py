"""Controller: joins sources, queue and workers, and runs the reconciler for each key.

A reconciler is a function of a key: it reads, acts, and returns a result. Whatever it raises is contained, logged in
full, and reported to users only as a failure::

   result or error      next reconcile                                logged
   Done                 at the next event
   Requeue              after the requested time
   Blocked              at the next event, or at an interval
   Failed               after a backoff
   Conflict             very soon: there was a concurrent write       no
   an error to retry    after a backoff                               as a warning
   past its deadline    after a backoff                               as a warning
   any other error      after a backoff                               with its traceback

While the process leads, sources and resyncs fill the queue and workers empty it; when it no longer leads, all of that
stops at once. A resync reconciles every object when a term of leadership begins, when a source has missed events, and
at an interval. The latter must find nothing to do: if it does, an event was lost, which is counted as a bug.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from structlog.contextvars import bind_contextvars

from remuda.kernel.clock import yield_to_loop
from remuda.kernel.errors import Conflict, RemudaError
from remuda.kernel.time_limits import TimeLimits
from remuda.reconcile.deletion_guard import DeletionGuard
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.queue import Item, Queue, Rank
from remuda.reconcile.reporter import ReconcileResult, report
from remuda.reconcile.results import Blocked, Cause, Failed, ReconcileContext, Requeue, Result
from remuda.reconcile.resync import LostEvents, Resync
from remuda.reconcile.sources import Source, Watcher
from remuda.store.background import BackgroundTasks
from remuda.store.objects import Resource

ProcessItem = Callable[[str, Item], Awaitable[None]]
"""Processes one key and tells the queue when it has finished. It should contain every error."""

_AFTER_ERROR_S = 60.0


class Workers:
    """The tasks that empty one queue."""

    def __init__(self, count: int, queue: Queue, process_item: ProcessItem, *, name: str) -> None:
        self._queue, self._process_item = queue, process_item
        self._tasks = [asyncio.create_task(self._work(), name=f"{name}-{number}") for number in range(count)]

    async def stop(self, *, grace_s: float) -> None:
        """Accept no more keys, let running reconciles finish within the grace period, and cancel the others."""
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
                await self._process_item(key, item)
            except Exception:  # noqa: BLE001  an error must end neither the worker nor the key
                structlog.get_logger().exception("worker failed", key=key)
                if self._queue.is_taken(key):
                    self._queue.finish(key, requeue_s=_AFTER_ERROR_S, has_failed=True)
            # A reconcile with nothing to do never awaits, and there may be thousands of them.
            await yield_to_loop()


Reconcile = Callable[[str, ReconcileContext], Awaitable[Result]]
"""Reconciles one key. It is idempotent, and requeues what takes time at a provider."""


@dataclass(frozen=True, slots=True)
class ReconcileOutcome:
    """The outcome of a reconcile."""

    outcome: ReconcileResult
    pause_s: float | None = None
    """The delay before the next reconcile, if there is no event before."""
    has_failed: bool = False


_DONE = ReconcileOutcome("done")


class Reconciler:
    """Runs the reconciles of one controller."""

    def __init__(self, name: str, reconcile: Reconcile, ports: ReconcilePorts, settings: ControllerSettings) -> None:
        self.name, self.ports, self.settings = name, ports, settings
        self._limits = TimeLimits(settings.deadline_s)
        self._reconcile = reconcile

    def begin(self, key: str, item: Item, *, failures: int) -> ReconcileContext:
        """Return the context of a new reconcile, and bind its id to the log lines of the current task."""
        store, randomness = self.ports.store, self.ports.randomness
        context = ReconcileContext(
            controller=self.name,
            key=key,
            cause=item.cause,
            registry=store.registry,
            randomness=randomness,
            failures=failures,
        )
        bind_contextvars(reconcile_id=context.id)
        return context

    async def perform(self, context: ReconcileContext) -> ReconcileOutcome:
        """Reconcile a key once. Only a cancellation of the calling task is raised."""
        limit = self._limits.begin()
        try:
            with limit:
                result = await self._reconcile(context.key, context)
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            outcome = self._errored(context)  # something that it awaited was cancelled, not this task
        except Exception as error:  # noqa: BLE001  no error stops the other keys
            outcome = self._timed_out(context) if limit.is_expired else self._raised(error, context)
        else:
            outcome = self._outcome_of(result, context)
        if context.requeue_s is not None and (outcome.pause_s is None or context.requeue_s < outcome.pause_s):
            return ReconcileOutcome(outcome.outcome, context.requeue_s, outcome.has_failed)
        return outcome

    def _outcome_of(self, result: Result, context: ReconcileContext) -> ReconcileOutcome:
        match result:
            case Requeue():
                return ReconcileOutcome("requeue", result.after_s)
            case Blocked():
                return ReconcileOutcome("blocked", self.ports.randomness.uniform(*self.settings.blocked_within_s))
            case Failed():
                return self._failed("failed", context)
        return _DONE

    def _raised(self, error: Exception, context: ReconcileContext) -> ReconcileOutcome:
        if isinstance(error, Conflict):
            pause_s = self.settings.conflict_backoff.pause_s(context.failures + 1, self.ports.randomness)
            return ReconcileOutcome("conflict", pause_s, has_failed=True)
        if isinstance(error, RemudaError) and error.retry:
            context.log.warning("reconcile delayed", cause=error.message)
            return self._failed("unavailable", context)
        return self._errored(context)

    def _timed_out(self, context: ReconcileContext) -> ReconcileOutcome:
        context.log.warning("reconcile timed out", deadline_s=self.settings.deadline_s)
        return self._failed("timeout", context)

    def _errored(self, context: ReconcileContext) -> ReconcileOutcome:
        context.log.exception("reconcile failed")  # noqa: LOG004  every caller handles an exception
        return self._failed("failed", context)

    def _failed(self, outcome: ReconcileResult, context: ReconcileContext) -> ReconcileOutcome:
        pause_s = self.settings.backoff.pause_s(context.failures + 1, self.ports.randomness)
        return ReconcileOutcome(outcome, pause_s, has_failed=True)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class LeaderTerm:
    """A period of leadership: sources and resyncs fill a queue, workers empty it. The constructor starts them."""

    def __init__(
        self,
        kind: type[Resource],
        sources: Sequence[Source[Any]],
        reconciler: Reconciler,
        guards: Sequence[DeletionGuard],
    ) -> None:
        ports, settings, name = reconciler.ports, reconciler.settings, reconciler.name
        self._has_groups = bool(ports.group_label)
        find_group = self._find_group if self._has_groups else None
        self.queue = Queue(ports.clock, share=settings.workers, find_group=find_group)
        self._kind = kind
        self.resync = Resync(kind, ports.store, self.queue, ports.clock, settings.resync, self._resynced)
        self._reconciler = reconciler
        self._lost_events = LostEvents(self._lost_event_found)
        self._not_watching = set(range(len(sources)))
        self._tasks = BackgroundTasks(ports.clock)
        for number, source in enumerate(sources):
            watcher = Watcher(
                source, ports.store, self._add, on_start=partial(self._source_started, number), notice=self._notice
            )
            self._tasks.start(f"{name} watch of {source.kind.__name__}", watcher.run)
        self._tasks.start(f"{name} resync", partial(self.resync.run, ports.randomness))
        for guard in guards:
            self._tasks.start(f"{name} deletion guard report", guard.report)
        workers = 2 * settings.workers if self._has_groups else settings.workers
        self._workers = Workers(workers, self.queue, self._process_item, name=reconciler.name)

    async def end(self, *, grace_s: float) -> None:
        """Stop. Running reconciles may finish within the grace period; without one they are cancelled at once."""
        await self._workers.stop(grace_s=grace_s)
        await self._tasks.stop()
        self._lost_events.close()

    def enqueue(self, key: str) -> None:
        """Enqueue a key that no source has named."""
        self._add(key, "event", Rank.ROUTINE, 0.0)

    def _add(self, key: str, cause: Cause, rank: Rank, delay_s: float) -> None:
        self._lost_events.record_event(key)
        if delay_s:
            self.queue.add_after(key, delay_s, cause)
        else:
            self.queue.add(key, cause, rank)

    def _notice(self, resource: Resource) -> None:
        """Tell the queue the group of an object of the controller's own kind, before its key is enqueued."""
        if self._has_groups and type(resource) is self._kind:
            self.queue.set_group(resource.name, self._group_of(resource))

    async def _find_group(self, key: str) -> str:
        """Return the group of an object; one that cannot be read has none."""
        try:
            return self._group_of(await self._reconciler.ports.store.get(self._kind, key))
        except RemudaError:
            return ""

    def _group_of(self, resource: Resource) -> str:
        return resource.metadata.labels.get(self._reconciler.ports.group_label, "")

    def _source_started(self, number: int) -> None:
        """Record that a source watches. As soon as all do, resync: there is no record of earlier events."""
        self._not_watching.discard(number)
        if not self._not_watching:
            self.resync.request()

    def _resynced(self, keys: int) -> None:
        report(self._reconciler.ports.reporter.resynced, self._reconciler.name, keys)

    def _lost_event_found(self, context: ReconcileContext) -> None:
        report(self._reconciler.ports.reporter.lost_event_found, context)

    async def _process_item(self, key: str, item: Item) -> None:
        ports = self._reconciler.ports
        if not ports.leader.is_leading:
            self.queue.finish(key)  # the new leader resyncs
            return
        context = self._reconciler.begin(key, item, failures=self.queue.failures(key))
        began = ports.clock.monotonic()
        outcome = await self._reconciler.perform(context)
        was_added_again = self.queue.finish(key, requeue_s=outcome.pause_s, has_failed=outcome.has_failed)
        report(ports.reporter.finished, context, outcome.outcome, ports.clock.monotonic() - began)
        if outcome.has_failed:
            report(ports.reporter.retried, context, outcome.pause_s or 0.0)
        if context.acted and item.cause == "resync" and item.was_idle and not was_added_again:
            self._lost_events.record_find(context)


class Controller:
    """One controller. Construct it, `start` it, and `stop` it before its store is closed."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        kind: type[Resource],
        ports: ReconcilePorts,
        sources: Sequence[Source[Any]] = (),
        guards: Sequence[DeletionGuard] = (),
        settings: ControllerSettings | None = None,
    ) -> None:
        """Control objects of `kind`, whose names are the keys. Without sources only that kind is watched.

        The groups that the deletion `guards` have stopped are reported whenever a term of leadership begins.
        """
        self.name, self.kind, self._ports = name, kind, ports
        self._sources = tuple(sources) or (Source(kind),)
        if not any(source.kind is kind for source in self._sources):
            raise ValueError(f"the sources of {name} must include its own kind, {kind.__name__}")
        self._guards = tuple(guards)
        self._settings = settings or ControllerSettings()
        self._reconciler = Reconciler(name, reconcile, ports, self._settings)
        self._control: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        """Serializes starts and stops: of two at once, one would lose a task."""
        self._term: LeaderTerm | None = None
        self.terms = 0
        """Number of the terms of leadership that have begun."""
        report(ports.reporter.opened, name, depth=lambda: self.depth, oldest_s=self.oldest_s)

    @property
    def depth(self) -> int:
        """The number of keys that wait for a worker."""
        return self._term.queue.depth if self._term else 0

    @property
    def is_synced(self) -> bool:
        """Whether the process leads, and every object that cannot wait was enqueued once."""
        return self._term is not None and self._term.resync.is_synced

    @property
    def is_idle(self) -> bool:
        """Whether it has begun, and no key waits for a worker or is being reconciled."""
        return self._term is not None and self._term.resync.is_synced and self._term.queue.is_idle

    def oldest_s(self) -> float:
        """Return how long the oldest key has waited for a worker."""
        return self._term.queue.oldest_s() if self._term else 0.0

    def is_due(self, key: str) -> bool:
        """Return whether a reconcile of the key will begin, or may: at the end of a term its keys are forgotten."""
        return self._term is None or self._term.queue.is_due(key)

    def is_reconciling(self, key: str) -> bool:
        """Return whether a reconcile of the key has begun and not ended."""
        return self._term is not None and self._term.queue.is_taken(key)

    async def start(self) -> None:
        """Reconcile whenever this process leads."""
        async with self._lock:
            if self._control is None:
                self._control = asyncio.create_task(self._lead(), name=f"controller {self.name}")

    async def stop(self) -> None:
        """Stop; running reconciles may finish within the grace period. If it is cancelled itself, call it again."""
        async with self._lock:
            if self._control is not None:
                self._control.cancel()
                await asyncio.gather(self._control, return_exceptions=True)
                self._control = None
            await self._end_term(grace_s=self._settings.grace_s)

    def enqueue(self, key: str) -> None:
        """Enqueue a key because of an event that no watch can report, such as the end of a provider call."""
        if self._term is not None:
            self._term.enqueue(key)

    async def resync(self) -> int:
        """Resync now, as fast as workers go, and return the number of keys."""
        return await self._term.resync.once("resync") if self._term else 0

    async def _lead(self) -> None:
        while True:
            await self._ports.leader.won()
            self.terms += 1
            self._term = LeaderTerm(self.kind, self._sources, self._reconciler, self._guards)
            await self._ports.leader.lost()
            await self._end_term(grace_s=0)

    async def _end_term(self, *, grace_s: float) -> None:
        if self._term is not None:
            await self._term.end(grace_s=grace_s)
            self._term = None
