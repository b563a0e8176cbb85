"""List-watch of another service: the present objects of a list, then each change, without end.

The lists of the service's API are watched with the permissions that the reader has at the time; a service's role may
read all tenants. In this process the objects are watched in the store, otherwise the route is watched over HTTP. Both
send the same messages in the same order, and raise the same error if retrying does not help, such as a missing
permission.

No change is missed. An interrupted connection is resumed. If the changes since are no longer known, or the reader's
permissions have changed, the list starts over: an object that is not among those between `Restarted` and `Synced` was
deleted.

A message may have a cursor: every change up to there was sent. A later watch, also of another process, can begin after
it. That one sends the changes since, or starts with the list if they are not known any more.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from remuda.access.principal import Context, Principal
from remuda.clients.delegation import ServicePrincipal
from remuda.http.pagination import Cursors
from remuda.http.responses import Collection, EtagView
from remuda.http.routes import AnyRoute
from remuda.http.watch import visible_change
from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.errors import Gone, Malformed
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.store.contract import Change, Store
from remuda.store.objects import Resource

if TYPE_CHECKING:  # slow to import, and not needed if all services run in one process
    from remuda.http.client import Client, WatchEvent

ItemT = TypeVar("ItemT")

_PAGE = 50
_PAUSE = Backoff(0.1, 10.0)


@dataclass(frozen=True, slots=True)
class Changed(Generic[ItemT]):
    """Message: an object exists, has changed, or was deleted."""

    type: Literal["added", "modified", "deleted"]
    item: ItemT
    """The object; if it was deleted, its last state."""
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Restarted:
    """Message: the list starts, or starts over. All present objects follow."""


@dataclass(frozen=True, slots=True)
class Synced:
    """Message: all present objects were sent since `Restarted`. Changes follow."""

    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Reached:
    """Message: nothing else has changed up to this cursor."""

    cursor: str


WatchMessage = Restarted | Changed[ItemT] | Synced | Reached

ListObjects = Callable[[Context], Awaitable[Collection[Any, Any]]]
"""Returns the collection of a route, for the reader of a context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalWatch:
    """Watches lists of a service in this process."""

    reader: ServicePrincipal
    clock: Clock
    randomness: Randomness
    watched: Store | None = None
    """The store to watch, if it is not the service's own."""

    async def messages(
        self, list_objects: ListObjects, decode: Callable[[bytes], Any], since: str = ""
    ) -> AsyncGenerator[WatchMessage[Any]]:
        failures = 0
        while True:
            reader = await self.reader()
            collection = await list_objects(Context(principal=reader, operation=random_id(self.randomness)))
            try:
                async with aclosing(
                    self._round(collection, item_reader(collection, decode), reader, since)
                ) as messages:
                    async for message in messages:
                        failures = 0 if isinstance(message, Synced) else failures
                        yield message
            except Gone:
                pass
            since = ""
            failures += 1
            await self.clock.sleep(_PAUSE.pause_s(failures, self.randomness))

    async def _round(
        self, collection: Collection[Any, Any], read: Callable[[Any], Any], reader: Principal, since: str
    ) -> AsyncGenerator[WatchMessage[Any]]:
        """Yield messages until the permissions of the reader change."""
        store, cursors = self.watched or collection.store, Cursors(reader.access)
        if not since:
            async for message in _present(store, collection, read, cursors):
                yield message
                since = message.cursor if isinstance(message, Synced) else ""
        version = _version_of(since, cursors, collection.kind)
        changes = cast("AsyncGenerator[Any]", collection.changes(store, version))
        async with aclosing(changes):
            async for event in changes:
                if (await self.reader()).access != reader.access:
                    return
                if not isinstance(event, Change):
                    yield Reached(cursors.write(event.version))
                elif (visible := visible_change(collection, event)) is not None:
                    type_ = cast("Literal['added', 'modified', 'deleted']", visible[0])
                    yield Changed(type_, read(visible[1]), cursors.write(event.version))


async def _present(
    store: Store, collection: Collection[Any, Any], read: Callable[[Any], Any], cursors: Cursors
) -> AsyncGenerator[WatchMessage[Any]]:
    yield Restarted()
    page = first = await store.list(collection.kind, **collection.listed, limit=_PAGE)
    while True:
        for resource in page.items:
            if collection.visible is None or collection.visible(resource):
                yield Changed("added", read(resource))
        if page.next is None:
            break
        await yield_to_loop()
        page = await store.list(collection.kind, **collection.listed, limit=_PAGE, after=page.next)
    yield Synced(cursors.write(first.version))


def _version_of(cursor: str, cursors: Cursors, kind: type[Resource]) -> str:
    """Return the version of a cursor. Raise Gone if it is invalid, or was issued under other permissions."""
    try:
        version = cursors.read(cursor)
    except Malformed:
        raise Gone(kind.__name__, cursor) from None
    cursors.check(cursor, kind.__name__)
    return version


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWatch:
    """Watches lists of a service in another process."""

    client: "Client"
    """The client with the reader's credentials. It resumes interrupted connections."""
    clock: Clock
    randomness: Randomness

    async def messages(self, route: AnyRoute, since: str = "") -> AsyncGenerator[WatchMessage[Any]]:
        failures = 0
        while True:
            if not since:
                yield Restarted()
            try:
                async with aclosing(self.client.watch(route, since=since or None)) as events:
                    async for event in events:
                        failures = 0 if event.type == "synced" else failures
                        yield _message_of(event)
            except (Gone, Malformed) as error:
                if isinstance(error, Malformed) and not since:
                    raise
                since = ""
                failures += 1
                await self.clock.sleep(_PAUSE.pause_s(failures, self.randomness))


def _message_of(event: "WatchEvent[Any]") -> WatchMessage[Any]:
    cursor = event.version or ""
    match event.type:
        case "synced":
            return Synced(cursor)
        case "bookmark":
            return Reached(cursor)
        case type_:
            return Changed(type_, event.item, cursor)


def item_reader(collection: Collection[Any, Any], decode: Callable[[bytes], Any]) -> Callable[[Any], Any]:
    """Return the function that converts a stored object of a collection into its schema."""
    if isinstance(collection.view, EtagView):
        view, reader = collection.view, collection.reader
        return lambda resource: view.of(reader, resource).read(resource)
    return lambda resource: decode(collection.view(resource))
