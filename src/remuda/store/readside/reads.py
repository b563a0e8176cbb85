"""Reading half of the store contract, the same for every backend: get, list, watch, and bookmarks.

A watch is a cursor that follows a feed, and reads the history in the tables if the feed's tail begins later.
"""

import re
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, Unpack

import apsw

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Gone, Invalid, Unreadable, Unsealable
from remuda.store.contract import (
    Bookmark,
    Change,
    Dependency,
    Event,
    IndexEntry,
    ListOptions,
    Mark,
    Page,
    RecentChanges,
    Referrer,
    Rendering,
    View,
    label_index,
)
from remuda.store.kinds import Kind, Registry
from remuda.store.logs import DEFAULT_RETENTION, Retention
from remuda.store.objects import Resource, ResourceT, at_version
from remuda.store.readside.change_feed import CommittedChange, found_under
from remuda.store.readside.history import DEFAULT_HISTORY_BYTES
from remuda.store.readside.reader import Reader
from remuda.store.readside.sql import storage_error
from remuda.store.readside.tables import ADDED, DELETED, MODIFIED, Revision
from remuda.store.validation import check_selector

_SLICE = 100
"""Changes that are read before other tasks run."""
_TYPES = {ADDED: "added", MODIFIED: "modified", DELETED: "deleted"}


async def watch(
    reader: Reader,
    kind: Kind[ResourceT],
    *,
    since: str,
    labels: Mapping[str, str] | None,
    any_of: Sequence[IndexEntry] | None,
) -> AsyncIterator[Event[ResourceT]]:
    """Yield every change of a kind after `since`, and a bookmark from time to time."""
    check_selector(labels or {})
    kind.check_indexed(labels or {})
    watched = WatchFilter(kind, labels or {}, any_of)
    cursor = _parse(since)
    feed = reader.feed(kind)
    await feed.reach(cursor, reader.settings.ahead_timeout_s)
    if cursor < feed.floor:
        raise Gone(kind.name, since)
    reported, ticks = cursor, feed.ticks
    while True:
        changes = feed.after(cursor, limit=_SLICE)
        if changes is None:
            if cursor < feed.floor:
                raise Gone(kind.name, str(cursor))
            changes = _history(reader, kind, after=cursor)
        for change in changes:
            cursor = change.version
            event = watched.event(change)
            if event is not None:
                reported = cursor
                yield event
        if len(changes) == _SLICE:
            await reader.pause()
        if changes:
            continue
        cursor = max(cursor, feed.reached)
        if ticks != feed.ticks and cursor > reported:
            ticks, reported = feed.ticks, cursor
            yield Bookmark(str(cursor))
        else:
            ticks = feed.ticks
            cursor = max(cursor, await feed.wait(watched.entries))


class WatchFilter(Generic[ResourceT]):
    """The filter of a watch: objects with all of some labels, under at least one of some index entries."""

    def __init__(
        self, kind: Kind[ResourceT], labels: Mapping[str, str], any_of: Collection[IndexEntry] | None = None
    ) -> None:
        self._kind, self._labels = kind, labels
        self._any_of = None if any_of is None else frozenset(any_of)

    @property
    def entries(self) -> Sequence[IndexEntry] | None:
        """Index entries under one of which each change of the watch is; None if there are none to wait for."""
        if self._any_of is not None:
            return tuple(self._any_of)
        return tuple((label_index(key), value) for key, value in self._labels.items())[:1] or None

    def event(self, change: CommittedChange[ResourceT]) -> Change[ResourceT] | None:
        """Return the event of a change for the watcher, if there is one."""
        event, before = change.event, change.before
        if before is None:
            return event if self._is_in(event.resource) else None
        was = self._is_in(before)
        now = change.code != DELETED and self._is_in(event.resource)
        if now:
            return event if was else Change("added", event.version, event.resource)
        return Change("deleted", event.version, at_version(before, event.version)) if was else None

    def _is_in(self, resource: ResourceT) -> bool:
        if self._labels and not self._labels.items() <= resource.metadata.labels.items():
            return False
        return self._any_of is None or not self._any_of.isdisjoint(found_under(self._kind, resource))


def committed_change(
    revision: Revision, resource: ResourceT, before: ResourceT | None, *, fully_known: bool = False
) -> CommittedChange[ResourceT]:
    event: Change[Any] = Change(_TYPES[revision.change], str(revision.version), resource, before)  # type: ignore[arg-type]  # the code stands for one of the types
    weight = len(revision.document)
    return CommittedChange(revision.name, revision.version, revision.change, event, before, weight, fully_known)


def _history(reader: Reader, kind: Kind[ResourceT], *, after: int) -> Sequence[CommittedChange[ResourceT]]:
    with reader.storage:
        rows = reader.tables.changes(reader.names.kind(kind), after=after, limit=_SLICE)
    return [_read(reader, kind, row) for row in rows]


def _read(reader: Reader, kind: Kind[ResourceT], row: Revision) -> CommittedChange[ResourceT]:
    try:
        before = reader.decode(kind, row.before, row.name) if row.before is not None else None
        return committed_change(row, reader.decode(kind, row.document, row.name), before)
    except (Unreadable, Unsealable):  # a superseded revision may be sealed with a removed key: the watcher lists again
        raise Gone(kind.name, str(row.version)) from None


_VERSION = re.compile(r"[0-9]{1,18}")


def _parse(version: str) -> int:
    if not _VERSION.fullmatch(version):
        raise Invalid(
            "resourceVersion", "is not a version of this store", remedy="use the version of a list or an event"
        )
    return int(version)


class Reads:
    """Get, list and watch on a reader. A backend adds the writes."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.registry: Registry = reader.registry

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        cached = self._reader.cached(kind, name)
        if cached is not None:
            return cached
        try:  # without the context manager `storage`, which takes as long as the read
            return self._reader.get(self.registry.of(kind), name)
        except apsw.Error as error:
            raise storage_error(self._reader.storage.path, error) from None

    async def get_view(self, kind: type[ResourceT], name: str, view: View[ResourceT]) -> bytes:
        try:  # same
            return self._reader.view(self.registry.of(kind), name, view)
        except apsw.Error as error:
            raise storage_error(self._reader.storage.path, error) from None

    async def list(self, kind: type[ResourceT], **options: Unpack[ListOptions]) -> Page[ResourceT]:
        of, reader = self.registry.of(kind), self._reader
        with reader.storage:
            return await reader.page(of, lambda names: reader.get_all(of, names), **options)

    async def list_views(
        self, kind: type[ResourceT], view: View[ResourceT], **options: Unpack[ListOptions]
    ) -> Page[bytes]:
        of, reader = self.registry.of(kind), self._reader
        with reader.storage:
            return await reader.page(of, lambda names: reader.views(of, names, view), **options)

    async def list_renderings(
        self, kind: type[ResourceT], form: str, **options: Unpack[ListOptions]
    ) -> Page[Rendering | ResourceT]:
        of, reader = self.registry.of(kind), self._reader
        with reader.storage:
            return await reader.page(of, lambda names: reader.renderings(of, names, form), **options)

    def store_renderings(self, kind: type[Resource], form: str, renderings: Sequence[Rendering]) -> None:
        """Store none: a backend overrides it if its tables outlive the process."""

    def change_counter(self, dependencies: Iterable[Dependency] | None = None) -> int:
        return self._reader.change_counter(dependencies)

    def recent_changes(self, kind: type[ResourceT], since: Mark | None = None) -> RecentChanges[ResourceT]:
        return self._reader.recent_changes(self.registry.of(kind), since)

    async def list_names(self, kind: type[ResourceT], **options: Unpack[ListOptions]) -> Page[str]:
        with self._reader.storage:
            return await self._reader.page(self.registry.of(kind), list, **options)

    async def referrers(self, kind: type[ResourceT], name: str, *, limit: int = 10) -> Sequence[Referrer]:
        with self._reader.storage:
            return self._reader.referrers(self.registry.of(kind), name, limit=limit)

    def watch(
        self,
        kind: type[ResourceT],
        *,
        since: str,
        labels: Mapping[str, str] | None = None,
        any_of: Sequence[IndexEntry] | None = None,
    ) -> AsyncIterator[Event[ResourceT]]:
        return watch(self._reader, self.registry.of(kind), since=since, labels=labels, any_of=any_of)


@dataclass(frozen=True, kw_only=True)
class MaintenanceSettings:
    """Retention of history and logs."""

    history_age: timedelta = timedelta(minutes=30)
    """The maximum age of a version from which a watch may resume."""
    history_changes: int = 200_000
    """The maximum number of changes since then."""
    history_bytes: int = DEFAULT_HISTORY_BYTES
    """The maximum size of these changes."""
    interval_s: float = 30.0
    retention: Retention = field(default_factory=lambda: DEFAULT_RETENTION)


async def send_bookmarks(reader: Reader, clock: Clock) -> None:
    """Make idle watchers send bookmarks, for ever."""
    while True:
        await clock.sleep(reader.settings.bookmark_interval_s)
        for feed in reader.feeds():
            feed.tick()
