"""The reading half of the contract, the same for every backend."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from remuda.store.contract import Event, Page, Referrer, View
from remuda.store.kinds import Registry
from remuda.store.objects import ResourceT
from remuda.store.parts import Part
from remuda.store.readside.reader import Reader
from remuda.store.readside.watching import watch


class Reads:
    """Get, list and watch over a reader. A backend adds the writes."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.registry: Registry = reader.registry

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        """Return the object, or raise NotFound."""
        with self._reader.storage:
            return self._reader.get(self.registry.of(kind), name)

    async def get_view(self, kind: type[ResourceT], name: str, view: View[ResourceT]) -> bytes:
        """Return the rendered object, from the cache if it is there."""
        with self._reader.storage:
            return self._reader.view(self.registry.of(kind), name, view)

    async def list(
        self,
        kind: type[ResourceT],
        *,
        labels: Mapping[str, str] | None = None,
        index: tuple[str, str] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page[ResourceT]:
        """Return the objects that carry all `labels` and lie under this value of a declared index."""
        of, reader = self.registry.of(kind), self._reader
        with reader.storage:
            return await reader.page(
                of,
                lambda names: [reader.get(of, name) for name in names],
                labels=labels,
                index=index,
                limit=limit,
                after=after,
            )

    async def list_views(
        self,
        kind: type[ResourceT],
        view: View[ResourceT],
        *,
        labels: Mapping[str, str] | None = None,
        index: tuple[str, str] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page[bytes]:
        of, reader = self.registry.of(kind), self._reader
        with reader.storage:
            return await reader.page(
                of, lambda names: reader.views(of, names, view), labels=labels, index=index, limit=limit, after=after
            )

    def stamp(self, parts: Iterable[Part] | None = None) -> int:
        """Return a number that is a higher one as soon as a read of one of these parts, or of anything, could be."""
        return self._reader.stamp(parts)

    async def list_names(
        self,
        kind: type[ResourceT],
        *,
        labels: Mapping[str, str] | None = None,
        index: tuple[str, str] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page[str]:
        """Return the names of what `list` does. No object is read, so none that is unreadable stands in the way."""
        of, reader = self.registry.of(kind), self._reader
        with reader.storage:
            return await reader.page(of, list, labels=labels, index=index, limit=limit, after=after)

    async def referrers(self, kind: type[ResourceT], name: str, *, limit: int = 10) -> Sequence[Referrer]:
        """Return some of those that keep the object from going."""
        with self._reader.storage:
            return self._reader.referrers(self.registry.of(kind), name, limit=limit)

    def watch(
        self, kind: type[ResourceT], *, since: str, labels: Mapping[str, str] | None = None
    ) -> AsyncIterator[Event[ResourceT]]:
        """Yield what happened after version `since`, without end."""
        return watch(self._reader, self.registry.of(kind), since=since, labels=labels)
