"""A store that passes everything on, with one place where each write can be seen or stopped."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from remuda.store.contract import Dependency, Event, Mark, Page, RecentChanges, Referrer, Rendering, Store, View
from remuda.store.logs import Log, LogPage, Record
from remuda.store.objects import Resource, ResourceT

ResultT = TypeVar("ResultT")


class Passing:
    """Store and Log over another. A subclass overrides `around` for writes and `before_read` for reads."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.registry = inner.registry

    async def around(self, verb: str, what: Resource | None, write: Callable[[], Awaitable[ResultT]]) -> ResultT:  # noqa: ARG002  for subclasses
        """Make one write; `what` is the object as the caller handed it over, if it did."""
        return await write()

    def before_read(self) -> None:
        """Let a read pass."""

    async def create(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        return await self.around("create", resource, lambda: self.inner.create(resource, log=log))

    async def update(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        return await self.around("update", resource, lambda: self.inner.update(resource, log=log))

    async def update_status(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        return await self.around("update_status", resource, lambda: self.inner.update_status(resource, log=log))

    async def delete(
        self,
        kind: type[ResourceT],
        name: str,
        *,
        uid: str,
        version: str | None = None,
        unused: bool = False,
        log: Sequence[Record] = (),
    ) -> ResourceT | None:
        return await self.around(
            "delete", None, lambda: self.inner.delete(kind, name, uid=uid, version=version, unused=unused, log=log)
        )

    async def append(self, records: Sequence[Record]) -> None:
        await self.around("append", None, lambda: cast("Log", self.inner).append(records))

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        self.before_read()
        return await cast("Log", self.inner).read(stream, subject, after=after, limit=limit)

    async def read_back(self, stream: str, subject: str, *, before: int | None = None, limit: int = 100) -> LogPage:
        self.before_read()
        return await cast("Log", self.inner).read_back(stream, subject, before=before, limit=limit)

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        self.before_read()
        return await self.inner.get(kind, name)

    async def get_view(self, kind: type[ResourceT], name: str, view: View[ResourceT]) -> bytes:
        self.before_read()
        return await self.inner.get_view(kind, name, view)

    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        self.before_read()
        return await self.inner.list(kind, **selection)

    async def list_views(self, kind: type[ResourceT], view: View[ResourceT], **selection: Any) -> Page[bytes]:
        self.before_read()
        return await self.inner.list_views(kind, view, **selection)

    async def list_renderings(self, kind: type[ResourceT], form: str, **selection: Any) -> Page[Rendering | ResourceT]:
        self.before_read()
        return await self.inner.list_renderings(kind, form, **selection)

    def store_renderings(self, kind: type[Resource], form: str, renderings: Sequence[Rendering]) -> None:
        self.inner.store_renderings(kind, form, renderings)

    async def list_names(self, kind: type[ResourceT], **selection: Any) -> Page[str]:
        self.before_read()
        return await self.inner.list_names(kind, **selection)

    def change_counter(self, dependencies: Iterable[Dependency] | None = None) -> int:
        return self.inner.change_counter(dependencies)

    def recent_changes(self, kind: type[ResourceT], since: Mark | None = None) -> RecentChanges[ResourceT]:
        return self.inner.recent_changes(kind, since)

    async def referrers(self, kind: type[ResourceT], name: str, *, limit: int = 10) -> Sequence[Referrer]:
        self.before_read()
        return await self.inner.referrers(kind, name, limit=limit)

    def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Event[ResourceT]]:
        return self.inner.watch(kind, since=since, **watched)
