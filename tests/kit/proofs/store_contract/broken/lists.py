"""Stores that break what lists promise."""

from typing import Any, NamedTuple, cast

from remuda.kernel.errors import Invalid, NotFound
from remuda.store.contract import Page, View, label_index
from remuda.store.objects import ResourceT
from remuda.store.sqlite.store import SqliteStore
from tests.kit.proofs.store_contract.broken.flawed import Flaw, Flawed, breaks
from tests.kit.proofs.store_contract.guarantees import lists as guarantees
from tests.kit.sample_kinds import Corral, Horse, Pasture

FLAWS: list[Flaw] = []


def with_items(page: Page[ResourceT], items: list[Any]) -> Page[ResourceT]:
    return Page(items, page.version, page.next)


@breaks(FLAWS, guarantees.get_of_the_absent_is_not_found)
class FindsAnotherKind(Flawed):
    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        try:
            return await self.sound.get(kind, name)
        except NotFound:
            for other in self.registry.kinds:
                if (found := self.find(other.type, name)) is not None:
                    return cast("ResourceT", found)
            raise


@breaks(FLAWS, guarantees.lists_are_in_the_order_of_names)
class ListsInTheOrderOfCreation(Flawed):
    def __init__(self, sound: SqliteStore) -> None:
        super().__init__(sound)
        self.order: list[str] = []

    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        created = await self.sound.create(resource, **options)
        self.order.append(created.name)
        return created

    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        page = await self.sound.list(kind, **selection)
        return with_items(page, sorted(page.items, key=lambda item: self._place(item.name)))

    def _place(self, name: str) -> int:
        """Return the place of a name; one that is listed before its creation has returned is the last."""
        return self.order.index(name) if name in self.order else len(self.order)


@breaks(FLAWS, guarantees.lists_are_of_one_kind)
class ListsRanchesAmongCorrals(Flawed):
    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        page = await self.sound.list(kind, **selection)
        pastures = (await self.sound.list(Pasture)).items if kind is Corral else ()
        return with_items(page, [*pastures, *page.items])


@breaks(FLAWS, guarantees.lists_are_selected_by_a_label)
class SelectsAllByAnUnknownLabel(Flawed):
    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        page, names = await self.sound.list(kind, **selection), self.sound._reader.names
        number = names.kind(self.registry.of(kind))
        if all(names.find_index(number, label_index(key)) for key in selection.get("labels") or ()):
            return page
        return await self.sound.list(kind)


@breaks(FLAWS, guarantees.lists_are_selected_by_all_labels)
class SelectsByTheFirstLabel(Flawed):
    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        labels = dict(list((selection.pop("labels", None) or {}).items())[:1])
        return await self.sound.list(kind, **selection, labels=labels)


@breaks(FLAWS, guarantees.lists_are_selected_by_an_index)
class FindsOneUnderAnIndex(Flawed):
    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        page = await self.sound.list(kind, **selection)
        return with_items(page, list(page.items[:1])) if "index" in selection else page


@breaks(FLAWS, guarantees.labels_and_indexes_select_together)
class ForgetsTheIndexOverLabels(Flawed):
    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        if selection.get("labels"):
            selection.pop("index", None)
        return await self.sound.list(kind, **selection)


class Remembering(Flawed):
    """Goes on finding an object by something that it had once."""

    def __init__(self, sound: SqliteStore) -> None:
        super().__init__(sound)
        self.remembered: list[tuple[Any, str]] = []

    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        stored = self.stored(resource)
        updated = await self.sound.update(resource, **options)
        if stored is not None and (key := self.former(stored, updated)) is not None:
            self.remembered.append((key, updated.name))
        return updated

    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        page = await self.sound.list(kind, **selection)
        former = [self.find(kind, name) for key, name in self.remembered if key in selection.values()]
        return with_items(page, [*page.items, *(found for found in former if found is not None)])

    def former(self, before: Any, after: Any) -> Any:
        raise NotImplementedError


@breaks(FLAWS, guarantees.lists_are_selected_by_any_entry)
class ListsByTheFirstEntry(Flawed):
    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        if selection.get("any_of"):
            selection["any_of"] = selection["any_of"][:1]
        return await self.sound.list(kind, **selection)


@breaks(FLAWS, guarantees.selections_follow_the_labels)
class RemembersLabels(Remembering):
    def former(self, before: Any, after: Any) -> Any:
        return before.metadata.labels if before.metadata.labels and not after.metadata.labels else None


@breaks(FLAWS, guarantees.selections_follow_the_index)
class RemembersColours(Remembering):
    def former(self, before: Any, after: Any) -> Any:
        is_recoloured = isinstance(after, Horse) and before.spec.colour != after.spec.colour
        return ("colour", before.spec.colour) if is_recoloured else None


@breaks(FLAWS, guarantees.pages_hold_everything_once)
class EndsWithAnEmptyPage(Flawed):
    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        limit = selection.get("limit")
        page = await self.sound.list(kind, **selection)
        if page.next is not None or not page.items or len(page.items) != limit:
            return page
        selection["limit"] = limit - 1
        shorter = await self.sound.list(kind, **selection) if limit > 1 else page
        return replace_next(page, shorter.next)


def replace_next(page: Page[ResourceT], token: str | None) -> Page[ResourceT]:
    return Page(page.items, page.version, token)


@breaks(FLAWS, guarantees.pages_of_a_selection_hold_all_of_it)
class ForgetsTheLabelsAfterTheFirstPage(Flawed):
    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        if selection.get("after"):
            selection.pop("labels", None)
        return await self.sound.list(kind, **selection)


class Place(NamedTuple):
    """How much of a list lies before a token."""

    pages: int
    items: int


class Paging(Flawed):
    """Remembers the place of each token of a list of everything."""

    def __init__(self, sound: SqliteStore) -> None:
        super().__init__(sound)
        self.places: dict[str | None, Place] = {}
        self.later_versions: set[str] = set()

    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        place = self.places.get(selection.get("after"), Place(0, 0))
        page = await self.sound.list(kind, **selection)
        if selection.get("labels") or selection.get("any_of"):
            return page
        page = await self.turned(kind, page, place)
        if page.next is not None:
            self.places[page.next] = Place(place.pages + 1, place.items + len(page.items))
        if place.pages:
            self.later_versions.add(page.version)
        return page

    async def turned(self, kind: type[ResourceT], page: Page[ResourceT], place: Place) -> Page[ResourceT]:
        del kind, place
        return page


@breaks(FLAWS, guarantees.pages_go_by_key)
class PagesByOffset(Paging):
    async def turned(self, kind: type[ResourceT], page: Page[ResourceT], place: Place) -> Page[ResourceT]:
        everything = (await self.sound.list(kind)).items
        by_offset = list(everything[place.items : place.items + len(page.items)])
        return with_items(page, by_offset) if place.pages else page


@breaks(FLAWS, guarantees.pages_have_the_first_pages_version)
class ForgetsTheVersionAfterTwoPages(Paging):
    async def turned(self, kind: type[ResourceT], page: Page[ResourceT], place: Place) -> Page[ResourceT]:
        present = await self.sound.list(kind, limit=1)
        return Page(page.items, present.version, page.next) if place.pages > 1 else page


@breaks(FLAWS, guarantees.a_watch_from_pages_misses_nothing)
class WatchesFromTheLastPage(Paging):
    def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> Any:
        if since in self.later_versions:
            since = str(self.sound._writer.version)
        return super().watch(kind, since=since, **watched)


@breaks(FLAWS, guarantees.an_undeclared_index_is_refused)
class FindsNothingUnderWhatItDoesNotKnow(Flawed):
    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        index = selection.get("index")
        if index is not None and index[0] not in {known.name for known in self.registry.of(kind).indexes}:
            return Page([], "1", None)
        return await self.sound.list(kind, **selection)


@breaks(FLAWS, guarantees.a_limit_below_one_is_refused)
class ListsNothingOfNothing(Flawed):
    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        page = await self.sound.list(kind, **(selection | {"limit": selection.get("limit") or None}))
        return with_items(page, []) if selection.get("limit") == 0 else page


@breaks(FLAWS, guarantees.a_limit_below_one_is_refused)
class RendersAllOfNothing(Flawed):
    async def list_views(self, kind: type[ResourceT], view: View[ResourceT], **selection: Any) -> Page[bytes]:
        limit = selection.pop("limit", None)
        return await self.sound.list_views(kind, view, **selection, limit=limit if limit and limit > 0 else None)


@breaks(FLAWS, guarantees.a_nonsense_token_is_refused)
class BeginsAgainOnNonsense(Flawed):
    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        try:
            return await self.sound.list(kind, **selection)
        except Invalid as rejection:
            if rejection.field != "continue":
                raise
            return await self.sound.list(kind, **(selection | {"after": None}))
