"""Clients that watch a simulated store, and hold every event against what they know already."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from remuda.kernel.errors import Gone, Unavailable
from remuda.store.contract import Bookmark, Change, Event
from remuda.store.objects import FOREGROUND, IN_USE, Resource
from remuda.store.sqlite.store import SqliteStore
from tests.kit.simulation.runner import World


class Watcher:
    """Follows one kind, or what carries some labels of it, through cut watches, lost history and power cuts."""

    def __init__(self, world: World, kind: type[Resource], labels: dict[str, str] | None = None) -> None:
        self.known: dict[str, Any] = {}
        self.version = 0
        self.outcomes: Counter[str] = Counter()
        self._world = world
        self.kind = kind
        self.labels = labels
        self._needs_list = True

    async def follow(self, store: SqliteStore) -> None:
        """Watch without end, from where the last watch ended."""
        while True:
            try:
                if self._needs_list:
                    await self._relist(store)
                async with aclosing(self._events(store)) as events:
                    await self._take(events)
            except Gone:
                self.outcomes["Gone"] += 1
                self._needs_list = True
            except Unavailable:
                await self._world.clock.sleep(0.1)

    def _events(self, store: SqliteStore) -> Any:
        return store.watch(self.kind, since=str(self.version), labels=self.labels)

    async def _relist(self, store: SqliteStore) -> None:
        page = await store.list(self.kind, labels=self.labels)
        for each in page.items:
            earlier = self.known.get(each.name)
            assert earlier is None or int(earlier.version) <= int(each.version), f"{each.name} went back"
        self.known = {each.name: each for each in page.items}
        assert int(page.version) >= self.version
        self.version = int(page.version)
        self._needs_list = False

    async def _take(self, events: AsyncIterator[Event[Any]]) -> None:
        """Take events until the watch is cut."""
        async for event in events:
            assert int(event.version) > self.version, f"{event.version} came after {self.version}"
            self.version = int(event.version)
            if not isinstance(event, Bookmark):
                self._fold(event)
            if self._world.faults.fires("watch.slow"):
                await self._world.clock.sleep(0.5)
            if self._world.faults.fires("watch.cut"):
                return

    def _fold(self, event: Change[Any]) -> None:
        name, earlier = event.resource.name, self.known.get(event.resource.name)
        assert (earlier is None) == (event.type == "added"), f"{name} {event.type}, and was {earlier}"
        if earlier is not None:
            check_succession(earlier, event.resource)
        if event.type == "deleted":
            del self.known[name]
        else:
            self.known[name] = event.resource


def check_succession(earlier: Resource, later: Resource) -> None:
    """One state of an object may follow the other."""
    assert later.uid == earlier.uid, f"{later.name} was recreated without going first"
    assert later.metadata.generation >= earlier.metadata.generation
    if earlier.is_deleting:
        assert later.metadata.deletion_timestamp == earlier.metadata.deletion_timestamp
        added = set(later.metadata.finalizers) - set(earlier.metadata.finalizers)
        assert added <= {FOREGROUND, IN_USE}, f"{later.name} got {added} after its mark"
