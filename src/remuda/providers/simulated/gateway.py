"""Where every call to the cloud arrives: it takes its time, and may go wrong.

What the cloud was told to do it does, even if whoever told it gives up: an effect is a task of its own. A cloud that
answers at once and never fails needs none of that, and has none of its cost: what it is asked for in one turn of the
loop is one commit.

Effects that are asked for in one turn of the loop: each whole or not at all, all in one commit.

A commit costs as much as several effects. Only a cloud that answers at once is asked for so many of them in a turn.

When what the cloud answered for is on its disk.

Commits do not wait for the disk, because they happen on the event loop. An answer does: it leaves after a sync of the
write-ahead log that began after its commit, in a thread, and one sync serves all who wait for it. The log is moved into
the file there, too.

What all rooms of the cloud stand on.

A table of things that a tenancy has, each one document under its handle.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import apsw
import msgspec

from remuda.kernel.clock import Clock, let_others_run
from remuda.kernel.errors import NotFound
from remuda.kernel.randomness import Randomness
from remuda.providers.contract.common import Handle
from remuda.providers.contract.provider import Subject
from remuda.providers.simulated.catalogue import Catalogue
from remuda.providers.simulated.database import IsTold, Storage
from remuda.providers.simulated.faults import Calm, CloudFailed, Fault, FaultBounds, Faults, Latency, Past, RateLimited
from remuda.providers.simulated.timers import Clockwork

T = TypeVar("T")


class Together:
    """Gathers effects."""

    def __init__(self, clockwork: Clockwork, storage: Storage, *, is_told: IsTold) -> None:
        self._clockwork, self._storage, self._is_told = clockwork, storage, is_told
        self._asked: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    @property
    def is_busy(self) -> bool:
        """Something is still to be done."""
        return bool(self._asked)

    async def have(self, effect: Callable[[], T]) -> T:
        """Have an effect in the commit at the end of this turn. Who gives up waiting leaves it as it is."""
        loop = asyncio.get_running_loop()
        if not self._asked:
            loop.call_soon(self._commit)
        answer: asyncio.Future[T | Exception] = loop.create_future()
        self._asked.append((effect, answer))
        outcome = await answer
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _commit(self) -> None:
        asked, self._asked = self._asked, []
        for (_, answer), outcome in zip(asked, self._outcomes([effect for effect, _ in asked]), strict=True):
            if not answer.done():
                answer.set_result(outcome)

    def _outcomes(self, effects: Sequence[Callable[[], Any]]) -> Sequence[Any]:
        try:
            self._clockwork.settle()
            return self._storage.write_all(effects, is_told=self._is_told)
        except Exception as error:  # noqa: BLE001  nobody else is there to hear of it
            return [error] * len(effects)


_LOG_BYTES = 4 * 2**20


class Disk:
    """The disk under an open file."""

    def __init__(self, path: Path, *, sync: Callable[[int], None] = os.fsync) -> None:
        self._sync = sync
        self._log = os.open(path.with_name(path.name + "-wal"), os.O_RDWR)
        self._mover = apsw.Connection(str(path))
        self._mover.pragma("synchronous", "normal")
        self._under_way: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def reached(self) -> None:
        """Return when all that is committed now would survive a power cut."""
        # A sync that is under way may have begun before our commit: only the next one is sure to hold it.
        if self._next is None:
            self._next = asyncio.create_task(self._sync_after(self._under_way), name="cloud sync")
        await asyncio.shield(self._next)

    async def close(self) -> None:
        """Wait for the last sync, and let go of the file."""
        left = [task for task in (self._under_way, self._next) if task is not None]
        if left:
            await asyncio.wait(left)
        self._mover.close()
        os.close(self._log)

    async def _sync_after(self, earlier: "asyncio.Task[None] | None") -> None:
        if earlier is not None:
            await asyncio.wait((earlier,))
        self._under_way, self._next = self._next, None
        await asyncio.to_thread(self._write_back)

    def _write_back(self) -> None:
        self._sync(self._log)
        if os.fstat(self._log).st_size > _LOG_BYTES:
            self._mover.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)


Page = tuple[Sequence[T], Any]

PART = 500
"""So many rows are in a part of a list."""


@dataclass(slots=True, kw_only=True)
class Desk:
    """Takes calls."""

    clock: Clock
    randomness: Randomness
    storage: Storage
    clockwork: Clockwork
    latency: Latency
    faults: Faults
    bounds: FaultBounds
    past: Past
    disk: Disk | None = None
    """Where an answer has to be before it leaves; None if it need not."""
    _under_way: dict[asyncio.Task[Any], None] = field(default_factory=dict, init=False)  # in order
    _is_calm: bool = field(init=False)
    _is_quick: bool = field(init=False)
    _together: Together = field(init=False)

    def __post_init__(self) -> None:
        self._is_calm = isinstance(self.faults, Calm)
        self._is_quick = self._is_calm and self.latency.is_zero and self.disk is None
        self._together = Together(self.clockwork, self.storage, is_told=self._is_told)
        if not self._is_calm:
            self.storage.before_change = self.past.remember

    @property
    def lag_s(self) -> float:
        """How old a read can be."""
        return 0.0 if self._is_calm else self.bounds.stale_s

    @property
    def is_busy(self) -> bool:
        """Something that the cloud was told to do has not ended."""
        return bool(self._under_way) or self._together.is_busy

    async def change(self, verb: str, effect: Callable[[], T]) -> T:
        """Have an effect, whole or not at all."""
        if self._is_quick:
            return await self._together.have(effect)
        task = asyncio.create_task(self._work(verb, effect), name=f"cloud {verb}")
        self._under_way[task] = None
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def made(self, subject: Subject, handle: Handle) -> None:
        """Take note, inside an effect, that it makes something new."""
        if not self._is_calm and self._fires("not_found_yet", subject):
            self.past.hide(subject, handle)

    async def look(self, verb: str, read: Callable[[], T]) -> T:
        """Read what is never stale."""
        await self._begin(verb)
        self.clockwork.settle()
        return read()

    async def find(self, verb: str, subject: Subject, handle: Handle, read: Callable[[Handle], T | None]) -> T | None:
        await self._begin(verb)
        self.clockwork.settle()
        found = read(handle)
        if self._is_calm:
            return found
        return self.past.seen(subject, handle, found, is_stale=self._fires("stale", verb))  # type: ignore[no-any-return]  # it is what the reader reads

    async def parts(
        self,
        verb: str,
        subject: Subject,
        page: Callable[[Any], Page[T]],
        handle_of: Callable[[T], Handle],
        show: Callable[[Any], T] = lambda thing: thing,
    ) -> AsyncIterator[Sequence[T]]:
        """Yield all things of a sort as `page` reads them behind a mark: the things, and the next mark or None.

        `show` makes of what a read of one thing returns what stands in the list.
        """
        is_stale = self._fires("stale", verb)
        mark = None
        while True:
            await self._begin(verb)
            self.clockwork.settle()
            things, mark = page(mark)
            if not self._is_calm:
                present: dict[Handle, Any] = {handle_of(thing): thing for thing in things}
                if is_stale and mark is None:
                    present.update(dict.fromkeys(self.past.gone(subject)))
                things = [show(thing) for thing in self.past.rows(subject, present, is_stale=is_stale)]
                things += things[:1] if self._fires("doubled_rows", verb) else []
            yield things
            if mark is None:
                return
            await let_others_run()

    async def close(self) -> None:
        """Stop working: what has not been done will not be."""
        left = list(self._under_way)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)

    def _do(self, effect: Callable[[], T]) -> T:
        self.clockwork.settle()
        return self.storage.write(effect, is_told=self._is_told)

    def _is_told(self, answer: object) -> bool:
        """Tell whether a change is told beside its answer: not if that shows the thing, and is sure to come."""
        return answer is None or not self._is_calm

    async def _work(self, verb: str, effect: Callable[[], T]) -> T:
        await self._begin(verb)
        answer = self._do(effect)
        if self.disk is not None:
            await self.disk.reached()
        if self._fires("error_done", verb):
            raise CloudFailed
        if self._fires("timeout_done", verb):
            await self.clock.sleep(self.bounds.lost_answer_s)
        return answer

    async def _begin(self, verb: str) -> None:
        if self._is_quick:
            return
        pause_s = self.latency.of(verb, self.randomness)
        if self._fires("slow", verb):
            pause_s += self.randomness.uniform(0, self.bounds.slow_s)
        if pause_s > 0:
            await self.clock.sleep(pause_s)
        if self._fires("rate_limited", verb):
            raise RateLimited
        if self._fires("error", verb):
            raise CloudFailed

    def _fires(self, fault: Fault, verb: str) -> bool:
        if self._is_calm:
            return False
        return any([self.faults.fires(f"cloud.{fault}"), self.faults.fires(f"cloud.{fault}.{verb}")])

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._under_way.pop(task, None)
        if not task.cancelled():
            task.exception()  # told to whoever still waits; nobody else needs to hear of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Passed to every room."""

    catalogue: Catalogue
    storage: Storage
    clockwork: Clockwork
    desk: Desk
    randomness: Randomness


encode: Callable[[Any], bytes] = msgspec.msgpack.Encoder().encode
"""Return a thing as its document."""


class Shelf(Generic[T]):
    """Finds the documents of a table."""

    def __init__(self, storage: Storage, table: str, kind: str, document: type[T]) -> None:
        self._storage, self._kind = storage, kind
        self._decode = msgspec.msgpack.Decoder(document).decode
        self._find = f"SELECT document FROM {table} WHERE tenancy = ? AND name = ?"  # noqa: S608  the table is ours
        self._list = (
            f"SELECT tenancy, name, document FROM {table} WHERE (tenancy, name) > (?, ?) "  # noqa: S608  same
            f"ORDER BY tenancy, name LIMIT {PART}"
        )
        self._remove = f"DELETE FROM {table} WHERE tenancy = ? AND name = ?"  # noqa: S608  same

    def read(self, handle: Handle) -> T | None:
        row = self._storage.row(self._find, (handle.tenancy, handle.name))
        return None if row is None else self._decode(row[0])

    def get(self, handle: Handle) -> T:
        """Return one, or raise NotFound."""
        found = self.read(handle)
        if found is None:
            raise NotFound(self._kind, handle.name)
        return found

    def page(self, mark: Any) -> tuple[list[T], Any]:
        """Return the things behind a mark, and the mark of the last one if there may be more."""
        rows = self._storage.rows(self._list, mark or ("", ""))
        return [self._decode(row[2]) for row in rows], rows[-1][:2] if len(rows) == PART else None

    def remove(self, handle: Handle) -> None:
        """Take one away."""
        self._storage.run(self._remove, (handle.tenancy, handle.name))
