"""Watch sources: the changes of a kind, mapped to the keys to reconcile.

A source watches one kind from the version of a list, so that no change in between is missed. It passes on keys only:
the reconciler reads the state itself. Added objects (unless excluded) and deleted ones always count; of modified ones
only those whose `when` has changed.

A failing store only delays a source: it continues after the last change it has passed on. If the store no longer has
that version (Gone), the source restarts and reports so: any change may have been missed, deletions above all, so every
key of the controller is due. A change for which `when` or the map raises is logged and skipped, since it would block
all others; the next resync covers it.
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

KeyMapper = Callable[[ResourceT], Iterable[str] | Awaitable[Iterable[str]]]
"""Maps a changed object, or the last state of a deleted one, to the keys to reconcile."""

When = Callable[[ResourceT], Hashable]
"""Returns the part of an object whose changes matter. It is stored per object, so it should be small."""

Add = Callable[[str, Cause, Rank, float], None]
"""Enqueues a key, now or after a delay."""

Notice = Callable[[Resource], None]
"""Takes note of an object whose keys will be enqueued."""

_PAGE = 500
_MAX_STORED = 100_000


def intent_changed(resource: Resource) -> Hashable:
    """Select changes by users and other controllers: all but those of a status and of our own finalizer.

    These are the spec, the deletion time, annotations such as that of a pause, labels, and during deletion the
    finalizers, whose removal may be what the deletion waits for.
    """
    metadata = resource.metadata
    finalizers = metadata.finalizers if resource.is_deleting else ()
    texts = frozenset(metadata.annotations.items()), frozenset(metadata.labels.items())
    return hash((metadata.generation, finalizers, texts))


def version_changed(resource: Resource) -> Hashable:
    """Select every change."""
    return resource.version


def own_name(resource: Resource) -> Iterable[str]:
    """Map an object to itself."""
    return (resource.name,)


def owner_of(kind: type[Resource]) -> KeyMapper[Any]:
    """Map an object to its owners of this kind."""

    def owners(resource: Resource) -> Iterable[str]:
        return [owner.name for owner in resource.metadata.owner_references if owner.kind == kind.__name__]

    return owners


def indexed(
    store: Store, kind: type[Resource], index: str, value_of: Callable[[ResourceT], str]
) -> KeyMapper[ResourceT]:
    """Map an object to those of `kind` under its value in an index, such as the servers of a network."""

    async def matching(resource: ResourceT) -> Iterable[str]:
        return [name async for name in names(store, kind, index=(index, value_of(resource)))]

    return matching


def labelled(store: Store, kind: type[Resource], label: str) -> KeyMapper[Any]:
    """Map an object to those of `kind` with its name as this label, such as the servers of a network."""

    async def matching(resource: Resource) -> Iterable[str]:
        return [name async for name in names(store, kind, labels={label: resource.name})]

    return matching


async def names(
    store: Store, kind: type[Resource], *, labels: Mapping[str, str] | None = None, index: tuple[str, str] | None = None
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
    """A kind to watch, the changes that matter, and the keys they concern."""

    kind: type[ResourceT]
    when: When[ResourceT] = intent_changed
    keys: KeyMapper[ResourceT] = own_name
    concerns: Callable[[ResourceT], bool] = lambda _: True
    """Whether an object can have keys at all; of another one nothing is remembered."""
    rank: Rank = Rank.USER
    created: bool = True
    """Whether the creation of an object counts; not where other objects wait for a deletion."""
    created_delay_s: Callable[[ResourceT], float] = lambda _: 0.0
    """Returns the delay of an event for a creation, if another source reports when the object can be reconciled."""


class Watcher(Generic[ResourceT]):
    """The watch of one source, as a background task: call `run` again when it fails."""

    def __init__(
        self,
        source: Source[ResourceT],
        store: Store,
        add: Add,
        *,
        on_start: Callable[[], None],
        notice: Notice = lambda _: None,
    ) -> None:
        """Pass objects to `notice`, then their keys to `add`.

        `on_start` is called whenever the watch starts from a new version, without earlier changes.
        """
        self._source, self._store, self._add = source, store, add
        self._on_start, self._notice = on_start, notice
        self._version: str | None = None
        self._seen: dict[str, Hashable] = {}

    async def run(self) -> None:
        """Pass on changes, for ever."""
        while True:
            version = await self._begin() if self._version is None else self._version
            try:
                await self._follow(version)
            except Gone:
                structlog.get_logger().info("watch source restarted", kind=self._source.kind.__name__)
                self._version = None

    async def _begin(self) -> str:
        self._seen.clear()
        version = (await self._store.list_names(self._source.kind, limit=1)).version
        self._version = version
        self._on_start()
        return version

    async def _follow(self, version: str) -> None:
        watch = cast("AsyncGenerator[Event[ResourceT]]", self._store.watch(self._source.kind, since=version))
        async with aclosing(watch) as events:
            async for event in events:
                if isinstance(event, Change):
                    await self._handle(event)
                self._version = event.version

    async def _handle(self, change: Change[ResourceT]) -> None:
        try:
            keys = await self._keys(change.resource) if self._matters(change) else ()
        except Exception as error:
            self._seen.pop(change.resource.name, None)  # the next change of it must count
            if isinstance(error, RemudaError) and error.retry:
                raise
            kind = self._source.kind.__name__
            structlog.get_logger().exception("change not mapped to keys", kind=kind, name=change.resource.name)
            return
        if keys:
            self._notice(change.resource)
        delay_s = self._source.created_delay_s(change.resource) if change.type == "added" else 0.0
        for key in keys:
            self._add(key, "event", self._source.rank, delay_s)

    def _matters(self, change: Change[ResourceT]) -> bool:
        source, name = self._source, change.resource.name
        if (change.type == "added" and not source.created) or not source.concerns(change.resource):
            return False
        if source.when is version_changed:
            return True
        if change.type == "deleted":
            self._seen.pop(name, None)
            return True
        before, now = self._seen.get(name), source.when(change.resource)
        if len(self._seen) >= _MAX_STORED:
            self._seen.clear()  # bounds memory, at the cost of an unnecessary reconcile each
        self._seen[name] = now
        return change.type == "added" or before is None or before != now

    async def _keys(self, resource: ResourceT) -> Iterable[str]:
        keys = self._source.keys(resource)
        if isinstance(keys, tuple | list):  # almost always, and the check below takes longer than the rest
            return keys
        return list(await keys if isinstance(keys, Awaitable) else keys)
