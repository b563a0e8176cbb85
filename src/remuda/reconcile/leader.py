"""Who controls: a port, the answer for a process that is alone, and a lease for those that are not.

Correctness never rests on leading but on optimistic writes, and at the provider on names it refuses twice. Leading
only keeps two processes from doing the same work.

A lease is an object that its holder renews by compare-and-swap. Whoever sees it stand still for its whole duration, by
the own clock and from when it was first seen so, may take it over: clocks of two machines are never compared. A holder
counts from before it asked for the last renewal that succeeded, and stops after a shorter time. So no two lead at once
as long as their clocks do not differ in speed by more than these two times do.

When monitors work: only in the process that leads, and slowly enough that nobody notices.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import structlog
from msgspec.structs import replace

from remuda.kernel.clock import Clock, let_others_run
from remuda.kernel.errors import AlreadyExists, NotFound, RemudaError
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.reconcile.kinds import LeaseRecord, LeaseSpec
from remuda.reconcile.reporter import Reporter, Silent, tell
from remuda.store.background import Duties
from remuda.store.contract import Store
from remuda.store.objects import Metadata


class Leader(Protocol):
    """Tells a process whether it controls. Many drivers may share one."""

    @property
    def is_leading(self) -> bool:
        """Whether it controls at this moment, by its own clock."""
        ...

    async def won(self) -> None:
        """Return when this process controls."""
        ...

    async def lost(self) -> None:
        """Return when this process no longer controls, or did not in between: what it does must end at once."""
        ...


class Alone:
    """The leader of an embedded store, which only one process can open."""

    @property
    def is_leading(self) -> bool:
        """Always."""
        return True

    async def won(self) -> None:
        """Return at once."""

    async def lost(self) -> None:
        """Never return."""
        await asyncio.get_running_loop().create_future()


@dataclass(frozen=True, kw_only=True)
class LeaseSettings:
    """What an operator may set, alike in all processes."""

    duration_s: float = 15.0
    """For how long after a renewal nobody else takes over."""
    renew_deadline_s: float = 10.0
    """For how long after a renewal its holder leads."""
    retry_s: float = 2.0
    """How often the holder renews, and the others look."""

    def __post_init__(self) -> None:
        """Refuse times under which two could lead, or nobody for long."""
        if not 0 < 2 * self.retry_s < self.renew_deadline_s < self.duration_s:
            raise ValueError("a lease needs 2 * retry_s < renew_deadline_s < duration_s")


class Lease:
    """A share in the right to control. `start` it to compete, `stop` it after the drivers that rely on it."""

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
        """What this process is called as a holder: new at each start, so nobody inherits a lease from the dead."""
        self._store = store
        self._clock = clock
        self._randomness = randomness
        self._reporter = reporter or Silent()
        self._settings = settings or LeaseSettings()
        self._duties = Duties(clock)
        self._leads_until = float("-inf")
        self._term = 0
        self._news = asyncio.Event()
        self._seen = ("", "")
        """The incarnation and version of the lease as it was last seen."""
        self._seen_since = 0.0
        self._reported = False

    @property
    def is_leading(self) -> bool:
        """Whether the last renewal that succeeded was asked for recently enough."""
        return self._clock.monotonic() < self._leads_until

    async def start(self) -> None:
        """Compete."""
        tell(self._reporter.leading, self.name, False)  # noqa: FBT003  see the protocol
        self._duties.start(f"lease {self.name}", self._compete)

    async def stop(self) -> None:
        """Compete no longer, and let go of the lease at once, so that nobody has to wait for its end."""
        await self._duties.stop()
        was_leading = self.is_leading
        self._lose()
        if was_leading:
            with suppress(RemudaError, TimeoutError):
                async with asyncio.timeout(self._settings.retry_s):
                    await self._let_go()

    async def won(self) -> None:
        """Return when this process controls."""
        while not self.is_leading:
            await self._news.wait()

    async def lost(self) -> None:
        """Return when this process no longer controls, or did not in between."""
        term = self._term
        while self.is_leading and self._term == term:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._leads_until - self._clock.monotonic()):
                    await self._news.wait()

    async def _compete(self) -> None:
        while True:
            asked = self._clock.monotonic()
            try:
                async with asyncio.timeout(self._settings.renew_deadline_s):
                    is_ours = await self._claim()
            except (RemudaError, TimeoutError):
                pass  # nobody knows: what was renewed before still counts, until its time is over
            else:
                if is_ours:
                    self._lead(asked)
                else:
                    self._lose()
            self._report()
            await self._clock.sleep(self._settings.retry_s * self._randomness.uniform(0.75, 1.0))

    async def _claim(self) -> bool:
        """Renew the lease if it is ours, take it if it is nobody's; tell whether it is ours now."""
        try:
            record = await self._store.get(LeaseRecord, self.name)
        except NotFound:
            with suppress(AlreadyExists):
                await self._store.create(LeaseRecord(metadata=Metadata(name=self.name), spec=self._taken(LeaseSpec())))
                return True
            return False
        if record.spec.holder == self.identity:
            spec = replace(record.spec, renewals=record.spec.renewals + 1)
        elif record.spec.holder and not self._stands_still(record):
            return False
        else:
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

    def _stands_still(self, record: LeaseRecord) -> bool:
        """Tell whether the lease was not renewed for its whole duration, as far as we have seen."""
        now, seen = self._clock.monotonic(), (record.uid, record.version)
        if seen != self._seen:
            self._seen, self._seen_since = seen, now
        return now - self._seen_since >= record.spec.duration_s

    async def _let_go(self) -> None:
        record = await self._store.get(LeaseRecord, self.name)
        if record.spec.holder == self.identity:
            await self._store.update(replace(record, spec=replace(record.spec, holder="")))

    def _lead(self, asked: float) -> None:
        if not self.is_leading:
            self._term += 1
        self._leads_until = asked + self._settings.renew_deadline_s
        self._tell()

    def _lose(self) -> None:
        self._leads_until = float("-inf")
        self._report()
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _report(self) -> None:
        """Say it once when it has changed."""
        if self.is_leading != self._reported:
            self._reported = self.is_leading
            tell(self._reporter.leading, self.name, self._reported)
            said = "lease won" if self._reported else "lease lost"
            structlog.get_logger().info(said, lease=self.name, identity=self.identity)


_STRIDE = 50
"""After so many things there is a pause, unless told otherwise. The first few after a pause cost two to three times as
much as those that follow, since processor and kernel have forgotten them meanwhile: so pauses are few and long."""
Work = Callable[[], Awaitable[None]]
"""The function that a leader-only loop calls."""


class Pace:
    """Holds back whoever goes through many things."""

    def __init__(self, clock: Clock, per_s: float, *, stride: int = _STRIDE) -> None:
        """Let so many pass in a second, on the average, and wait after each `stride` of them."""
        self._clock, self._stride, self._pause_s, self._count = clock, stride, stride / per_s, 0

    async def step(self) -> None:
        """Count one more thing, and wait a little after some; after each others get their turn on the loop."""
        self._count += 1
        if self._count % self._stride == 0:
            await self._clock.sleep(self._pause_s)
        else:
            await let_others_run()


async def every(period: timedelta, clock: Clock, work: Work, *, at_once: bool = False, **facts: str) -> None:
    """Do something for ever, now and then; a provider or store in trouble is told in the log, with these facts."""
    pause_s = 0.0 if at_once else period.total_seconds()
    while True:
        await clock.sleep(pause_s)
        pause_s = period.total_seconds()
        try:
            await work()
        except RemudaError as error:
            structlog.get_logger().warning("monitor could not look", error=error.code, **facts)


async def while_leading(leader: Leader, work: Work) -> None:
    """Do something, and begin it anew whenever this process has come to lead; end it at once when it does not."""
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
