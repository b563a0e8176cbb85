"""How many objects a group has, for shares of it: counted by name, so that one that cannot be read stops nothing."""

from remuda.kernel.clock import Clock
from remuda.kernel.errors import NotFound, Unreadable, Unsealable
from remuda.reconcile.kinds import EVERYTHING
from remuda.reconcile.sources import names
from remuda.store.contract import Store
from remuda.store.objects import Resource

_COUNTED_ANEW_S = 60.0


class Population:
    """The objects of one kind, by the value of a label."""

    def __init__(self, kind: type[Resource], label: str, *, store: Store, clock: Clock) -> None:
        self._kind = kind
        self._label = label
        self._store = store
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}

    async def of(self, group: str) -> int:
        """Return how many objects the group has; counted anew when the last count is old."""
        now = self._clock.monotonic()
        self._counts = {each: known for each, known in self._counts.items() if now - known[0] < _COUNTED_ANEW_S}
        if group not in self._counts:
            self._counts[group] = now, await self._count(group)
        return self._counts[group][1]

    async def _count(self, group: str) -> int:
        labels = None if group in {"", EVERYTHING} else {self._label: group}
        count = 0
        async for name in names(self._store, self._kind, labels=labels):
            count += bool(group) or await self._has_no_label(name)
        return count

    async def _has_no_label(self, name: str) -> bool:
        """Tell whether an object is of no group, which no index knows; of one that cannot be read nobody knows."""
        try:
            resource = await self._store.get(self._kind, name)
        except (NotFound, Unreadable, Unsealable):
            return False
        return not resource.metadata.labels.get(self._label)
