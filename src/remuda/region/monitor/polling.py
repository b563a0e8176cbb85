"""Polling servers: what has changed at a provider is looked at, and what is missing is told to its controller.

Of each server only its name and version are read, and compared with those of the last poll. One that has another
version is looked at now. One that is new to us, as all are after a start, is looked at when its turn comes: slowly,
since its controller has looked as well. One that is missing is for its controller, which looks twice before it believes
that.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import structlog

from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError
from remuda.providers.contract.names import id_in
from remuda.providers.contract.servers import Servers, Sighting
from remuda.region.servers.looking import Looking

__all__ = ["Poll"]

_STRIDE = 100


class Poll:
    """The servers of one region."""

    def __init__(
        self, looking: Looking, wake: Callable[[str], None], *, clock: Clock, first_looks_per_s: float
    ) -> None:
        """Tell the controller of servers by `wake` whom to look after."""
        self._looking, self._wake, self._clock = looking, wake, clock
        self._pause_s = 1 / first_looks_per_s
        self._known: dict[str, str] = {}
        self._changed: deque[str] = deque()
        self._new: deque[str] = deque()
        self._news = asyncio.Event()

    @property
    def waiting(self) -> int:
        """How many servers wait to be looked at."""
        return len(self._changed) + len(self._new)

    async def poll(self, servers: Servers) -> None:
        """Compare all servers with what they were at the last poll."""
        before, self._known = self._known, {}
        try:
            async for part in servers.sightings():
                self._compare(part, before)
        except RemudaError:
            self._known = before | self._known  # what was not seen is not known to be missing
            raise
        await self._miss(before)

    async def keep_looking(self) -> None:
        """Look at those that have changed, and in between at those that are new: a duty."""
        while True:
            await self._news.wait()
            if self._changed:
                await self._look(self._changed.popleft())
            elif self._new:
                await self._look(self._new.popleft())
                await self._clock.sleep(self._pause_s)
            else:
                self._news.clear()

    def _compare(self, part: Sequence[Sighting], before: dict[str, str]) -> None:
        known = self._known
        for sighting in part:
            name, version = sighting.handle.name, sighting.version
            last = before.pop(name, None) or known.get(name)  # a listing may have something twice
            known[name] = version
            if last != version:
                (self._new if last is None else self._changed).append(name)
                self._news.set()

    async def _look(self, name: str) -> None:
        try:
            await self._looking.look(id_in(name))
        except RemudaError as error:
            self._known.pop(name, None)  # it is new again at the next poll
            structlog.get_logger().warning("server not looked at", server=name, error=error.code)

    async def _miss(self, names: Iterable[str]) -> None:
        for count, name in enumerate(names, 1):
            self._wake(id_in(name))
            if count % _STRIDE == 0:
                await self._clock.sleep(0)
