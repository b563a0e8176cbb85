"""Watches: a collection as a stream of server-sent events.

`added`, `modified` and `deleted` carry an item as the list shows it (of a deleted one, its last state) and as `id` the
place to resume from. A stream without `Last-Event-ID` begins with what is there, as `added` without ids, and then a
`bookmark` that says `synced`. Later bookmarks let an idle reader resume too; comments show that the stream lives.

A place that is too old to resume from, or was seen under other rights, is answered 410; if the former is found out
later, it is the event `gone`. The event `end` says why the server closed the stream, and that the reader may come back:
its credentials ended, the server closes, the store fails. After `access_changed` it has to begin anew.

A reader sees what it may see: what leaves its sight arrives as deleted, in the last state it could see, and what comes
into sight as added. That is noticed when labels or declared indexes change: then the store knows the state before.

Nothing is buffered for a reader: the store's watch is a cursor, and it is asked for the next change when the last one
was sent. Idle streams share one pulse.

One pulse for many streams.

Every idle stream wants to be woken now and then, and all at once when the server closes. One ticker does that for all
of them, a few at each tick, so a thousand idle streams cost one timer and are never awake together. It runs while there
are streams.

What a change is to a reader who sees only some of the objects.

An object can come into sight and leave it while it lives on: to this reader it was added, or deleted. Whether it was in
sight before is told from its state before, which the store gives where labels or declared indexes have changed.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, cast

import msgspec

from remuda.access.principal import Principal
from remuda.http.pagination import SLICE, Places, bad_place, batches, read_items
from remuda.http.responses import Answer, Collection, Header, bare
from remuda.http.sse import HEARTBEAT, added_events, event
from remuda.kernel.clock import Clock, let_others_run
from remuda.kernel.errors import Gone, Invalid, RemudaError
from remuda.store.contract import Bookmark, Change, Event

_TURNS = 16


class Pulse:
    """Rings each bell once in an interval, and all of them when `closing` is set."""

    def __init__(self, clock: Clock, closing: asyncio.Event, interval_s: float) -> None:
        self._clock, self._closing, self._interval_s = clock, closing, interval_s
        self._turns: tuple[dict[asyncio.Event, None], ...] = tuple({} for _ in range(_TURNS))
        self._seats = cycle(self._turns)
        self._members = 0
        self._tasks: list[asyncio.Task[None]] = []

    @contextmanager
    def bell(self) -> Iterator[asyncio.Event]:
        """Give a stream its bell for as long as it lives."""
        bell, turn = asyncio.Event(), next(self._seats)
        turn[bell] = None
        self._members += 1
        if self._members == 1:
            self._tasks = [asyncio.create_task(self._beat()), asyncio.create_task(self._close())]
        if self._closing.is_set():
            bell.set()
        try:
            yield bell
        finally:
            del turn[bell]
            self._members -= 1
            if not self._members:
                for task in self._tasks:
                    task.cancel()

    async def _beat(self) -> None:
        for turn in cycle(self._turns):
            await self._clock.sleep(self._interval_s / _TURNS)
            for bell in turn:
                bell.set()

    async def _close(self) -> None:
        await self._closing.wait()
        for turn in self._turns:
            for bell in turn:
                bell.set()


def in_sight(collection: Collection[Any, Any], change: Change[Any]) -> tuple[str, Any] | None:
    """Return what a change is to those who see only some objects, and the state to show."""
    before = change.resource if change.before is None else change.before
    was = change.type != "added" and _is_seen(collection, before)
    now = change.type != "deleted" and _is_seen(collection, change.resource)
    if now:
        return ("modified" if was else "added"), change.resource
    return ("deleted", before) if was else None


def _is_seen(collection: Collection[Any, Any], resource: Any) -> bool:
    if collection.index is not None:
        name, value = collection.index
        indexes = collection.store.registry.of(collection.kind).indexes
        if not any(value in index.values(resource) for index in indexes if index.name == name):
            return False
    return collection.visible is None or collection.visible(resource)


_HEADERS: tuple[Header, ...] = ((b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no"))
_PART_BYTES = 4 << 10
"""So much of what is there is sent at once: readers may be many, and not read."""
_ACCESS_CHANGED = "access_changed"
_RIGHTS_HOLD_S = 1.0
"""How long a stream that sends may rely on rights it has checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPorts:
    """What all streams of a server share."""

    clock: Clock
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set it, and every stream ends."""
    heartbeat_s: float = 15.0
    pulse: Pulse = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pulse", Pulse(self.clock, self.closing, self.heartbeat_s))


Renew = Callable[[], Awaitable[Principal]]


async def answer_watch(
    collection: Collection[Any, Any],
    *,
    last_event_id: str | None,
    principal: Principal,
    renew: Renew,
    ports: WatchPorts,
) -> Answer:
    """Answer with a stream, or raise Gone if it cannot resume where the reader was."""
    places, since = Places(principal.access), None
    if last_event_id:
        since = places.read(last_event_id)
        await _check_resumable(collection, since)
        places.check(last_event_id, collection.kind.__name__)
    stream = _Stream(collection, _Rights(principal, renew, ports), places, ports)
    return Answer(200, stream.events(since), _HEADERS)


async def _check_resumable(collection: Collection[Any, Any], version: str) -> None:
    """Raise what the store says to a watch from here, if it says it at once."""
    begun = asyncio.Event()

    async def begin(changes: AsyncIterator[Event[Any]]) -> None:
        begun.set()
        await anext(changes)

    async with _watching(collection, version) as changes:
        attempt = asyncio.create_task(begin(changes))
        await begun.wait()  # when we run again, the store has answered or waits for news
        if not attempt.done():
            await _end(attempt)
            return
        try:
            attempt.result()
        except Invalid:
            raise bad_place() from None


@asynccontextmanager
async def _watching(collection: Collection[Any, Any], since: str) -> AsyncIterator[AsyncIterator[Event[Any]]]:
    changes = collection.store.watch(collection.kind, since=since, labels=collection.labels)
    try:
        yield changes
    finally:
        await cast("AsyncGenerator[Event[Any]]", changes).aclose()


async def _end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError, RemudaError):
        await task


class _Rights:
    """The rights that a stream was opened with, for as long as they hold."""

    def __init__(self, principal: Principal, renew: Renew, ports: WatchPorts) -> None:
        self._principal, self._renew = principal, renew
        self._clock = ports.clock
        self._checked_at = self._clock.monotonic()

    async def lost(self, *, at_once: bool) -> str | None:
        """Return why they hold no more, looked up now, or not long ago if that is enough."""
        now = self._clock.monotonic()
        if at_once or now - self._checked_at > _RIGHTS_HOLD_S:
            try:
                renewed = await self._renew()
            except RemudaError as error:
                return error.code
            if renewed.access != self._principal.access:
                return _ACCESS_CHANGED
            self._principal, self._checked_at = renewed, now
        expires = self._principal.expires
        return "expired" if expires is not None and self._clock.now() >= expires else None


class _Stream:
    """One reader."""

    def __init__(self, collection: Collection[Any, Any], rights: _Rights, places: Places, ports: WatchPorts) -> None:
        self._collection, self._rights, self._places, self._ports = collection, rights, places, ports
        self._seen: str | None = None
        """The version up to which the reader's sight was followed."""
        self._told: str | None = None
        """The version the reader would resume from."""

    async def events(self, since: str | None) -> AsyncGenerator[bytes]:
        """Yield the stream until something ends it."""
        self._seen = self._told = since
        try:
            if since is None:
                async with aclosing(self._present()) as present:
                    async for chunk in present:
                        yield chunk
            async with aclosing(self._changes()) as changes:
                async for chunk in changes:
                    yield chunk
        except Gone as error:
            yield event("gone", msgspec.json.encode({"reason": error.sentence}), place="")
        except _EndedError as ended:
            yield self._end(ended.reason)
        except RemudaError as error:
            yield self._end(error.code)

    def _end(self, reason: str) -> bytes:
        place = "" if reason == _ACCESS_CHANGED else self._seen and self._places.write(self._seen)
        return event("end", msgspec.json.encode({"reason": reason}), place=place)

    async def _present(self) -> AsyncGenerator[bytes]:
        page = await read_items(self._collection, limit=SLICE)
        while True:
            for events in map(added_events, batches(self._collection.view, page.items, _PART_BYTES)):
                yield events
            if page.next is None:
                break
            await let_others_run()
            await self._go_on(at_once=False)
            page = await read_items(self._collection, limit=SLICE, after=page.next)
        self._seen = self._told = page.version
        yield event("bookmark", b'{"synced":true}', place=self._places.write(page.version))

    async def _changes(self) -> AsyncGenerator[bytes]:
        """Yield what happens from now on."""
        assert self._seen is not None, "a stream follows from a version"
        async with _watching(self._collection, self._seen) as changes:
            with self._ports.pulse.bell() as bell:
                while True:
                    pull = asyncio.create_task(_next(changes))
                    pull.add_done_callback(lambda _: bell.set())
                    try:
                        while not await self._is_pulled(pull, bell):
                            yield self._heartbeat()
                    finally:
                        await _end(pull)
                    chunk = self._shown(pull.result())
                    if chunk is not None:
                        yield chunk

    async def _is_pulled(self, pull: asyncio.Task[Event[Any]], bell: asyncio.Event) -> bool:
        """Wait for the bell; tell whether a change rang it, or only the pulse."""
        await bell.wait()
        bell.clear()
        await self._go_on(at_once=not pull.done())
        return pull.done()

    async def _go_on(self, *, at_once: bool) -> None:
        """Raise if the stream must end."""
        if self._ports.closing.is_set():
            raise _EndedError("closing")
        reason = await self._rights.lost(at_once=at_once)
        if reason is not None:
            raise _EndedError(reason)

    def _heartbeat(self) -> bytes:
        """Say something: where the reader may resume, if that has moved while it was told nothing."""
        if self._seen is None or self._seen == self._told:
            return HEARTBEAT
        self._told = self._seen
        return event("bookmark", b"{}", place=self._places.write(self._seen))

    def _shown(self, news: Event[Any]) -> bytes | None:
        """Return what the reader is told of a change, if anything."""
        self._seen = news.version
        if isinstance(news, Bookmark):
            return self._heartbeat()
        told = in_sight(self._collection, news)
        if told is None:
            return None
        self._told = news.version
        kind, resource = told
        view = self._collection.view
        return event(kind, bare(view, view(resource)), place=self._places.write(news.version))


class _EndedError(Exception):
    """The stream must end."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


async def _next(changes: AsyncIterator[Event[Any]]) -> Event[Any]:
    return await anext(changes)
