"""Watches that lose and repeat events, and end when they like: what a controller must put up with."""

from collections.abc import AsyncIterator
from typing import Any

from remuda.kernel.errors import Gone
from remuda.store.contract import Bookmark, Event, Store
from remuda.store.objects import ResourceT
from tests.kit.simulation.faults import Fires

FAULTS = ("watch.dropped", "watch.doubled", "watch.gone")


class FlakyWatches:
    """A store like another, but for its watches."""

    def __init__(self, store: Store, faults: Fires) -> None:
        self._store, self._faults = store, faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Event[ResourceT]]:
        """Yield most of what happens, some of it twice."""
        async for event in self._store.watch(kind, since=since, **watched):
            if isinstance(event, Bookmark):
                yield event
                continue
            if self._faults.fires("watch.dropped"):
                continue
            yield event
            if self._faults.fires("watch.doubled"):
                yield event
            if self._faults.fires("watch.gone"):
                raise Gone(kind.__name__, since)
