"""What clients of a simulated store tried, what they were told, and what must therefore be there."""

from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec

from remuda.kernel.errors import Invalid, RemudaError, Unavailable, Unusable
from remuda.store.logs import Record
from remuda.store.objects import Resource
from remuda.store.sqlite.store import SqliteStore
from tests.kit.sample_kinds import Corral, Horse, Pasture
from tests.kit.simulation.model import Key, Model, Thing, Write, seen

STREAM, SUBJECT = "timeline", "everything"
KINDS: tuple[type[Resource], ...] = (Pasture, Corral, Horse)


class Ledger:
    """Every write that was tried, what its client was told, and what must therefore be there."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.newest = 0
        self._tried: list[Write] = []
        self._told: set[int] = set()
        self._failed: set[int] = set()
        self._model = Model()
        self._position = 0

    async def attempt(self, write: Write, act: Callable[[list[Record]], Awaitable[Resource | None]]) -> None:
        """Make one write and note how it came out."""
        number = len(self._tried)
        self._tried.append(write)
        record = Record(stream=STREAM, subject=SUBJECT, data=msgspec.Raw(b"%d" % number))
        try:
            result = await act([record])
        except RemudaError as error:
            self.outcomes[type(error).__name__] += 1
            if isinstance(error, Unavailable):
                self._failed.add(number)
            elif isinstance(error, (Invalid, Unusable)):
                raise
        else:
            self.outcomes["acknowledged"] += 1
            self._told.add(number)
            self.newest = max(self.newest, int(result.version) if result is not None else 0)

    async def check(self, store: SqliteStore, *, after_crash: bool) -> None:
        """What was told is there, what failed is not (unless after a crash), and all is as the model says."""
        logged: list[int] = []
        after: int | None = self._position
        while after is not None:
            page = await store.read(STREAM, SUBJECT, after=after)
            logged += [int(bytes(entry.data)) for entry in page.entries]
            position = page.entries[-1].position if page.entries else self._position
            after = page.next
        things = await things_in(store)
        unasked = set(logged) - self._told
        assert self._told <= set(logged), f"writes {self._told - set(logged)} were acknowledged and are lost"
        assert unasked <= (self._failed if after_crash else set()), f"writes {unasked} failed and are there"
        for number in logged:
            self._model.apply(self._tried[number])
        wanted = self._model.things
        wrong = {key[1] for key in things.keys() | wanted.keys() if things.get(key) != wanted.get(key)}
        assert not wrong, f"{sorted(wrong)} are not as the model says"
        self.outcomes["failed, yet there after a crash"] += len(unasked)
        self._position = position
        self._told.clear()
        if after_crash:
            self._failed.clear()


async def things_in(store: SqliteStore) -> dict[Key, Thing]:
    """Return all objects as the model sees them."""
    things: dict[Key, Thing] = {}
    for kind in KINDS:
        things |= {(kind, each.name): seen(each) for each in (await store.list(kind)).items}
    return things
