"""Stores that break what readers may expect of writes."""

from collections.abc import Iterable
from typing import Any

from remuda.store.contract import Change, Dependency, Event, Mark, Page, RecentChanges, View
from remuda.store.objects import ResourceT
from remuda.store.sqlite.store import SqliteStore
from tests.kit.proofs.store_contract.broken.flawed import Flaw, Flawed, breaks
from tests.kit.proofs.store_contract.guarantees import reads as guarantees

FLAWS: list[Flaw] = []


class Hasty(Flawed):
    """Knows which writes ended while others were under way, and forgets to show them once."""

    def __init__(self, sound: SqliteStore) -> None:
        super().__init__(sound)
        self.writing = 0
        self.unseen: dict[str, Any] = {}

    async def observed(self, before: ResourceT | None, write: Any, name: str) -> Any:
        self.writing += 1
        try:
            return await write
        finally:
            self.writing -= 1
            if self.writing:
                self.unseen[name] = before


@breaks(FLAWS, guarantees.you_read_your_own_writes)
class ReadsBeforeTheLastStatus(Hasty):
    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        write = self.sound.update_status(resource, **options)
        written: ResourceT = await self.observed(self.stored(resource), write, resource.name)
        return written

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        before: ResourceT | None = self.unseen.pop(name, None)
        return before if before is not None else await self.sound.get(kind, name)


@breaks(FLAWS, guarantees.you_list_your_own_writes)
class ListsBeforeTheLastCreate(Hasty):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        written: ResourceT = await self.observed(None, self.sound.create(resource, **options), resource.name)
        return written

    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        page = await self.sound.list(kind, **selection)
        if not selection.get("labels"):
            return page
        unseen, self.unseen = self.unseen, {}
        return Page([item for item in page.items if item.name not in unseen], page.version, page.next)


class Rendering(Flawed):
    """Keeps views, and forgets that a status changes them."""

    def __init__(self, sound: SqliteStore) -> None:
        super().__init__(sound)
        self.views: dict[str, bytes] = {}

    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        self.views.pop(resource.name, None)
        return await self.sound.update(resource, **options)

    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        self.views.pop(name, None)
        return await self.sound.delete(kind, name, **options)


@breaks(FLAWS, guarantees.a_view_follows_its_object)
class KeepsAView(Rendering):
    async def get_view(self, kind: type[ResourceT], name: str, view: View[ResourceT]) -> bytes:
        if name not in self.views:
            self.views[name] = await self.sound.get_view(kind, name, view)
        return self.views[name]


@breaks(FLAWS, guarantees.listed_names_are_those_of_the_list)
class NamesWhatNobodyAskedFor(Flawed):
    """Names what is there, whatever was asked for."""

    async def list_names(self, kind: type[ResourceT], **selection: Any) -> Page[str]:
        return await self.sound.list_names(kind, limit=selection.get("limit"), after=selection.get("after"))


@breaks(FLAWS, guarantees.listed_views_follow_their_objects)
class KeepsListedViews(Rendering):
    async def list_views(self, kind: type[ResourceT], view: View[ResourceT], **selection: Any) -> Page[bytes]:
        page = await self.sound.list(kind, **selection)
        for item in page.items:
            self.views.setdefault(item.name, view(item))
        return Page([self.views[item.name] for item in page.items], page.version, page.next)


@breaks(FLAWS, guarantees.reads_are_never_older_than_events)
class ListsTheStateBeforeTheEvent(Flawed):
    def __init__(self, sound: SqliteStore) -> None:
        super().__init__(sound)
        self.told: dict[str, list[Any]] = {}

    def shown(self, event: Event[ResourceT]) -> Iterable[Event[ResourceT]]:
        if isinstance(event, Change):
            self.told.setdefault(event.resource.name, []).append(event.resource)
        return [event]

    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        page = await self.sound.list(kind, **selection)
        states = [self.told.get(item.name, []) for item in page.items]
        older = [told[-2] if len(told) > 1 else item for item, told in zip(page.items, states, strict=True)]
        return Page(older, page.version, page.next)


def are_kinds(parts: Iterable[Dependency] | None) -> bool:
    return parts is not None and all(isinstance(part, type) for part in parts)


@breaks(FLAWS, guarantees.a_change_counter_moves_with_every_write)
class CountsNoStatus(Flawed):
    """Takes a status for nothing that a view could show."""

    def __init__(self, sound: SqliteStore) -> None:
        super().__init__(sound)
        self.overlooked = 0

    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        before = self.sound.change_counter([type(resource)])
        written = await self.sound.update_status(resource, **options)
        self.overlooked += self.sound.change_counter([type(resource)]) - before
        return written

    def change_counter(self, dependencies: Iterable[Dependency] | None = None) -> int:
        return self.sound.change_counter(dependencies) - (self.overlooked if are_kinds(dependencies) else 0)


@breaks(FLAWS, guarantees.a_change_counter_stays_while_nothing_is_written)
class CountsEveryKind(Flawed):
    """Has one change counter for all kinds."""

    def change_counter(self, dependencies: Iterable[Dependency] | None = None) -> int:
        return self.sound.change_counter(None if are_kinds(dependencies) else dependencies)


@breaks(FLAWS, guarantees.a_change_counter_of_a_part_moves_with_what_is_or_was_in_it)
class CountsNoPart(Flawed):
    """Knows kinds alone, and takes a part of one for nothing."""

    def change_counter(self, dependencies: Iterable[Dependency] | None = None) -> int:
        return self.sound.change_counter(dependencies and [part for part in dependencies if isinstance(part, type)])


@breaks(FLAWS, guarantees.a_change_counter_of_a_part_stays_while_others_are_written)
class CountsWholeKinds(Flawed):
    """Takes a part for all of its kind."""

    def change_counter(self, dependencies: Iterable[Dependency] | None = None) -> int:
        return self.sound.change_counter(
            dependencies and [part if isinstance(part, type) else part[0] for part in dependencies]
        )


@breaks(FLAWS, guarantees.recent_changes_lead_to_the_present)
class OverlooksRecentDeletions(Flawed):
    """Has only those changes in memory after which there still is an object."""

    def recent_changes(self, kind: type[ResourceT], since: Mark | None = None) -> RecentChanges[ResourceT]:
        recent = self.sound.recent_changes(kind, since)
        if recent.changes is None:
            return recent
        return RecentChanges(recent.mark, [each for each in recent.changes if each.type != "deleted"])
