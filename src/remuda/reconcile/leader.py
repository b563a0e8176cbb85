"""Leader election: a port, the implementation for a single process, and a lease for several.

Correctness never depends on leadership but on optimistic writes, and at the provider on unique names. Leadership only
prevents two processes from doing the same work.

A lease is an object that its holder renews by compare-and-swap. A process that sees no change for the whole duration,
by its own clock and since it first saw that version, may take it over: clocks of two machines are never compared. A
holder counts from before its last successful renewal was sent, and stops after a shorter time. So two processes never
lead at once unless their clocks differ in speed by more than these two times do.

`while_leading`, `every` and `Pace` run monitors: only in the process that leads, and slowly enough not to disturb.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import structlog
from msgspec.structs import replace

from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.errors import AlreadyExists, NotFound, RemudaError
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.reconcile.kinds import LeaseRecord, LeaseSpec
from remuda.reconcile.reporter import Reporter, report
from remuda.store.background import BackgroundTasks
from remuda.store.contract import Store
from remuda.store.objects import Metadata


class Leader(Protocol):
    """Tells a process whether it leads. Many controllers may share one."""

    @property
    def is_leading(self) -> bool:
        """Whether it leads now, by its own clock."""

    async def won(self) -> None:
        """Return when this process leads."""

    async def lost(self) -> None:
        """Return when this process does not lead, or did not in between: its work must end at once."""


class SingleProcess:
    """The leader of an embedded store, which only one process can open."""

    @property
    def is_leading(self) -> bool:
        """Whether it leads: always."""
        return True

    async def won(self) -> None:
        """Return at once."""

    async def lost(self) -> None:
        """Never return."""
        await asyncio.get_running_loop().create_future()


@dataclass(frozen=True, kw_only=True)
class LeaseSettings:
    """Durations of a lease, the same in all processes."""

    duration_s: float = 15.0
    """Time after a renewal during which no other process takes over."""
    renew_deadline_s: float = 10.0
    """Time after a renewal during which its holder leads."""
    retry_s: float = 2.0
    """The interval at which the holder renews, and the others check."""

    def __post_init__(self) -> None:
        """Reject times with which two processes could lead, or none for long."""
        if not 0 < 2 * self.retry_s < self.renew_deadline_s < self.duration_s:
            raise ValueError("a lease needs 2 * retry_s < renew_deadline_s < duration_s")


class Lease:
    """A candidate for leadership. `start` it to compete, `stop` it after the controllers that depend on it."""

    def __init__(
        self,
        name: str,
        store: Store,
        clock: Clock,
        randomness: Randomness,
        *,
        reporter: Reporter | None = None,
        settings: LeaseSettings | None = None,
    ) -> None:
        self.name = name
        self.identity = random_id(randomness)
        """The name of this process as a holder. It is new at each start, so that a lease is never inherited."""
        self._store, self._clock, self._randomness = store, clock, randomness
        self._reporter = reporter or Reporter()
        self._settings = settings or LeaseSettings()
        self._tasks = BackgroundTasks(clock)
        self._leads_until = float("-inf")
        self._term = 0
        self._changed = asyncio.Event()
        self._observed = ("", "")
        """The incarnation and version of the lease when it was last read."""
        self._observed_since = 0.0
        self._reported = False

    @property
    def is_leading(self) -> bool:
        """Whether the last successful renewal was sent recently enough."""
        return self._clock.monotonic() < self._leads_until

    async def start(self) -> None:
        """Begin to compete."""
        report(self._reporter.leading, self.name, False)  # noqa: FBT003  see the protocol
        self._tasks.start(f"lease {self.name}", self._compete)

    async def stop(self) -> None:
        """Stop competing, and release the lease, so that other processes need not wait for its end."""
        await self._tasks.stop()
        was_leading = self.is_leading
        self._lose()
        if was_leading:
            with suppress(RemudaError, TimeoutError):
                async with asyncio.timeout(self._settings.retry_s):
                    await self._release()

    async def won(self) -> None:
        """Return when this process leads."""
        while not self.is_leading:
            await self._changed.wait()

    async def lost(self) -> None:
        """Return when this process does not lead, or did not in between."""
        term = self._term
        while self.is_leading and self._term == term:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._leads_until - self._clock.monotonic()):
                    await self._changed.wait()

    async def _compete(self) -> None:
        while True:
            sent_at = self._clock.monotonic()
            try:
                async with asyncio.timeout(self._settings.renew_deadline_s):
                    is_ours = await self._claim()
            except (RemudaError, TimeoutError):
                pass  # unknown outcome: the previous renewal counts until its time is over
            else:
                if is_ours:
                    self._lead(sent_at)
                else:
                    self._lose()
            self._report()
            await self._clock.sleep(self._settings.retry_s * self._randomness.uniform(0.75, 1.0))

    async def _claim(self) -> bool:
        """Renew the lease if it is ours, take it if it is free; return whether it is ours now."""
        try:
            record = await self._store.get(LeaseRecord, self.name)
        except NotFound:
            with suppress(AlreadyExists):
                await self._store.create(LeaseRecord(metadata=Metadata(name=self.name), spec=self._taken(LeaseSpec())))
                return True
            return False
        if record.spec.holder == self.identity:
            spec = replace(record.spec, renewals=record.spec.renewals + 1)
        else:
            self._observe(record)
            if record.spec.holder and not self._is_expired(record):
                return False
            spec = self._taken(record.spec)
        await self._store.update(replace(record, spec=spec))
        return True

    def _taken(self, spec: LeaseSpec) -> LeaseSpec:
        return LeaseSpec(
            holder=self.identity,
            duration_s=self._settings.duration_s,
            renewals=spec.renewals + 1,
            transitions=spec.transitions + 1,
            acquired=self._clock.now(),
        )

    def _is_expired(self, record: LeaseRecord) -> bool:
        """Return whether the observed lease was not renewed for its whole duration."""
        return self._clock.monotonic() - self._observed_since >= record.spec.duration_s

    def _observe(self, record: LeaseRecord) -> None:
        observed = (record.uid, record.version)
        if observed != self._observed:
            self._observed, self._observed_since = observed, self._clock.monotonic()

    async def _release(self) -> None:
        record = await self._store.get(LeaseRecord, self.name)
        if record.spec.holder == self.identity:
            await self._store.update(replace(record, spec=replace(record.spec, holder="")))

    def _lead(self, sent_at: float) -> None:
        if not self.is_leading:
            self._term += 1
        self._leads_until = sent_at + self._settings.renew_deadline_s
        self._notify()

    def _lose(self) -> None:
        self._leads_until = float("-inf")
        self._report()
        self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _report(self) -> None:
        """Report a change of leadership once."""
        if self.is_leading != self._reported:
            self._reported = self.is_leading
            report(self._reporter.leading, self.name, self._reported)
            event = "lease won" if self._reported else "lease lost"
            structlog.get_logger().info(event, lease=self.name, identity=self.identity)


_STRIDE = 50
"""The default number of steps between pauses. The first few after a pause cost two to three times as much as the
others, because caches of processor and kernel are cold: so pauses are few and long.
"""
LeaderTask = Callable[[], Awaitable[None]]
"""The function that a leader-only loop calls."""


class Pace:
    """Limits the rate of a loop over many items."""

    def __init__(self, clock: Clock, per_s: float, *, stride: int = _STRIDE) -> None:
        """Allow `per_s` steps per second on average, with a pause after each `stride` of them."""
        self._clock, self._stride, self._pause_s, self._count = clock, stride, stride / per_s, 0

    async def step(self) -> None:
        """Count a step, and pause after some. After each, other tasks can run."""
        self._count += 1
        if self._count % self._stride == 0:
            await self._clock.sleep(self._pause_s)
        else:
            await yield_to_loop()


async def every(period: timedelta, clock: Clock, work: LeaderTask, *, at_once: bool = False, **facts: str) -> None:
    """Call a function at an interval, for ever. Our errors are logged as warnings, with these facts."""
    pause_s = 0.0 if at_once else period.total_seconds()
    while True:
        await clock.sleep(pause_s)
        pause_s = period.total_seconds()
        try:
            await work()
        except RemudaError as error:
            structlog.get_logger().warning("monitor failed", error=error.code, **facts)


async def while_leading(leader: Leader, work: LeaderTask) -> None:
    """Run a function while this process leads: start it at each win, and cancel it at each loss."""
    while True:
        await leader.won()
        tasks = [asyncio.ensure_future(work()), asyncio.ensure_future(leader.lost())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done():
                tasks[0].result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
