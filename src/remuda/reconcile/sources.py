"""Sources: which change of which kind wakes which keys.

A source watches one kind from the version of a list, so that nothing between its beginning and its end goes unseen. It
hands on keys and nothing else: what happened is read by the reconciler, never carried to it. Objects that come or go
always count; of the others only those whose `when` has changed since it was last seen.

A store in trouble only delays a source: it goes on after the last change it has handed on. If the store no longer
remembers that one (Gone), the kind is listed and every key handed on. A change that a faulty map cannot map is told in
the log and passed over, since it would keep all others from coming; the next full scan looks after it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Generic

import structlog

from remuda.kernel.errors import Gone, RemudaError
from remuda.reconcile.queue import Rank
from remuda.reconcile.run import Cause
from remuda.store.contract import Change, Store
from remuda.store.objects import Resource, ResourceT

__all__ = [
    "Add",
    "Keys",
    "Source",
    "Watcher",
    "When",
    "generation_changed",
    "intent_changed",
    "names",
    "own_name",
    "owner_of",
    "through",
    "version_changed",
]

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


async def names(store: Store, kind: type[Resource], *, index: tuple[str, str] | None = None) -> AsyncIterator[str]:
    """Yield the name of every object, page by page."""
    after: str | None = None
    while True:
        page = await store.list(kind, index=index, limit=_PAGE, after=after)
        for resource in page.items:
            yield resource.name
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


class Watcher(Generic[ResourceT]):
    """One source at work, as a duty: call `run` again when it fails."""

    def __init__(self, source: Source[ResourceT], store: Store, add: Add, *, began: Callable[[], None]) -> None:
        self._source = source
        self._store = store
        self._add = add
        self._began = began
        self._version: str | None = None
        self._seen: dict[str, Hashable] = {}

    async def run(self) -> None:
        """Hand on what happens, for ever."""
        if self._version is None:
            self._version = (await self._store.list(self._source.kind, limit=1)).version
            self._began()
        while True:
            try:
                await self._follow(self._version)
            except Gone:
                self._version = await self._relist()

    async def _follow(self, version: str) -> None:
        async for event in self._store.watch(self._source.kind, since=version):
            if isinstance(event, Change):
                await self._notice(event)
            self._version = event.version

    async def _relist(self) -> str:
        """Hand on every key, for nobody knows what has happened meanwhile; return where to go on."""
        structlog.get_logger().info("source lists again", kind=self._source.kind.__name__)
        self._seen.clear()
        page = await self._store.list(self._source.kind, limit=_PAGE)
        version = page.version
        while True:
            for resource in page.items:
                await self._hand_on(resource, "start", Rank.ROUTINE)
            if page.next is None:
                return version
            page = await self._store.list(self._source.kind, limit=_PAGE, after=page.next)

    async def _notice(self, change: Change[ResourceT]) -> None:
        if not self._matters(change):
            return
        try:
            await self._hand_on(change.resource, "event", self._source.rank)
        except RemudaError:
            self._seen.pop(change.resource.name, None)  # it comes again, and must matter again
            raise

    def _matters(self, change: Change[ResourceT]) -> bool:
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

    async def _hand_on(self, resource: ResourceT, cause: Cause, rank: Rank) -> None:
        try:
            keys = self._source.keys(resource)
            if isinstance(keys, Awaitable):
                keys = await keys
        except RemudaError as error:
            if error.retry:
                raise
            self._pass_over(resource)
        except Exception:  # noqa: BLE001  a fault in one map must not stop the others
            self._pass_over(resource)
        else:
            for key in keys:
                self._add(key, cause, rank)

    def _pass_over(self, resource: ResourceT) -> None:
        kind = self._source.kind.__name__
        structlog.get_logger().exception("change not mapped to keys", kind=kind, name=resource.name)
