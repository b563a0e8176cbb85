"""A process that dies before or after one of its durable writes, and does nothing any more."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

from remuda.operations.kinds import Operation
from remuda.store.contract import Store
from remuda.store.objects import Resource
from tests.kit.forwarding_store import Passing

ResultT = TypeVar("ResultT")
Moment = Literal["before", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "after")


class CrashError(BaseException):
    """The process dies here. Nothing may catch it."""


class Fuse:
    """Kills a process before or after its nth durable write, counted from 1; without n it only counts."""

    def __init__(self, at: int | None = None, moment: Moment = "before") -> None:
        self._at, self._moment = at, moment
        self.writes = 0
        self.by_kind: Counter[str] = Counter()
        self.has_blown = False

    def check(self) -> None:
        """A dead process does nothing any more."""
        if self.has_blown:
            raise CrashError

    def burn(self, moment: Moment) -> None:
        """A write is about to be made, or was made."""
        self.has_blown = self.writes == self._at and moment == self._moment
        self.check()


class FusedStore(Passing):
    """A store that dies with its process."""

    def __init__(self, inner: Store, fuse: Fuse) -> None:
        super().__init__(inner)
        self._fuse = fuse
        self.at_close: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]] | None = None
        """Given the first write that closes an operation as done, to make it or not."""

    async def around(self, verb: str, what: Resource | None, write: Callable[[], Awaitable[ResultT]]) -> ResultT:
        self._fuse.check()
        if self.at_close is not None and isinstance(what, Operation) and what.phase == "done":
            at_close, self.at_close = self.at_close, None
            closed: ResultT = await at_close(write)
            return closed
        self._fuse.writes += 1
        self._fuse.by_kind[type(what).__name__ if what is not None else verb] += 1
        self._fuse.burn("before")
        written = await write()
        self._fuse.burn("after")
        return written

    def before_read(self) -> None:
        self._fuse.check()
