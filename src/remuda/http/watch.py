"""Watches: a collection as a stream of server-sent events.

`added`, `modified` and `deleted` carry an item as the list shows it (the last state of a deleted one), and as `id` the
cursor to resume from. A stream without `Last-Event-ID` begins with the present objects, as `added` without ids, and
then a `bookmark` that says `synced`. Later bookmarks let an idle reader resume too; comments are heartbeats. A cursor
that is too old, or was issued under other permissions, gets 410; later, the event `gone`. The event `end` says why the
server closed the stream. After `access_changed` the reader has to start over.

A reader sees only what it may see: an object that becomes invisible arrives as deleted, in the last visible state, and
one that becomes visible as added. Its previous state comes from the store, if labels or declared indexes changed.
Nothing is buffered for a reader: the next change is read after the last one was sent.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, NamedTuple, cast

import msgspec

from remuda.access.principal import Principal
from remuda.http.pagination import SLICE, Cursors, SliceReader, batches, invalid_cursor
from remuda.http.responses import Collection, Header, Response, without_etag
from remuda.http.sse import HEARTBEAT, added_events, sse_event
from remuda.http.watch_slots import OpenWatch, WatchSlots
from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.errors import Gone, Invalid, RemudaError
from remuda.store.contract import Bookmark, Change, Event

_SLOTS = 16


class Heartbeat:
    """Heartbeat for many streams: wakes each once in an interval, and all when `closing` is set.

    One ticker wakes all idle streams, a few at each tick, so a thousand streams need one timer and do not wake
    together. It runs while there are streams.
    """

    def __init__(self, clock: Clock, closing: asyncio.Event, interval_s: float) -> None:
        self._clock, self._closing, self._interval_s = clock, closing, interval_s
        self._slots: tuple[dict[asyncio.Event, None], ...] = tuple({} for _ in range(_SLOTS))
        self._next_slot = cycle(self._slots)
        self._members = 0
        self._tasks: list[asyncio.Task[None]] = []

    @contextmanager
    def wakeup(self) -> Iterator[asyncio.Event]:
        """Register a stream for as long as the block lasts, and return the event that wakes it."""
        wakeup, slot = asyncio.Event(), next(self._next_slot)
        slot[wakeup] = None
        self._members += 1
        if self._members == 1:
            self._tasks = [asyncio.create_task(self._beat()), asyncio.create_task(self._close())]
        if self._closing.is_set():
            wakeup.set()
        try:
            yield wakeup
        finally:
            del slot[wakeup]
            self._members -= 1
            if not self._members:
                for task in self._tasks:
                    task.cancel()

    async def _beat(self) -> None:
        for slot in cycle(self._slots):
            await self._clock.sleep(self._interval_s / _SLOTS)
            for wakeup in slot:
                wakeup.set()

    async def _close(self) -> None:
        await self._closing.wait()
        for slot in self._slots:
            for wakeup in slot:
                wakeup.set()


def visible_change(collection: Collection[Any, Any], change: Change[Any]) -> tuple[str, Any] | None:
    """Return the type of a change for readers who see only some objects, and its state; None if invisible."""
    before = change.resource if change.before is None else change.before
    was = change.type != "added" and _is_visible(collection, before)
    now = change.type != "deleted" and _is_visible(collection, change.resource)
    if now:
        return ("modified" if was else "added"), change.resource
    return ("deleted", before) if was else None


def _is_visible(collection: Collection[Any, Any], resource: Any) -> bool:
    if collection.index is not None:
        name, value = collection.index
        indexes = collection.store.registry.of(collection.kind).indexes
        if not any(value in index.values(resource) for index in indexes if index.name == name):
            return False
    return collection.visible is None or collection.visible(resource)


_HEADERS: tuple[Header, ...] = ((b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no"))
HEARTBEAT_S = 15.0
"""Time between two heartbeats of an idle stream, unless a service needs another one."""
_PART_BYTES = 4 << 10
"""Size of a chunk of the initial objects: there may be many readers, which may not read."""
_SLICE_BYTES = 32 << 10
"""Rendered objects that a reader may occupy that does not read."""
_ACCESS_CHANGED = "access_changed"
_ACCESS_VALID_S = 1.0
"""Time for which a busy stream may rely on permissions that it has checked, if it knows of no change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPorts:
    """Dependencies that all streams of a server share."""

    clock: Clock
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Ends every stream when it is set."""
    heartbeat_s: float = HEARTBEAT_S
    access_version: Callable[[], int] = lambda: 0
    """Returns a number that changes whenever permissions may have changed (`Authenticator.access_version`)."""
    slots: WatchSlots = field(default_factory=WatchSlots)
    heartbeat: Heartbeat = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "heartbeat", Heartbeat(self.clock, self.closing, self.heartbeat_s))


Renew = Callable[[], Awaitable[Principal]]


async def watch_response(
    collection: Collection[Any, Any],
    *,
    last_event_id: str | None,
    principal: Principal,
    host: str,
    renew: Renew,
    ports: WatchPorts,
) -> Response:
    """Return the response with a stream.

    Raise TooManyWatches or NoFreeWatch if there is no slot for this reader and its host, and Gone if the stream
    cannot resume from the reader's cursor.
    """
    reader = _Reader(principal, host)
    ports.slots.check(principal=principal, host=host)
    cursors, since = Cursors(principal.access), None
    if last_event_id:
        since = cursors.read(last_event_id)
        await _check_resumable(collection, since)
        cursors.check(last_event_id, collection.kind.__name__)
    stream = _Stream(collection, _AccessCheck(principal, renew, ports), cursors, ports, reader)
    return Response(200, stream.events(since), _HEADERS)


async def _check_resumable(collection: Collection[Any, Any], version: str) -> None:
    """Raise the store's immediate error for a watch from this version, if there is one."""
    begun = asyncio.Event()

    async def begin(changes: AsyncIterator[Event[Any]]) -> None:
        begun.set()
        await anext(changes)

    async with _watching(collection, version) as changes:
        attempt = asyncio.create_task(begin(changes))
        await begun.wait()  # when this task continues, the store has returned or waits for a change
        if not attempt.done():
            await _end(attempt)
            return
        try:
            attempt.result()
        except Invalid:
            raise invalid_cursor() from None


@asynccontextmanager
async def _watching(collection: Collection[Any, Any], since: str) -> AsyncIterator[AsyncIterator[Event[Any]]]:
    changes = collection.changes(collection.store, since)
    try:
        yield changes
    finally:
        await cast("AsyncGenerator[Event[Any]]", changes).aclose()


async def _end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError, RemudaError):
        await task


class _AccessCheck:
    """The permissions that a stream was opened with, for as long as they are valid."""

    def __init__(self, principal: Principal, renew: Renew, ports: WatchPorts) -> None:
        self._principal, self._renew = principal, renew
        self._clock, self._access_version = ports.clock, ports.access_version
        self._checked_at = self._clock.monotonic()
        self._version: int | None = None

    async def lost(self, *, at_once: bool) -> str | None:
        """Return why they are no longer valid, checked now, or recently if that is enough and nothing has changed."""
        now, version = self._clock.monotonic(), self._access_version()
        if at_once or now - self._checked_at > _ACCESS_VALID_S or version != self._version:
            try:
                renewed = await self._renew()
            except RemudaError as error:
                return error.code
            if renewed.access != self._principal.access:
                return _ACCESS_CHANGED
            self._principal, self._checked_at, self._version = renewed, now, version
        expires = self._principal.expires
        return "expired" if expires is not None and self._clock.now() >= expires else None


class _Reader(NamedTuple):
    """Reader of a stream, and its host."""

    principal: Principal
    host: str


class _Stream:
    """Stream of one reader."""

    def __init__(
        self,
        collection: Collection[Any, Any],
        access: _AccessCheck,
        cursors: Cursors,
        ports: WatchPorts,
        reader: _Reader,
    ) -> None:
        self._collection, self._access, self._cursors, self._ports = collection, access, cursors, ports
        self._reader = reader
        self._watch: OpenWatch | None = None
        self._read_up_to: str | None = None
        """Version up to which changes were read."""
        self._sent: str | None = None
        """Version that the reader would resume from."""

    async def events(self, since: str | None) -> AsyncGenerator[bytes]:
        self._read_up_to = self._sent = since
        try:
            # The slot is taken here: a stream that was never begun would not release it.
            with self._ports.slots.acquire(principal=self._reader.principal, host=self._reader.host) as watch:
                self._watch = watch
                if since is None:
                    async with aclosing(self._present()) as present:
                        async for chunk in present:
                            yield chunk
                async with aclosing(self._changes()) as changes:
                    async for chunk in changes:
                        yield chunk
        except Gone as error:
            yield sse_event("gone", msgspec.json.encode({"reason": error.message}), cursor="")
        except _EndedError as ended:
            yield self._end(ended.reason)
        except RemudaError as error:
            yield self._end(error.code)

    def _end(self, reason: str) -> bytes:
        cursor = "" if reason == _ACCESS_CHANGED else self._read_up_to and self._cursors.write(self._read_up_to)
        return sse_event("end", msgspec.json.encode({"reason": reason}), cursor=cursor)

    async def _present(self) -> AsyncGenerator[bytes]:
        slices = SliceReader(self._collection, most=SLICE, slice_bytes=_SLICE_BYTES)
        page = await slices.read()
        while True:
            for events in map(added_events, batches(self._collection.view, page.items, _PART_BYTES)):
                yield events
            if page.next is None:
                break
            await yield_to_loop()
            await self._check_open(at_once=False)
            page = await slices.read(page.next)
        self._read_up_to = self._sent = page.version
        yield sse_event("bookmark", b'{"synced":true}', cursor=self._cursors.write(page.version))

    async def _changes(self) -> AsyncGenerator[bytes]:
        assert self._read_up_to is not None, "a stream follows from a version"
        async with _watching(self._collection, self._read_up_to) as changes:
            with self._ports.heartbeat.wakeup() as wakeup:
                if self._watch is not None:
                    self._watch.wake_with(wakeup)
                while True:
                    pull = asyncio.create_task(_next(changes))
                    pull.add_done_callback(lambda _: wakeup.set())
                    try:
                        while not await self._wait_for_change(pull, wakeup):
                            yield self._heartbeat()
                    finally:
                        await _end(pull)
                    chunk = self._event(pull.result())
                    if chunk is not None:
                        yield chunk

    async def _wait_for_change(self, pull: asyncio.Task[Event[Any]], wakeup: asyncio.Event) -> bool:
        """Wait until woken; return whether by a change, rather than the heartbeat."""
        await wakeup.wait()
        wakeup.clear()
        await self._check_open(at_once=not pull.done())
        return pull.done()

    async def _check_open(self, *, at_once: bool) -> None:
        if self._ports.closing.is_set():
            raise _EndedError("closing")
        if self._watch is not None and self._watch.is_displaced:
            raise _EndedError("displaced")
        reason = await self._access.lost(at_once=at_once)
        if reason is not None:
            raise _EndedError(reason)

    def _heartbeat(self) -> bytes:
        """Return a heartbeat: a bookmark, if the cursor has moved since the last event."""
        if self._read_up_to is None or self._read_up_to == self._sent:
            return HEARTBEAT
        self._sent = self._read_up_to
        return sse_event("bookmark", b"{}", cursor=self._cursors.write(self._read_up_to))

    def _event(self, change: Event[Any]) -> bytes | None:
        self._read_up_to = change.version
        if isinstance(change, Bookmark):
            return self._heartbeat()
        visible = visible_change(self._collection, change)
        if visible is None:
            return None
        self._sent = change.version
        kind, resource = visible
        view = self._collection.view_of(resource)
        return sse_event(kind, without_etag(view, view(resource)), cursor=self._cursors.write(change.version))


class _EndedError(Exception):
    """Raised when the stream must end."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


async def _next(changes: AsyncIterator[Event[Any]]) -> Event[Any]:
    return await anext(changes)
