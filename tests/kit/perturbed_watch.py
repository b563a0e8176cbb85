"""A store whose watches are not what they should be: events are lost, doubled, or come in another order.

The real store does none of that. A reconciler that comes to the same end all the same takes nothing from an event but
the key.
"""

from collections.abc import AsyncIterator
from typing import Any

from remuda.kernel.randomness import SeededRandomness
from remuda.store.contract import Event, Store
from remuda.store.objects import ResourceT


class Perturbed:
    def __init__(self, store: Store, seed: int, *, drop: float = 0, double: float = 0, shuffle: float = 0) -> None:
        self._store = store
        self._chance = SeededRandomness(seed)
        self._drop, self._double, self._shuffle = drop, double, shuffle
        self.perturbations = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Event[ResourceT]]:
        kept: list[Event[ResourceT]] = []
        async for event in self._store.watch(kind, since=since, **watched):
            if self._happens(self._drop):
                continue
            if self._happens(self._shuffle):
                kept.append(event)
                continue
            yield event
            if self._happens(self._double):
                yield event
            while kept:
                yield kept.pop(self._chance.randrange(len(kept)))

    def _happens(self, rate: float) -> bool:
        fired = self._chance.uniform(0, 1) < rate
        self.perturbations += fired
        return fired
