"""Stores that break what watches promise."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from remuda.kernel.errors import Gone, Invalid
from remuda.store.contract import NAME_INDEX, Bookmark, Change, Event
from remuda.store.objects import ResourceT
from remuda.store.readside.change_feed import CommittedChange
from remuda.store.sqlite.store import SqliteStore
from tests.kit.proofs.store_contract.broken.flawed import Flaw, Flawed, breaks
from tests.kit.proofs.store_contract.guarantees import streams
from tests.kit.proofs.store_contract.guarantees import watches as guarantees
from tests.kit.proofs.store_contract.harness import A_WHILE_S
from tests.kit.sample_kinds import Corral, Horse, Pasture, PastureSpec

FLAWS: list[Flaw] = []


class Observing(Flawed):
    """Remembers the versions of updates of one sort."""

    def __init__(self, sound: SqliteStore) -> None:
        super().__init__(sound)
        self.peculiar: set[str] = set()

    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        before = self.stored(resource)
        updated = await self.sound.update(resource, **options)
        if before is not None and self.is_peculiar(before, updated):
            self.peculiar.add(updated.version)
        return updated

    def is_peculiar(self, before: Any, after: Any) -> bool:
        """Tell whether only annotations were changed, unless a subclass has another peculiarity."""
        return bool(before.metadata.annotations != after.metadata.annotations)


@breaks(FLAWS, guarantees.a_watch_shows_every_change)
class HidesAnnotations(Observing):
    def shown(self, event: Event[ResourceT]) -> Iterable[Event[ResourceT]]:
        return [] if event.version in self.peculiar else [event]


@breaks(FLAWS, guarantees.a_watch_shows_each_change_once)
class ShowsAnnotationsTwice(Observing):
    def shown(self, event: Event[ResourceT]) -> Iterable[Event[ResourceT]]:
        return [event, event] if event.version in self.peculiar else [event]


@breaks(FLAWS, guarantees.a_watch_keeps_the_order)
class ShowsAnnotationsLate(Observing):
    late: tuple[Any, ...] = ()

    def shown(self, event: Event[ResourceT]) -> Iterable[Event[ResourceT]]:
        if event.version in self.peculiar:
            self.late = (event,)
            return []
        late, self.late = self.late, ()
        return [event, *late]


@breaks(FLAWS, guarantees.a_change_carries_the_object)
class CarriesNoSpec(Flawed):
    def shown(self, event: Event[ResourceT]) -> Iterable[Event[ResourceT]]:
        if isinstance(event, Change) and event.type == "added" and isinstance(event.resource, Pasture):
            return [Change("added", event.version, replace(event.resource, spec=PastureSpec()))]
        return [event]


@breaks(FLAWS, guarantees.a_watch_waits_for_the_next_change)
class FallsAsleep(Flawed):
    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Any]:
        loop = asyncio.get_running_loop()
        asked = loop.time()
        async for event in super().watch(kind, since=since, **watched):
            if kind is Pasture and not watched.get("labels") and loop.time() > asked + A_WHILE_S / 2:
                await loop.create_future()
            yield event
            asked = loop.time()


@breaks(FLAWS, guarantees.a_watch_can_be_resumed_after_each_change)
class RepeatsTheLastChange(Observing):
    def is_peculiar(self, before: Any, after: Any) -> bool:
        return bool(before.spec != after.spec and before.metadata.labels != after.metadata.labels)

    def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Event[ResourceT]]:
        since = str(int(since) - 1) if since in self.peculiar else since
        return super().watch(kind, since=since, **watched)


@breaks(FLAWS, guarantees.a_watch_is_of_one_kind)
class ShowsCorralsAmongRanches(Flawed):
    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Any]:
        for corral in (await self.sound.list(Corral)).items:
            if kind is Pasture and int(corral.version) > int(since):
                yield Change("added", corral.version, corral)
        async for event in super().watch(kind, since=since, **watched):
            yield event


@breaks(FLAWS, guarantees.a_filtered_watch_shows_what_carries_its_labels)
class FiltersByTheFirstLabel(Flawed):
    def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Event[ResourceT]]:
        watched["labels"] = dict(list((watched.get("labels") or {}).items())[:1])
        return super().watch(kind, since=since, **watched)


@breaks(FLAWS, guarantees.a_watch_of_entries_shows_what_is_under_them)
class WatchesTheFirstEntry(Flawed):
    def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Event[ResourceT]]:
        if watched.get("any_of"):
            watched["any_of"] = [watched["any_of"][0], (NAME_INDEX, "later")]
        return super().watch(kind, since=since, **watched)


@breaks(FLAWS, guarantees.what_enters_the_filter_is_added)
class ShowsWhatEntersAsModified(Observing):
    def is_peculiar(self, before: Any, after: Any) -> bool:
        return not before.metadata.labels and bool(after.metadata.labels)

    def shown(self, event: Event[ResourceT]) -> Iterable[Event[ResourceT]]:
        if isinstance(event, Change) and event.version in self.peculiar:
            return [Change("modified", event.version, event.resource)]
        return [event]


@breaks(FLAWS, guarantees.what_leaves_the_filter_is_deleted)
class HidesWhatLeaves(Observing):
    def is_peculiar(self, before: Any, after: Any) -> bool:
        return not after.metadata.labels and bool(before.metadata.labels) and before.spec == after.spec

    def shown_filtered(self, event: Event[ResourceT]) -> Iterable[Event[ResourceT]]:
        return [] if event.version in self.peculiar else [event]


@breaks(FLAWS, guarantees.what_leaves_the_filter_carries_its_last_match)
class CarriesWhatNoLongerMatches(Observing):
    def is_peculiar(self, before: Any, after: Any) -> bool:
        return not after.metadata.labels and before.spec != after.spec

    def shown_filtered(self, event: Event[ResourceT]) -> Iterable[Event[ResourceT]]:
        if isinstance(event, Change) and event.version in self.peculiar:
            found = self.stored(event.resource)
            return [Change(event.type, event.version, found or event.resource)]
        return [event]


@breaks(FLAWS, guarantees.a_change_of_labels_carries_the_state_before)
class ForgetsTheLabelsBefore(Flawed):
    def shown(self, event: Event[ResourceT]) -> Iterable[Event[ResourceT]]:
        if isinstance(event, Change) and isinstance(event.resource, Pasture):
            return [Change(event.type, event.version, event.resource)]
        return [event]


@breaks(FLAWS, guarantees.a_change_of_an_index_carries_the_state_before)
class ForgetsTheColourBefore(Flawed):
    def shown(self, event: Event[ResourceT]) -> Iterable[Event[ResourceT]]:
        if isinstance(event, Change) and isinstance(event.resource, Horse):
            return [Change(event.type, event.version, event.resource)]
        return [event]


@breaks(FLAWS, guarantees.what_leaves_the_filter_with_its_last_write_is_deleted)
class HidesWhatLeavesWithItsLastWrite(Observing):
    def is_peculiar(self, before: Any, after: Any) -> bool:
        return bool(before.is_deleting and before.metadata.labels != after.metadata.labels)

    def shown_filtered(self, event: Event[ResourceT]) -> Iterable[Event[ResourceT]]:
        return [] if event.version in self.peculiar else [event]


class BookmarksRanches(Flawed):
    """Bookmarks a watch of pastures in its own way."""

    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Any]:
        async for event in super().watch(kind, since=since, **watched):
            is_ours = kind is Pasture and isinstance(event, Bookmark)
            for shown in self.instead(event.version, since) if is_ours else [event]:
                yield shown

    def instead(self, version: str, since: str) -> Iterable[Bookmark]:
        raise NotImplementedError


@breaks(FLAWS, guarantees.bookmarks_come_and_can_be_resumed_from)
class SendsNoBookmarks(BookmarksRanches):
    def instead(self, version: str, since: str) -> Iterable[Bookmark]:
        del version, since
        return []


@breaks(FLAWS, guarantees.bookmarks_come_and_can_be_resumed_from)
class BookmarksTheBeginning(BookmarksRanches):
    def instead(self, version: str, since: str) -> Iterable[Bookmark]:
        del version
        return [Bookmark(since)]


@breaks(FLAWS, guarantees.bookmarks_come_and_can_be_resumed_from)
class BookmarksTooFarAhead(BookmarksRanches):
    def instead(self, version: str, since: str) -> Iterable[Bookmark]:
        del since
        return [Bookmark(str(int(version) + 2))]


@breaks(FLAWS, guarantees.a_version_that_is_too_old_is_gone)
class BeginsLaterThanAsked(Flawed):
    def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Event[ResourceT]]:
        if since.isdecimal() and int(since) < self.sound._reader.feed(self.registry.of(kind)).floor:
            since = str(self.sound._writer.version)
        return super().watch(kind, since=since, **watched)


@breaks(FLAWS, guarantees.a_reader_that_is_too_slow_is_gone)
class SkipsForTheSlow(Flawed):
    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Any]:
        shown = 0
        try:
            async for event in super().watch(kind, since=since, **watched):
                yield event
                shown += 1
        except Gone:
            if not shown:
                raise
            last = (await self.sound.list(kind)).items[-1]
            yield Change("added", last.version, last)
            async for event in super().watch(kind, since=last.version, **watched):
                yield event


@breaks(FLAWS, guarantees.a_reader_that_is_too_slow_is_gone)
class NeverGivesUpTheSlow(Flawed):
    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Any]:
        shown = ""
        try:
            async for event in super().watch(kind, since=since, **watched):
                yield event
                shown = event.version
        except Gone:
            if not shown:
                raise
            for item in (await self.sound.list(kind)).items:
                if int(item.version) > int(shown):
                    yield Change("added", item.version, item)


@breaks(FLAWS, guarantees.a_quiet_kind_loses_no_history)
class ForgetsAllKindsAlike(Flawed):
    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Any]:
        if since.isdecimal() and int(since) < self.sound._writer.floor:
            raise Gone(kind.__name__, since)
        async for event in super().watch(kind, since=since, **watched):
            yield event


@breaks(FLAWS, guarantees.a_version_ahead_is_waited_for)
class GivesUpAtOnce(Flawed):
    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Any]:
        if since.isdecimal() and int(since) > self.sound._writer.version:
            raise Gone(kind.__name__, since)
        async for event in super().watch(kind, since=since, **watched):
            yield event


@breaks(FLAWS, guarantees.a_version_ahead_is_waited_for)
class BeginsBeforeTheVersionCame(Flawed):
    def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Event[ResourceT]]:
        if since.isdecimal() and int(since) == self.sound._writer.version + 1:
            since = str(self.sound._writer.version)
        return super().watch(kind, since=since, **watched)


@breaks(FLAWS, guarantees.a_version_that_never_comes_is_gone)
class WaitsForEver(Flawed):
    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Any]:
        try:
            async for event in super().watch(kind, since=since, **watched):
                yield event
        except Gone:
            if int(since) <= self.sound._writer.version:
                raise
            await asyncio.get_running_loop().create_future()


@breaks(FLAWS, guarantees.a_nonsense_version_is_refused)
class BeginsAnywhereOnNonsense(Flawed):
    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Any]:
        try:
            async for event in super().watch(kind, since=since, **watched):
                yield event
        except Invalid as rejection:
            if rejection.field != "resourceVersion":
                raise
            yield Bookmark(str(self.sound._writer.version))


@breaks(FLAWS, streams.a_watch_under_load_keeps_all_its_promises)
class ResumesAfterTheWholeCommit(Flawed):
    def __init__(self, sound: SqliteStore) -> None:
        super().__init__(sound)
        self.ends: dict[str, str] = {}
        self.land = sound._reader.publish
        sound._reader.publish = self.landed  # type: ignore[method-assign]  # this is the flaw

    def landed(self, changes: Mapping[int, Sequence[CommittedChange[Any]]]) -> None:
        for of_one_kind in changes.values():
            self.ends |= {str(change.version): str(of_one_kind[-1].version) for change in of_one_kind}
        self.land(changes)

    def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Event[ResourceT]]:
        return super().watch(kind, since=self.ends.get(since, since), **watched)


@breaks(FLAWS, streams.a_watch_under_load_keeps_all_its_promises)
class BookmarksWhatItHasNotShown(Flawed):
    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Any]:
        feed = self.sound._reader.feed(self.registry.of(kind))
        async for event in super().watch(kind, since=since, **watched):
            if kind is Horse and int(event.version) < feed.reached:
                yield Bookmark(str(feed.reached))
            yield event


@breaks(FLAWS, streams.a_watch_under_load_keeps_all_its_promises)
class BookmarksTheChangeBeforeTheLast(Flawed):
    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Any]:
        told = [since, since]
        async for event in super().watch(kind, since=since, **watched):
            if isinstance(event, Change):
                told.append(event.version)
            yield Bookmark(told[-2]) if kind is Horse and isinstance(event, Bookmark) else event


@breaks(FLAWS, streams.a_watch_under_load_keeps_all_its_promises)
class SendsNoBookmarksOfHorses(Flawed):
    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Any]:
        async for event in super().watch(kind, since=since, **watched):
            if kind is not Horse or isinstance(event, Change):
                yield event
