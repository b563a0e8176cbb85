"""The recent changes of one kind, and those who wait for the next.

Watchers hold a cursor, not a queue: they read the shared tail, or the table when they fell behind it. So a thousand
watchers that never read cost nothing, and a slow one is only told Gone when compaction has passed it.

When each part of what is stored was changed last, so that what was made of it can be kept until then.

Time is counted in ticks, one for each time that changes become visible. Of kinds that are only ever asked about as a
whole no more than the last tick is kept. Of others there is also the last tick of whatever was changed lately; what is
not among that was not changed after the `floor`, and nobody can say more. If very much changes at once, all of its kind
did. So memory and time are bounded, and the answer is never too early: it can be too late, which costs whoever asks one
more read.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic

import msgspec

from remuda.kernel.errors import Gone
from remuda.store.contract import NAME_INDEX, Change, Part, Term, field_index, label_index
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, ResourceT
from remuda.store.readside.tables import ChangeCode


class Landed(msgspec.Struct, Generic[ResourceT], frozen=True, gc=False):
    """A change that is durable, as watchers need it."""

    name: str
    version: int
    code: ChangeCode
    event: Change[ResourceT]
    """What a watcher without a filter sees."""
    before: ResourceT | None
    """The state before, if the object is found otherwise since (`Kind.is_moved`): only then can it enter or leave
    a filter."""
    weight: int
    """Bytes of the document."""
    whole: bool = False
    """The document is known to hold nothing that our types do not know."""


class Feed:
    """The tail of one kind's history."""

    def __init__(self, kind: str, *, reached: int, floor: int, keep: int, keep_bytes: int) -> None:
        self.kind = kind
        self.reached = reached
        self.floor = floor
        self.ticks = 0
        self.closed: Exception | None = None
        """What readers are told once the store is closed."""
        self._keep, self._keep_bytes = keep, keep_bytes
        self._tail: list[Landed[Any]] = []
        self._tail_from = reached
        self._tail_bytes = 0
        self._last_change = reached
        self._waiters: dict[asyncio.Future[None], None] = {}
        self._has_news = False
        self._readers_ahead = 0

    def extend(self, changes: Sequence[Landed[Any]]) -> None:
        """Add changes in the order of their versions. Of very many, the last `keep` are enough."""
        if len(changes) >= self._keep:
            self._tail, self._tail_from, self._tail_bytes = [], changes[0].version - 1, 0
        self._tail.extend(changes)
        self._tail_bytes += sum(change.weight for change in changes)
        self._has_news = True
        self._last_change = max(self._last_change, changes[-1].version) if changes else self._last_change
        if len(self._tail) > 2 * self._keep or self._tail_bytes > 2 * self._keep_bytes:
            self._trim()

    def _trim(self) -> None:
        """Let the oldest go. At twice the bound, so that it is rarely done."""
        drop = max(0, len(self._tail) - self._keep)
        self._tail_bytes -= sum(change.weight for change in self._tail[:drop])
        while drop < len(self._tail) and self._tail_bytes > self._keep_bytes:
            self._tail_bytes -= self._tail[drop].weight
            drop += 1
        if drop:
            self._tail_from = self._tail[drop - 1].version
            del self._tail[:drop]

    def close(self, reason: Exception) -> None:
        """End everybody's wait: nothing will happen any more."""
        self.closed = reason
        self._has_news = True
        self.advance(self.reached)

    def advance(self, version: int) -> None:
        """Everything up to this version has arrived: wake those who wait for it."""
        self.reached = max(self.reached, version)
        if not self._has_news and not self._readers_ahead:
            return
        self._has_news = False
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def tick(self) -> None:
        """Let idle watchers send a bookmark."""
        self.ticks += 1
        self._has_news = True
        self.advance(self.reached)

    def lose_history(self, version: int) -> None:
        """Changes up to this version were missed: whoever stands before it is told Gone."""
        self._tail.clear()
        self._tail_bytes = 0
        self._tail_from = self._last_change = self.floor = version
        self._has_news = True
        self.advance(self.reached)

    def forget(self, version: int) -> None:
        """History up to this version is compacted. Of a kind that was quiet, nothing is lost by that."""
        self.floor = max(self.floor, min(version, self._last_change))

    def after(self, cursor: int, *, limit: int) -> Sequence[Landed[Any]] | None:
        """Return the next changes after a version, or None if they reach further back than the tail."""
        if cursor < self._tail_from:
            return None
        start = len(self._tail)
        while start and self._tail[start - 1].version > cursor:
            start -= 1
        return self._tail[start : start + limit]

    async def wait(self) -> None:
        """Return when something may have happened."""
        if self.closed is not None:
            raise self.closed
        waiter = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        try:
            await waiter
        finally:
            self._waiters.pop(waiter, None)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when a condition holds that only the arrival of versions can make true."""
        self._readers_ahead += 1
        try:
            while not condition():
                await self.wait()
        finally:
            self._readers_ahead -= 1

    async def reach(self, version: int, patience_s: float) -> None:
        """Return when everything up to `version` has arrived, or raise Gone when patience ends."""
        if self.reached >= version:
            return
        try:
            async with asyncio.timeout(patience_s):
                await self.until(lambda: self.reached >= version)
        except TimeoutError:
            raise Gone(self.kind, str(version)) from None


_LATELY = 4_096
"""Terms of one kind whose last change is remembered."""
_AT_ONCE = 1_000
"""Terms that are looked at when changes become visible: nobody else is served meanwhile."""


class _Lately:
    """The terms of one kind that were changed last."""

    __slots__ = ("_at", "_floor")

    def __init__(self, floor: int) -> None:
        self._floor = floor
        self._at: OrderedDict[Term, int] = OrderedDict()

    def note(self, terms: Iterable[Term], tick: int) -> None:
        for term in terms:
            self._at[term] = tick
            self._at.move_to_end(term)
        while len(self._at) > _LATELY:
            _, self._floor = self._at.popitem(last=False)

    def at(self, term: Term) -> int:
        return self._at.get(term, self._floor)


class Stamps:
    """The last changes of all kinds."""

    def __init__(self, kinds: Iterable[Kind[Any]]) -> None:
        self._tick = 0
        self._whole: dict[type[Resource], int] = {kind.type: 0 for kind in kinds}
        self._lately: dict[type[Resource], _Lately] = {}

    def change(self, kind: Kind[Any], changes: Sequence[Landed[Any]]) -> None:
        """Note changes of one kind that become visible now."""
        self._tick += 1
        self._whole[kind.type] = self._tick
        lately = self._lately.get(kind.type)
        if lately is None:
            return
        terms = list(islice((term for change in changes for term in _moved(kind, change)), _AT_ONCE + 1))
        if len(terms) > _AT_ONCE:
            del self._lately[kind.type]
        else:
            lately.note(terms, self._tick)

    def change_all(self, kind: Kind[Any]) -> None:
        """Note that anything of a kind may have changed."""
        self._tick += 1
        self._whole[kind.type] = self._tick
        self._lately.pop(kind.type, None)

    def last(self, parts: Iterable[Part] | None = None) -> int:
        """Return the tick of the last change of any of these parts, or of anything at all."""
        return self._tick if parts is None else max(map(self._at, parts), default=0)

    def _at(self, part: Part) -> int:
        if not isinstance(part, tuple):
            return self._whole[part]
        kind, term = part
        lately = self._lately.get(kind)
        if lately is None:
            lately = self._lately[kind] = _Lately(self._whole[kind])
        return lately.at(term)


def _moved(kind: Kind[Any], change: Landed[Any]) -> Iterator[Term]:
    """Yield what an object is found under, or was."""
    yield from _terms(kind, change.event.resource)
    if change.before is not None:
        yield from _terms(kind, change.before)


def _terms(kind: Kind[Any], resource: Resource) -> Iterator[Term]:
    yield NAME_INDEX, resource.name
    for key, value in resource.metadata.labels.items():
        yield label_index(key), value
    for index in kind.indexes:
        name = field_index(index.name)
        for value in index.values(resource):
            yield name, value
