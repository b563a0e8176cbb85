"""One watch: a cursor that walks a feed, and history where the feed's tail begins too late."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec

from remuda.kernel.errors import Gone, Invalid, Unreadable, Unsealable
from remuda.store.contract import Bookmark, Change, Event
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, ResourceT
from remuda.store.readside.change_feed import Landed
from remuda.store.readside.reader import Reader
from remuda.store.readside.tables import ADDED, DELETED, MODIFIED, Revision
from remuda.store.validation import check_selector

_SLICE = 100
"""Changes that are read before others get their turn."""
_TYPES = {ADDED: "added", MODIFIED: "modified", DELETED: "deleted"}


async def watch(
    reader: Reader, kind: Kind[ResourceT], *, since: str, labels: Mapping[str, str] | None
) -> AsyncIterator[Event[ResourceT]]:
    """Yield every change of a kind after `since`, and a bookmark now and then."""
    check_selector(labels or {})
    kind.check_sought(labels or {})
    cursor = _parse(since)
    feed = reader.feed(kind)
    await feed.reach(cursor, reader.settings.ahead_patience_s)
    if cursor < feed.floor:
        raise Gone(kind.name, since)
    told, ticks = cursor, feed.ticks
    while True:
        changes = feed.after(cursor, limit=_SLICE)
        if changes is None:
            if cursor < feed.floor:
                raise Gone(kind.name, str(cursor))
            changes = _history(reader, kind, after=cursor)
        for change in changes:
            cursor = change.version
            event = change.event if not labels else filtered(change, labels)
            if event is not None:
                told = cursor
                yield event
        if len(changes) == _SLICE:
            await reader.pause()
        if changes:
            continue
        cursor = max(cursor, feed.reached)
        if ticks != feed.ticks and cursor > told:
            ticks, told = feed.ticks, cursor
            yield Bookmark(str(cursor))
        else:
            ticks = feed.ticks
            await feed.wait()


def filtered(change: Landed[ResourceT], labels: Mapping[str, str]) -> Change[ResourceT] | None:
    """Return what a watcher of these labels sees of a change, if anything."""
    event, before = change.event, change.before
    if before is None:
        return event if _carries(event.resource, labels) else None
    was = _carries(before, labels)
    now = change.code != DELETED and _carries(event.resource, labels)
    if now:
        return event if was else Change("added", event.version, event.resource)
    return Change("deleted", event.version, _at(before, event.version)) if was else None


def landed(
    revision: Revision, resource: ResourceT, before: ResourceT | None, *, whole: bool = False
) -> Landed[ResourceT]:
    """Return a revision as watchers need it."""
    event: Change[Any] = Change(_TYPES[revision.change], str(revision.version), resource, before)  # type: ignore[arg-type]  # the code stands for one of the types
    weight = len(revision.document)
    return Landed(revision.name, revision.version, revision.change, event, before, weight, whole)


def _history(reader: Reader, kind: Kind[ResourceT], *, after: int) -> Sequence[Landed[ResourceT]]:
    with reader.storage:
        rows = reader.tables.changes(reader.names.kind(kind), after=after, limit=_SLICE)
    return [_read(reader, kind, row) for row in rows]


def _read(reader: Reader, kind: Kind[ResourceT], row: Revision) -> Landed[ResourceT]:
    try:
        before = reader.decode(kind, row.before, row.name) if row.before is not None else None
        return landed(row, reader.decode(kind, row.document, row.name), before)
    except (Unreadable, Unsealable):  # what is superseded may be sealed by a key that went: nobody needs it any more
        raise Gone(kind.name, str(row.version)) from None


def _carries(resource: Resource, labels: Mapping[str, str]) -> bool:
    return labels.items() <= resource.metadata.labels.items()


def _at(resource: ResourceT, version: str) -> ResourceT:
    metadata = msgspec.structs.replace(resource.metadata, resource_version=version)
    return msgspec.structs.replace(resource, metadata=metadata)


def _parse(version: str) -> int:
    if not version.isdecimal():
        raise Invalid(
            "resourceVersion", "is not a version of this store", remedy="use the version of a list or an event"
        )
    return int(version)
