"""Following what another service has, wherever it is: everything that is there, then each change, without end.

A service's own lists are what is followed, with the rights of the one who follows, as they are at the time: who may
read everywhere hears of all tenants. In this process the list's objects are watched in the store; elsewhere its route
is, over HTTP. Either way the same is told in the same order, and what does not pass by itself (a right that is
missing) is raised as the same error.

Nothing is missed. A connection that breaks goes on where it was. Where changes alone do not tell any more (the reader
was away for too long, its rights have changed), everything is told anew: what was known before and is not told between
`Anew` and `Synced` is gone.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, cast

from remuda.access.principal import Context, Principal
from remuda.clients.transport import ServiceNow, by_name
from remuda.http.invocation import invocations
from remuda.http.responses import Collection
from remuda.http.routes import NOTHING, Call, ListQuery, Table
from remuda.http.watch import visible_change
from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.errors import Gone
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.store.contract import Change, Store

if TYPE_CHECKING:  # takes long to import, and who has everything in one process needs none
    from remuda.http.client import Client


ItemT = TypeVar("ItemT")

_PAGE = 50
_PAUSE = Backoff(0.1, 10.0)


@dataclass(frozen=True, slots=True)
class Followed(Generic[ItemT]):
    """A list that can be followed."""

    route: str
    """The route's name. Its query has nothing that has to be said."""
    item: type[ItemT]
    read: Callable[[Any], ItemT]
    """Returns a stored object as clients read it."""


@dataclass(frozen=True, slots=True)
class Told(Generic[ItemT]):
    """One of them is there, has changed, or is gone."""

    type: Literal["added", "modified", "deleted"]
    item: ItemT
    """Of a deleted one, its last state."""


@dataclass(frozen=True, slots=True)
class Anew:
    """From here on all that is there is told, at the beginning and whenever it has to be told again."""


@dataclass(frozen=True, slots=True)
class Synced:
    """All that is there has been told, since the last `Anew`. What follows are changes."""


News = Told[ItemT] | Anew | Synced
"""What is told."""


class Watch(Protocol):
    """Follows a service's lists."""

    def __call__(self, followed: Followed[ItemT]) -> AsyncGenerator[News[ItemT]]:
        """Yield what there is, then what happens, without end; raise what does not pass by itself."""
        ...


class WatchHere:
    """Follows a service in this process."""

    def __init__(
        self,
        table: Table,
        services: object,
        *,
        reader: ServiceNow,
        clock: Clock,
        randomness: Randomness,
        watched: Store | None = None,
    ) -> None:
        """Take the service's table and what its routes call, who reads it, and what is watched if not its own store."""
        self._routes, self._invocations, self._reader = by_name(table), invocations(table, services), reader
        self._clock, self._randomness, self._watched = clock, randomness, watched

    async def __call__(self, followed: Followed[ItemT]) -> AsyncGenerator[News[ItemT]]:
        """Yield what there is, then what happens, from the service's store."""
        failures = 0
        while True:
            reader = await self._reader()
            collection = await self._collection(followed, reader)
            try:
                async with aclosing(self._news(collection, followed, reader)) as news:
                    async for each in news:
                        failures = 0 if isinstance(each, Synced) else failures
                        yield each
            except Gone:
                pass
            failures += 1
            await self._clock.sleep(_PAUSE.pause_s(failures, self._randomness))

    async def _collection(self, followed: Followed[Any], reader: Principal) -> Collection[Any, Any]:
        route = self._routes[followed.route]
        query = cast("ListQuery", route.query_type())
        context = Context(principal=reader, operation=random_id(self._randomness))
        call: Call[Any, Any, Any] = Call(context=context, path=NOTHING, query=query, body=NOTHING)
        return cast("Collection[Any, Any]", await self._invocations[route.name](call))

    async def _news(
        self, collection: Collection[Any, Any], followed: Followed[ItemT], reader: Principal
    ) -> AsyncGenerator[News[ItemT]]:
        """Yield what a reader is told for as long as its rights are what they were."""
        store, kind, labels = self._watched or collection.store, collection.kind, collection.labels
        yield Anew()
        page = first = await store.list(kind, labels=labels, index=collection.index, limit=_PAGE)
        while True:
            for resource in page.items:
                if collection.visible is None or collection.visible(resource):
                    yield Told("added", followed.read(resource))
            if page.next is None:
                break
            await yield_to_loop()
            page = await store.list(kind, labels=labels, index=collection.index, limit=_PAGE, after=page.next)
        yield Synced()
        changes = cast("AsyncGenerator[Any]", store.watch(kind, since=first.version, labels=labels))
        async with aclosing(changes):
            async for event in changes:
                if (await self._reader()).access != reader.access:
                    return
                seen = visible_change(collection, event) if isinstance(event, Change) else None
                if seen is not None:
                    type_, resource = seen
                    yield Told(cast("Literal['added', 'modified', 'deleted']", type_), followed.read(resource))


class WatchThere:
    """Follows a service in another process."""

    def __init__(self, table: Table, client: "Client", *, clock: Clock, randomness: Randomness) -> None:
        """Take the service's table, and a client that has the reader's credentials."""
        self._routes, self._client = by_name(table), client
        self._clock, self._randomness = clock, randomness

    async def __call__(self, followed: Followed[ItemT]) -> AsyncGenerator[News[ItemT]]:
        """Yield what there is, then what happens, as the service streams it; the client sees to broken connections."""
        route, failures = self._routes[followed.route], 0
        while True:
            yield Anew()
            try:
                async with aclosing(self._client.watch(route)) as stream:
                    async for seen in stream:
                        if seen.type == "synced":
                            failures = 0
                            yield Synced()
                        elif seen.type != "bookmark":
                            yield Told(seen.type, cast("ItemT", seen.item))
            except Gone:
                failures += 1
                await self._clock.sleep(_PAUSE.pause_s(failures, self._randomness))
