"""Sources: which change of which kind wakes which keys.

A source watches one kind from the version of a list, so that nothing between its beginning and its end goes unseen. It
hands on keys and nothing else: what happened is read by the reconciler, never carried to it. Objects that come (unless
they are said not to) or go always count; of the others only those whose `when` has changed since it was last seen.

A store in trouble only delays a source: it goes on after the last change it has handed on. If the store no longer
remembers that one (Gone), it begins anew, and says so: nobody knows what has happened meanwhile, least of all to what
is gone, so every key of the controller is due. A change that a faulty `when` or map cannot judge is told in the log and
passed over, since it would keep all others from coming; the next full scan looks after it.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, cast

import structlog

from remuda.kernel.errors import Gone, RemudaError
from remuda.reconcile.queue import Rank
from remuda.reconcile.results import Cause
from remuda.store.contract import Change, Event, Store
from remuda.store.objects import Resource, ResourceT

Keys = Callable[[ResourceT], Iterable[str] | Awaitable[Iterable[str]]]
"""Maps a changed object, or the last state of a deleted one, to the keys to look at."""

When = Callable[[ResourceT], Hashable]
"""What of an object has to change to matter. It is remembered by object, so let it be small."""

Add = Callable[[str, Cause, Rank], None]
"""Takes a key to be looked at."""

_PAGE = 500
_MOST_REMEMBERED = 100_000


def generation_changed(resource: Resource) -> Hashable:
    """Let through what changes the spec or requests deletion."""
    return resource.metadata.generation


def intent_changed(resource: Resource) -> Hashable:
    """Let through what a user or another controller may want of us: all but a status, and our own first finalizer.

    That is the spec, the deletion mark, annotations such as that of a pause, labels, and while it is marked the
    finalizers, whose going may be what its deletion waits for.
    """
    metadata = resource.metadata
    held = metadata.finalizers if resource.is_marked else ()
    said = frozenset(metadata.annotations.items()), frozenset(metadata.labels.items())
    return hash((metadata.generation, held, said))


def version_changed(resource: Resource) -> Hashable:
    """Let every change through."""
    return resource.version


def own_name(resource: Resource) -> Iterable[str]:
    """Map an object to itself."""
    return (resource.name,)


def owner_of(kind: type[Resource]) -> Keys[Any]:
    """Map an object to its owners of this kind."""

    def owners(resource: Resource) -> Iterable[str]:
        return [owner.name for owner in resource.metadata.owner_references if owner.kind == kind.__name__]

    return owners


def through(store: Store, kind: type[Resource], index: str, value_of: Callable[[ResourceT], str]) -> Keys[ResourceT]:
    """Map an object to all of `kind` that lie under its value in an index, such as the servers of a network."""

    async def under(resource: ResourceT) -> Iterable[str]:
        return [name async for name in names(store, kind, index=(index, value_of(resource)))]

    return under


def labelled(store: Store, kind: type[Resource], label: str) -> Keys[Any]:
    """Map an object to all of `kind` that carry its name as this label, such as the servers of a network."""

    async def carrying(resource: Resource) -> Iterable[str]:
        return [name async for name in names(store, kind, labels={label: resource.name})]

    return carrying


async def names(
    store: Store,
    kind: type[Resource],
    *,
    labels: Mapping[str, str] | None = None,
    index: tuple[str, str] | None = None,
) -> AsyncGenerator[str]:
    """Yield the name of every object, page by page."""
    after: str | None = None
    while True:
        page = await store.list_names(kind, labels=labels, index=index, limit=_PAGE, after=after)
        for name in page.items:
            yield name
        after = page.next
        if after is None:
            return


@dataclass(frozen=True, slots=True)
class Source(Generic[ResourceT]):
    """A kind to watch, what of it matters, and whom it concerns."""

    kind: type[ResourceT]
    when: When[ResourceT] = intent_changed
    keys: Keys[ResourceT] = own_name
    rank: Rank = Rank.USER
    arrivals: bool = True
    """Whether those that come count: where others wait for one to go, they do not."""


class Watcher(Generic[ResourceT]):
    """One source at work, as a duty: call `run` again when it fails."""

    def __init__(self, source: Source[ResourceT], store: Store, add: Add, *, began: Callable[[], None]) -> None:
        """Hand keys to `add`; call `began` whenever it watches from a new version, and has not told what was before."""
        self._source = source
        self._store = store
        self._add = add
        self._began = began
        self._version: str | None = None
        self._seen: dict[str, Hashable] = {}

    async def run(self) -> None:
        """Hand on what happens, for ever."""
        while True:
            version = await self._begin() if self._version is None else self._version
            try:
                await self._follow(version)
            except Gone:
                structlog.get_logger().info("source begins anew", kind=self._source.kind.__name__)
                self._version = None

    async def _begin(self) -> str:
        self._seen.clear()
        version = (await self._store.list_names(self._source.kind, limit=1)).version
        self._version = version
        self._began()
        return version

    async def _follow(self, version: str) -> None:
        watch = cast("AsyncGenerator[Event[ResourceT]]", self._store.watch(self._source.kind, since=version))
        async with aclosing(watch) as events:
            async for event in events:
                if isinstance(event, Change):
                    await self._notice(event)
                self._version = event.version

    async def _notice(self, change: Change[ResourceT]) -> None:
        try:
            keys = await self._keys(change.resource) if self._matters(change) else ()
        except Exception as error:
            self._seen.pop(change.resource.name, None)  # whatever comes next of it must matter
            if isinstance(error, RemudaError) and error.retry:
                raise
            kind = self._source.kind.__name__
            structlog.get_logger().exception("change not mapped to keys", kind=kind, name=change.resource.name)
            return
        for key in keys:
            self._add(key, "event", self._source.rank)

    def _matters(self, change: Change[ResourceT]) -> bool:
        if change.type == "added" and not self._source.arrivals:
            return False
        if self._source.when is version_changed:
            return True
        name = change.resource.name
        if change.type == "deleted":
            self._seen.pop(name, None)
            return True
        before, now = self._seen.get(name), self._source.when(change.resource)
        if len(self._seen) >= _MOST_REMEMBERED:
            self._seen.clear()  # costs a needless look at each that changes next, and keeps memory flat
        self._seen[name] = now
        return change.type == "added" or before is None or before != now

    async def _keys(self, resource: ResourceT) -> Iterable[str]:
        keys = self._source.keys(resource)
        return list(await keys if isinstance(keys, Awaitable) else keys)
