"""The keyed queue: which key is looked at next.

A key is in it at most once, and is never handed out twice at the same time: what is added while a worker has it comes
again afterwards. Of several delayed wakes of a key the earliest counts, and whatever makes the key ready before takes
its place. Work that users wait for goes first; but waiting counts as well, so that the lowest rank is late and never
starved. No key comes later because a scan has added it, too. Everything is O(log n), and there is one timer in all.

Keys in the order of a number, each at most once: a heap that forgets what was moved or dropped when it comes up.

When most of the heap is outdated it is built anew, so that its size follows that of its content.
"""

import asyncio
import heapq
import itertools
import math
from collections import deque
from enum import IntEnum
from typing import Generic, TypeVar

import msgspec

from remuda.kernel.clock import Clock
from remuda.reconcile.results import Cause

_FEW = 64

ValueT = TypeVar("ValueT")


class Schedule(Generic[ValueT]):
    """Values by key, least number first; of equal numbers the one that was put first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str]] = []
        self._places: dict[str, tuple[float, int, ValueT]] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def get(self, key: str) -> ValueT | None:
        """Return the value of a key, if it is here."""
        place = self._places.get(key)
        return None if place is None else place[2]

    def at(self, key: str) -> float | None:
        """Return the number of a key, if it is here."""
        place = self._places.get(key)
        return None if place is None else place[0]

    def put(self, key: str, at: float, value: ValueT) -> None:
        """Place a key, or move it if it is here."""
        place = self._places.get(key)
        if place is not None and place[0] == at:
            self._places[key] = (at, place[1], value)
            return
        number = next(self._numbers)
        self._places[key] = (at, number, value)
        heapq.heappush(self._heap, (at, number, key))
        if len(self._heap) > 2 * len(self._places) + _FEW:
            self._heap = [(at, number, key) for key, (at, number, _) in self._places.items()]
            heapq.heapify(self._heap)

    def drop(self, key: str) -> ValueT | None:
        """Forget a key, and return what it had."""
        place = self._places.pop(key, None)
        return None if place is None else place[2]

    def first(self) -> float | None:
        """Return the least number."""
        while self._heap:
            at, number, key = self._heap[0]
            place = self._places.get(key)
            if place is not None and place[1] == number:
                return at
            heapq.heappop(self._heap)
        return None

    def pop(self, *, upto: float = math.inf) -> tuple[str, ValueT] | None:
        """Take the key with the least number, if that is not beyond `upto`."""
        first = self.first()
        if first is None or first > upto:
            return None
        key = heapq.heappop(self._heap)[2]
        return key, self._places.pop(key)[2]

    def longest(self) -> ValueT | None:
        """Return the value of the key that has been here longest, however often it was moved."""
        return next((value for _, _, value in self._places.values()), None)


_SLACK_S = 0.001
"""By how much a timer may come too early: clocks and the loop round differently."""


class Rank(IntEnum):
    """Who goes first: the number is a handicap in seconds of waiting."""

    USER = 0
    """Somebody has changed something."""
    ROUTINE = 5
    """Something under way goes on."""
    SCAN = 60
    """Just to be sure."""


class Item(msgspec.Struct, frozen=True, gc=False):
    """A key that waits, or that a worker has."""

    order: float
    since: float
    cause: Cause
    was_idle: bool
    """Nothing was under way with the key, as far as the queue knew, when it was added."""

    def joined(self, other: "Item") -> "Item":
        """Return this one with what came after it: the better place, and anything rather than a scan as its cause."""
        cause = other.cause if self.cause == "scan" else self.cause
        return Item(min(self.order, other.order), self.since, cause, self.was_idle)

    def by(self, order: float) -> "Item":
        """Return this one in that place, if that is a better one."""
        return self if self.order <= order else Item(order, self.since, self.cause, self.was_idle)


class Queue:
    """Keys that wait for a worker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready: Schedule[Item] = Schedule()
        self._delayed: Schedule[Cause] = Schedule()
        self._running: dict[str, Item | None] = {}
        """What workers have, and what was added to it meanwhile."""
        self._failures: dict[str, int] = {}
        self._scanned: set[str] = set()
        self._takers: deque[asyncio.Future[None]] = deque()
        self._alarm: asyncio.Handle | None = None
        self._rings_at = math.inf
        self._is_closed = False

    @property
    def depth(self) -> int:
        """How many keys wait for a worker."""
        return len(self._ready)

    @property
    def scanned(self) -> int:
        """How many keys that scans have added no worker has taken yet."""
        return len(self._scanned)

    @property
    def is_quiet(self) -> bool:
        """Nothing waits for a worker and no worker has anything; delayed wakes may be set."""
        return not self._ready and not self._running

    def oldest_s(self) -> float:
        """Return for how long the key that came first has waited for a worker."""
        oldest = self._ready.longest()
        return 0.0 if oldest is None else self._clock.monotonic() - oldest.since

    def failures(self, key: str) -> int:
        """Return how often in a row a key has failed."""
        return self._failures.get(key, 0)

    def is_out(self, key: str) -> bool:
        """Tell whether a worker has the key."""
        return key in self._running

    def add(self, key: str, cause: Cause = "event", rank: Rank = Rank.USER) -> None:
        """Make a key ready: now, or when the worker that has it is done with it."""
        if self._is_closed:
            return
        now = self._clock.monotonic()
        if rank is Rank.SCAN:
            if self._comes_anyway(key, now):
                return
            self._scanned.add(key)
        is_running = key in self._running
        was_delayed = self._delayed.drop(key) is not None
        is_idle = not (is_running or was_delayed or key in self._failures)
        item = Item(now + rank, now, cause, is_idle)
        if is_running:
            before = self._running[key]
            self._running[key] = item if before is None else before.joined(item)
        else:
            self._make_ready(key, item)

    def _comes_anyway(self, key: str, now: float) -> bool:
        """Tell whether its delayed wake is no later than a scan would be, or ends the pause after a failure."""
        due = self._delayed.at(key)
        return due is not None and (key in self._failures or due + Rank.ROUTINE <= now + Rank.SCAN)

    def add_after(self, key: str, delay_s: float, cause: Cause = "wake") -> None:
        """Wake a key after a delay, unless it is ready or is to be woken earlier anyway."""
        if self._is_closed or key in self._ready:
            return
        due = self._clock.monotonic() + delay_s
        planned = self._delayed.at(key)
        if planned is None or due < planned:
            self._delayed.put(key, due, cause)
            self._set_alarm()

    async def take(self) -> tuple[str, Item] | None:
        """Return the next key when there is one, None when the queue is closed. Tell it when you have finished."""
        while not self._is_closed:
            taken = self._ready.pop()
            if taken is not None:
                self._running[taken[0]] = None
                self._scanned.discard(taken[0])
                return taken
            await self._wait()
        return None

    def finish(self, key: str, *, again_s: float | None = None, has_failed: bool = False) -> bool:
        """Say that a worker is done with a key, and when to wake it. Return whether it was added again meanwhile."""
        meanwhile = self._running.pop(key)
        if has_failed:
            self._failures[key] = self.failures(key) + 1
        else:
            self._failures.pop(key, None)
        if meanwhile is not None:
            in_any_case = math.inf if again_s is None else self._clock.monotonic() + again_s + Rank.ROUTINE
            self._make_ready(key, meanwhile.by(in_any_case))
        elif again_s is not None:
            self.add_after(key, again_s, "retry" if has_failed else "wake")
        return meanwhile is not None

    def close(self) -> None:
        """Hand out nothing more. What workers have they may finish."""
        self._is_closed = True
        self._ready, self._delayed, self._scanned = Schedule(), Schedule(), set()
        if self._alarm is not None:
            self._alarm.cancel()
        while self._takers:
            self._wake_one()

    def _make_ready(self, key: str, item: Item) -> None:
        if self._is_closed:
            return
        before = self._ready.get(key)
        if before is not None:
            item = before.joined(item)
        self._ready.put(key, item.order, item)
        if before is None:
            self._wake_one()

    async def _wait(self) -> None:
        taker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._takers.append(taker)
        try:
            await taker
        except asyncio.CancelledError:
            if not taker.cancelled():
                self._wake_one()  # the turn was ours and is now somebody else's
            raise

    def _wake_one(self) -> None:
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return

    def _set_alarm(self) -> None:
        """Have the loop call us when the first delay is over: one timer, moved when an earlier delay comes."""
        due = self._delayed.first()
        if due is None:
            return
        if self._alarm is not None:
            if self._rings_at <= due:
                return
            self._alarm.cancel()
        # When it rings we remember ourselves: uvloop's handle of a delay that is nearly over does not tell.
        self._rings_at = due
        self._alarm = asyncio.get_running_loop().call_later(max(0.0, due - self._clock.monotonic()), self._ring)

    def _ring(self) -> None:
        self._alarm = None
        now = self._clock.monotonic() + _SLACK_S
        while due := self._delayed.pop(upto=now):
            self.add(*due, Rank.ROUTINE)
        self._set_alarm()
