"""A store that keeps every guarantee, and the tools with which its subclasses break one each."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from remuda.kernel.errors import Conflict
from remuda.kernel.ids import random_id
from remuda.store.contract import Dependency, Event, Mark, Page, RecentChanges, Referrer, Rendering, View
from remuda.store.lifecycle import new_resource, with_desired, with_finalizers
from remuda.store.logs import LogPage, Record
from remuda.store.objects import Resource, ResourceT
from remuda.store.sqlite.batch import Batch
from remuda.store.sqlite.store import SqliteStore
from tests.kit.proofs.store_contract.backends import rewrite
from tests.kit.proofs.store_contract.guarantee import Guarantee

ResultT = TypeVar("ResultT")


class Flawed:
    """Passes everything on to a sound store. What a subclass overrides is its flaw."""

    def __init__(self, sound: SqliteStore) -> None:
        self.sound = sound
        self.registry = sound.registry

    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        return await self.sound.create(resource, **options)

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        return await self.sound.get(kind, name)

    async def get_view(self, kind: type[ResourceT], name: str, view: View[ResourceT]) -> bytes:
        return await self.sound.get_view(kind, name, view)

    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        return await self.sound.list(kind, **selection)

    async def list_views(self, kind: type[ResourceT], view: View[ResourceT], **selection: Any) -> Page[bytes]:
        return await self.sound.list_views(kind, view, **selection)

    async def list_renderings(self, kind: type[ResourceT], form: str, **selection: Any) -> Page[Rendering | ResourceT]:
        return await self.sound.list_renderings(kind, form, **selection)

    def store_renderings(self, kind: type[Resource], form: str, renderings: Sequence[Rendering]) -> None:
        self.sound.store_renderings(kind, form, renderings)

    async def list_names(self, kind: type[ResourceT], **selection: Any) -> Page[str]:
        return await self.sound.list_names(kind, **selection)

    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        return await self.sound.update(resource, **options)

    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        return await self.sound.update_status(resource, **options)

    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        return await self.sound.delete(kind, name, **options)

    def change_counter(self, dependencies: Iterable[Dependency] | None = None) -> int:
        return self.sound.change_counter(dependencies)

    def recent_changes(self, kind: type[ResourceT], since: Mark | None = None) -> RecentChanges[ResourceT]:
        return self.sound.recent_changes(kind, since)

    async def referrers(self, kind: type[ResourceT], name: str, *, limit: int = 10) -> Sequence[Referrer]:
        return await self.sound.referrers(kind, name, limit=limit)

    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Event[ResourceT]]:
        events = self.sound.watch(kind, since=since, **watched)
        async with aclosing(cast("AsyncGenerator[Event[ResourceT], None]", events)):
            async for event in events:
                for shown in self.shown_filtered(event) if watched.get("labels") else self.shown(event):
                    yield shown

    def shown(self, event: Event[ResourceT]) -> Iterable[Event[ResourceT]]:
        """Return what a watcher sees of an event."""
        return [event]

    def shown_filtered(self, event: Event[ResourceT]) -> Iterable[Event[ResourceT]]:
        """Return what a watcher with a filter sees of an event."""
        return self.shown(event)

    async def append(self, records: Sequence[Record]) -> None:
        await self.sound.append(records)

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        return await self.sound.read(stream, subject, after=after, limit=limit)

    async def read_back(self, stream: str, subject: str, *, before: int | None = None, limit: int = 100) -> LogPage:
        return await self.sound.read_back(stream, subject, before=before, limit=limit)

    def find(self, kind: type[ResourceT], name: str) -> ResourceT | None:
        return self.sound._reader.find(self.registry.of(kind), name)

    def stored(self, resource: ResourceT) -> ResourceT | None:
        """Return what is stored under the name of an object that is about to be written."""
        return self.find(type(resource), resource.name)

    async def apply(self, rule: Callable[[Batch], ResultT]) -> ResultT:
        """Write past all validation."""
        return await self.sound._writer.submit(rule)

    async def force(self, resource: ResourceT) -> ResourceT:
        """Write over whatever is there."""
        kind = self.registry.of(type(resource))
        return await self.apply(lambda batch: batch.put(kind, resource, batch.find(kind, resource.name)))

    async def amend(self, before: ResourceT, after: ResourceT) -> ResourceT:
        """Write over what was found, unless somebody else has written since."""
        kind = self.registry.of(type(before))

        def amend(batch: Batch) -> ResourceT:
            stored = batch.find(kind, before.name)
            is_as_found = stored is not None and stored.version == before.version
            return batch.put(kind, after, stored) if is_as_found else before

        return await self.apply(amend)

    async def force_create(self, resource: ResourceT) -> ResourceT:
        """Create what would be refused."""
        new = new_resource(self.registry, self.registry.of(type(resource)), resource)
        uid = random_id(self.sound._writer._side.randomness)
        return await self.force(replace(new, metadata=replace(new.metadata, uid=uid)))

    async def force_update(self, resource: ResourceT) -> ResourceT:
        """Write metadata and spec over the version that was read, and nothing that follows from them."""
        kind = self.registry.of(type(resource))

        def update(batch: Batch) -> ResourceT:
            stored = batch.find(kind, resource.name)
            if stored is None or stored.version != resource.version:
                raise Conflict(kind.name, resource.name)
            return batch.put(kind, with_desired(kind, stored, resource), stored)

        return await self.apply(update)

    async def force_mark(self, resource: ResourceT, *finalizers: str) -> ResourceT:
        """Mark an object, and nothing that follows from it."""
        now = self.sound.maintenance._clock.now()
        return await self.force(with_finalizers(resource, (*resource.metadata.finalizers, *finalizers), deleted_at=now))

    async def force_out(self, resource: ResourceT) -> None:
        """Remove an object, and nothing that follows from it."""
        kind = self.registry.of(type(resource))
        await self.apply(lambda batch: batch.drop(kind, resource, resource))

    async def scrub(self, resource: Resource, patch: Mapping[str, Any]) -> None:
        """Change the stored document of an object behind its back."""
        await rewrite(self.sound, type(resource), resource.name, patch)

    def children(self, owner: Resource) -> Sequence[Resource]:
        """Return everything that an object owns."""
        everything = [
            self.find(kind.type, name)
            for kind in self.registry.kinds
            for name in self.sound._reader.tables.names(self.sound._reader.names.kind(kind), after="", limit=1000)
        ]
        return [
            found
            for found in everything
            if found is not None and any(owner.uid == of.uid for of in found.metadata.owner_references)
        ]


@dataclass(frozen=True)
class Flaw:
    """A broken store and the one guarantee it breaks."""

    guarantee: Guarantee
    store: type[Flawed]


FlawedT = TypeVar("FlawedT", bound=type[Flawed])


def breaks(flaws: list[Flaw], guarantee: Guarantee) -> Callable[[FlawedT], FlawedT]:
    """Enter a broken store into `flaws`."""

    def enter(store: FlawedT) -> FlawedT:
        flaws.append(Flaw(guarantee, store))
        return store

    return enter
