"""Read your own writes: a write is over when our own informer has shown it to every reader.

Never by writing through to the tables: that would break the order of the history.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from remuda.kernel.errors import Unavailable
from remuda.store.kinds import Kind
from remuda.store.objects import Resource
from remuda.store.readside.reader import Reader

ResultT = TypeVar("ResultT", bound=Resource | None)


@dataclass(frozen=True, slots=True)
class Written(Generic[ResultT]):
    """A write that the API server has stored."""

    kind: Kind[Any]
    resource: ResultT
    """What the caller is given."""
    gone: Resource | None = None
    """What the write let go."""


class Delivery:
    """Waits for informers."""

    def __init__(self, reader: Reader, *, patience_s: float) -> None:
        self._reader = reader
        self._patience_s = patience_s

    async def shown(self, written: Written[ResultT]) -> ResultT:
        """Return what was written when every reader sees it."""
        gone, resource = written.gone, written.resource
        if gone is not None:
            await self._wait(written.kind, lambda: self._is_gone(written.kind, gone))
        elif resource is not None:
            version, feed = int(resource.version), self._reader.feed(written.kind)
            await self._wait(written.kind, lambda: feed.reached >= version)
        return resource

    def _is_gone(self, kind: Kind[Any], resource: Resource) -> bool:
        with self._reader.storage:
            found = self._reader.find(kind, resource.name)
        return found is None or found.uid != resource.uid

    async def _wait(self, kind: Kind[Any], condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                await self._reader.feed(kind).until(condition)
        except TimeoutError:
            problem = f"The write is stored, but the informer of {kind.qualified} lags behind"
            raise Unavailable(f"{problem}: read again in a moment.") from None
