"""Work queue of keys, with priorities, delays and retries.

A key is in it at most once, and is never given to two workers at the same time: if it is added while a worker has it,
it is queued again afterwards. Of several delayed requests for a key the earliest counts, and a key that becomes ready
before replaces them. Work that users wait for comes first; but the waiting time counts as well, so that low priorities
are late and never starve. A resync never delays a key. Everything is O(log n), with a single timer.

Keys belong to groups, such as the organizations of the objects, which take turns: one with a thousand failing objects
delays the single object of another by one reconcile, not by a thousand. A group has at most its share of the workers,
so that slow reconciles of one leave workers to the others.
"""

import asyncio
import heapq
import itertools
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable
from enum import IntEnum
from itertools import islice
from typing import Generic, TypeVar

import msgspec

from remuda.kernel.clock import Clock
from remuda.reconcile.results import Cause

_MIN_REBUILD = 64
_MAX_SERVED = 4_096
"""Groups whose last turn is recorded: one that had none for so long counts as new, and new ones come first."""
_MAX_GROUPED = 100_000
"""Keys whose group is remembered."""

FindGroup = Callable[[str], Awaitable[str]]
"""Returns the group of a key; it must not raise."""

ValueT = TypeVar("ValueT")


class KeyedHeap(Generic[ValueT]):
    """Values by key, smallest number first; of equal numbers the one that was put first.

    A heap with lazy deletion: outdated entries are skipped when they come up. When most of it is outdated it is
    rebuilt, so that its size follows that of its content.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str]] = []
        self._entries: dict[str, tuple[float, int, ValueT]] = {}
        self._orders = itertools.count()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def get(self, key: str) -> ValueT | None:
        """Return the value of a key, if present."""
        entry = self._entries.get(key)
        return None if entry is None else entry[2]

    def number_of(self, key: str) -> float | None:
        """Return the number of a key, if present."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: str, number: float, value: ValueT) -> None:
        """Add a key, or move it if present."""
        entry = self._entries.get(key)
        if entry is not None and entry[0] == number:
            self._entries[key] = (number, entry[1], value)
            return
        order = next(self._orders)
        self._entries[key] = (number, order, value)
        heapq.heappush(self._heap, (number, order, key))
        if len(self._heap) > 2 * len(self._entries) + _MIN_REBUILD:
            self._heap = [(number, order, key) for key, (number, order, _) in self._entries.items()]
            heapq.heapify(self._heap)

    def drop(self, key: str) -> ValueT | None:
        """Remove a key, and return its value."""
        entry = self._entries.pop(key, None)
        return None if entry is None else entry[2]

    def first(self) -> float | None:
        """Return the smallest number."""
        while self._heap:
            number, order, key = self._heap[0]
            entry = self._entries.get(key)
            if entry is not None and entry[1] == order:
                return number
            heapq.heappop(self._heap)
        return None

    def pop(self, *, upto: float = math.inf) -> tuple[str, ValueT] | None:
        """Remove and return the key with the smallest number, if that is not greater than `upto`."""
        first = self.first()
        if first is None or first > upto:
            return None
        key = heapq.heappop(self._heap)[2]
        return key, self._entries.pop(key)[2]


_SLACK_S = 0.001
"""Tolerance for a timer that fires too early: clocks and the event loop round differently."""


class Rank(IntEnum):
    """The priority of a key, as seconds by which others may be added later and still come first."""

    USER = 0
    """A user has changed something."""
    ROUTINE = 5
    """Something in progress continues."""
    RESYNC = 60


class Item(msgspec.Struct, frozen=True, gc=False):
    """A key that waits, or that a worker has."""

    order: float
    since: float
    cause: Cause
    was_idle: bool
    """Whether the queue knew of nothing in progress for the key when it was added."""

    def joined(self, other: "Item") -> "Item":
        """Return this item merged with a later one: the earlier position, and a resync as the cause only of both."""
        cause = other.cause if self.cause == "resync" else self.cause
        return Item(min(self.order, other.order), self.since, cause, self.was_idle)

    def at_most(self, order: float) -> "Item":
        """Return this item at that position, if it is an earlier one."""
        return self if self.order <= order else Item(order, self.since, self.cause, self.was_idle)


class FairHeap:
    """Items by key in groups, which take turns.

    Whatever is due (its order has been reached) comes first: one item of each group with due ones, and within a group
    the earliest. If nothing is due, the earliest item of all comes first. A group has at most its share of the items
    that were popped and not released; its others wait, and no group waits for them.
    """

    def __init__(self, share: float = math.inf) -> None:
        self._share = share
        self._items: dict[str, Item] = {}
        self._group_of: dict[str, str] = {}
        """By key, of the items in the heap and of those that were popped."""
        self._heaps: dict[str, KeyedHeap[None]] = {}
        self._waiting: KeyedHeap[None] = KeyedHeap()
        """Groups below their share, by their earliest item."""
        self._due: KeyedHeap[None] = KeyedHeap()
        """Groups below their share whose earliest item was due, by their last turn."""
        self._running: Counter[str] = Counter()
        self._served = 0
        self._last_served: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def get(self, key: str) -> Item | None:
        """Return the item of a key, if present."""
        return self._items.get(key)

    def oldest(self) -> Item | None:
        """Return the item that was added first, however often it was moved."""
        return next(iter(self._items.values()), None)

    def put(self, key: str, group: str, item: Item) -> None:
        """Add an item, or move it if present."""
        self._items[key] = item
        self._group_of[key] = group
        self._heaps.setdefault(group, KeyedHeap()).put(key, item.order, None)
        self._arrange(group)

    def pop(self, now: float) -> tuple[str, Item] | None:
        """Remove and return the next item; it counts in the share of its group until it is released."""
        while due := self._waiting.pop(upto=now):
            self._due.put(due[0], self._last_served.get(due[0], 0), None)
        first = self._due.pop() or self._waiting.pop()
        if first is None:
            return None
        group = first[0]
        taken = self._heaps[group].pop()
        assert taken is not None, "a group that can have a turn has an item"
        self._running[group] += 1
        self._record_served(group)
        self._arrange(group)
        return taken[0], self._items.pop(taken[0])

    def release(self, key: str) -> bool:
        """Return the place of a popped item to its group; return whether another item of the group waited for it."""
        group = self._group_of.pop(key, "")
        was_full = self._running[group] >= self._share
        self._running[group] -= 1
        if self._running[group] <= 0:
            del self._running[group]
        self._arrange(group)
        return was_full and group in self._heaps

    def _arrange(self, group: str) -> None:
        """Put a group where it belongs after its items or its use have changed."""
        heap = self._heaps.get(group)
        order = None if heap is None else heap.first()
        if order is None:
            self._heaps.pop(group, None)
        if order is None or self._running[group] >= self._share:
            self._waiting.drop(group)
            self._due.drop(group)
        elif group not in self._due:
            self._waiting.put(group, order, None)

    def _record_served(self, group: str) -> None:
        self._served += 1
        self._last_served[group] = self._served
        self._last_served.move_to_end(group)
        if len(self._last_served) > _MAX_SERVED:
            self._last_served.popitem(last=False)


class Queue:
    """Keys that wait for a worker."""

    def __init__(self, clock: Clock, *, share: float = math.inf, find_group: FindGroup | None = None) -> None:
        """Take the largest number of keys of one group that workers have, and how the group of a key is found."""
        self._clock, self._find_group = clock, find_group
        self._ready = FairHeap(share)
        self._ungrouped: dict[str, Item] = {}
        """Keys that are ready, but whose group is unknown."""
        self._lookups: set[str] = set()
        """Those of them whose group is being looked up."""
        self._groups: dict[str, str] = {}
        self._delayed: KeyedHeap[Cause] = KeyedHeap()
        self._running: dict[str, Item | None] = {}
        """The keys that workers have, with the items added meanwhile."""
        self._failures: dict[str, int] = {}
        self._resynced: set[str] = set()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.Handle | None = None
        self._fires_at = math.inf
        self._is_closed = False

    @property
    def depth(self) -> int:
        """The number of keys that wait for a worker."""
        return len(self._ready) + len(self._ungrouped)

    @property
    def resynced(self) -> int:
        """The number of keys added by resyncs that no worker has taken yet."""
        return len(self._resynced)

    @property
    def is_idle(self) -> bool:
        """Whether no key waits for a worker and no worker has one; there may be delayed keys."""
        return not self.depth and not self._running

    def oldest_s(self) -> float:
        """Return how long the oldest key has waited for a worker."""
        since = [
            item.since for item in (self._ready.oldest(), *islice(self._ungrouped.values(), 1)) if item is not None
        ]
        return self._clock.monotonic() - min(since) if since else 0.0

    def failures(self, key: str) -> int:
        """Return the number of consecutive failures of a key."""
        return self._failures.get(key, 0)

    def is_taken(self, key: str) -> bool:
        """Return whether a worker has the key."""
        return key in self._running

    def is_due(self, key: str) -> bool:
        """Return whether the key will be given to a worker: now, later, or again because it was added meanwhile."""
        return key in self._ready or key in self._delayed or self._running.get(key) is not None

    def set_group(self, key: str, group: str) -> None:
        """Record the group of a key, so that it need not be looked up. The first that is recorded stays."""
        if len(self._groups) >= _MAX_GROUPED:
            self._groups.clear()  # bounds memory, at the cost of a lookup each
        self._groups.setdefault(key, group)

    def add(self, key: str, cause: Cause = "event", rank: Rank = Rank.USER) -> None:
        """Make a key ready: now, or when the worker that has it is done."""
        if self._is_closed:
            return
        now = self._clock.monotonic()
        if rank is Rank.RESYNC:
            if self._is_due_before_resync(key, now):
                return
            self._resynced.add(key)
        is_running = key in self._running
        was_delayed = self._delayed.drop(key) is not None
        is_idle = not (is_running or was_delayed or key in self._failures)
        item = Item(now + rank, now, cause, is_idle)
        if is_running:
            before = self._running[key]
            self._running[key] = item if before is None else before.joined(item)
        else:
            self._make_ready(key, item)

    def _is_due_before_resync(self, key: str, now: float) -> bool:
        """Return whether a delayed request is no later than a resync would be, or ends a backoff."""
        due = self._delayed.number_of(key)
        return due is not None and (key in self._failures or due + Rank.ROUTINE <= now + Rank.RESYNC)

    def add_after(self, key: str, delay_s: float, cause: Cause = "requeue") -> None:
        """Enqueue a key after a delay, unless it is ready or has an earlier request."""
        if self._is_closed or key in self._ready or key in self._ungrouped:
            return
        due = self._clock.monotonic() + delay_s
        planned = self._delayed.number_of(key)
        if planned is None or due < planned:
            self._delayed.put(key, due, cause)
            self._set_timer()

    async def take(self) -> tuple[str, Item] | None:
        """Return the next key when there is one, None when the queue is closed. The caller must call `finish`."""
        while not self._is_closed:
            if self._ungrouped and await self._resolve_group():
                continue
            taken = self._ready.pop(self._clock.monotonic())
            if taken is not None:
                self._running[taken[0]] = None
                self._resynced.discard(taken[0])
                return taken
            await self._wait()
        return None

    def finish(self, key: str, *, requeue_s: float | None = None, has_failed: bool = False) -> bool:
        """Record that a key is done, and when to enqueue it again. Return whether it was added meanwhile."""
        meanwhile = self._running.pop(key)
        if self._ready.release(key):
            self._notify_one()
        if has_failed:
            self._failures[key] = self.failures(key) + 1
        else:
            self._failures.pop(key, None)
        if meanwhile is not None:
            latest = math.inf if requeue_s is None else self._clock.monotonic() + requeue_s + Rank.ROUTINE
            self._make_ready(key, meanwhile.at_most(latest))
        elif requeue_s is not None:
            self.add_after(key, requeue_s, "retry" if has_failed else "requeue")
        return meanwhile is not None

    def close(self) -> None:
        """Return no more keys. Workers may finish those they have."""
        self._is_closed = True
        self._ready, self._delayed, self._resynced, self._ungrouped = FairHeap(), KeyedHeap(), set(), {}
        if self._timer is not None:
            self._timer.cancel()
        while self._waiters:
            self._notify_one()

    def _make_ready(self, key: str, item: Item) -> None:
        if self._is_closed:
            return
        group = "" if self._find_group is None else self._groups.get(key)
        before = self._ungrouped.get(key) or self._ready.get(key)
        if before is not None:
            item = before.joined(item)
        if key in self._ungrouped or group is None:
            self._ungrouped[key] = item
        else:
            self._ready.put(key, group, item)
        if before is None:
            self._notify_one()

    async def _resolve_group(self) -> bool:
        """Look up the group of a key that has none yet; return whether there was such a key."""
        key = next((each for each in self._ungrouped if each not in self._lookups), None)
        if key is None or self._find_group is None:
            return False
        self._lookups.add(key)
        try:
            group = await self._find_group(key)
        finally:
            self._lookups.discard(key)
        self.set_group(key, group)
        item = self._ungrouped.pop(key, None)
        if item is not None:
            self._ready.put(key, group, item)
            self._notify_one()
        return True

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                self._notify_one()  # pass the notification on to another worker
            raise

    def _notify_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _set_timer(self) -> None:
        """Set the timer for the earliest delay: one timer, which is moved when an earlier delay is added."""
        due = self._delayed.first()
        if due is None:
            return
        if self._timer is not None:
            if self._fires_at <= due:
                return
            self._timer.cancel()
        # Stored here, because uvloop's handle does not tell the time of a timer that is about to fire.
        self._fires_at = due
        self._timer = asyncio.get_running_loop().call_later(max(0.0, due - self._clock.monotonic()), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self._clock.monotonic() + _SLACK_S
        while due := self._delayed.pop(upto=now):
            self.add(*due, Rank.ROUTINE)
        self._set_timer()
