"""Polling servers: what has changed at a provider is looked at, and what is missing is told to its controller.

Of each server only its name and version are read, and compared with those of the last poll. One that has another
version is looked at now. One that is missing is for its controller, which looks twice before it believes that.

After a start nothing is known of the last poll but its digests. Where they agree nothing has happened meanwhile. All
others are as good as new, and looked at slowly, as their turn comes. And whichever of our own servers the provider does
not have is for the controller.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import structlog

from remuda.kernel.clock import Clock, let_others_run
from remuda.kernel.errors import RemudaError
from remuda.providers.contract.common import id_in
from remuda.providers.contract.servers import Servers, Sighting
from remuda.reconcile.leader import Pace
from remuda.region.monitor.digests import Digests
from remuda.region.monitor.line import Line
from remuda.region.monitor.remembering import Memory
from remuda.region.servers.looking import Looking

_STRIDE = 100
_NEW = 10
"""So many new servers are looked at in a row: the pause after them is how long one that has changed may wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollPorts:
    """What a poll touches."""

    looking: Looking
    wake: Callable[[str], None]
    """Tells the controller of servers whom to look after."""
    memory: Memory
    ours: Callable[[], AsyncIterator[str]]
    """Returns the names of all our servers of the region."""
    clock: Clock


class Poll:
    """The servers of one region."""

    def __init__(self, ports: PollPorts, *, first_looks_per_s: float) -> None:
        self._ports = ports
        self._pace = Pace(ports.clock, first_looks_per_s, stride=_NEW)
        self._known: dict[str, str] = {}
        self._digests = Digests()
        self._is_first = True
        self._failed: set[str] = set()
        """Whom we could not look at: they still wait."""
        self._changed, self._new = Line(), Line()
        self._news = asyncio.Event()

    @property
    def waiting(self) -> int:
        """How many servers wait to be looked at."""
        return len(self._changed) + len(self._new)

    async def poll(self, servers: Servers) -> None:
        """Compare all servers with what they were at the last poll."""
        await (self._meet(servers) if self._is_first else self._compare(servers))
        await self._ports.memory.keep(self._digests)

    async def keep_looking(self) -> None:
        """Look at those that have changed, and in between at those that are new: a duty."""
        while True:
            await self._news.wait()
            if self._changed:
                await self._look(self._changed.take())
            elif self._new:
                await self._look(self._new.take())
                await self._pace.step()
            else:
                self._news.clear()

    async def _meet(self, servers: Servers) -> None:
        """See all servers for the first time."""
        known, digests = dict[str, str](), Digests()
        async for part in servers.sightings():
            for name, version in _told(part):
                if name not in known:  # a listing may have something twice
                    known[name] = version
                    digests.add(name, version)
        remembered = await self._ports.memory.recall()
        missing = await self._missing(known)
        self._known, self._digests, self._is_first = known, digests, False
        async for name in _in_strides(list(known)):
            if not digests.agree(remembered, name):
                self._put_in_line(name, self._new)
        await self._tell(missing)

    async def _missing(self, known: Iterable[str]) -> list[str]:
        """Return which of our servers are not there.

        Names go one by one, and out of a dictionary, at which the garbage collector does not look: 100,000 at once, or
        in a set, would hold the loop.
        """
        ids = {id_in(name): name async for name in _in_strides(list(known))}
        return [name async for name in self._ports.ours() if ids.pop(name, None) is None]

    async def _compare(self, servers: Servers) -> None:
        """See what has changed since the last time."""
        before, self._known = self._known, {}
        try:
            async for part in servers.sightings():
                self._compare_part(part, before)
        except RemudaError:
            self._known = _joined(before, self._known)  # what was not seen is not known to be missing
            raise
        await self._tell(self._miss(before))

    def _compare_part(self, part: Sequence[Sighting], before: dict[str, str]) -> None:
        known, failed = self._known, self._failed
        for name, version in _told(part):
            last = before.pop(name, None) or known.get(name)  # a listing may have something twice
            known[name] = version
            if last != version:
                if last is not None:
                    self._digests.drop(name, last)
                self._digests.add(name, version)
                self._put_in_line(name, self._new if last is None else self._changed)
            elif name in failed:
                self._put_in_line(name, self._new)

    def _put_in_line(self, name: str, line: Line) -> None:
        if name in self._failed:
            self._failed.remove(name)
        else:
            self._digests.wait(name)
        line.put(name)
        self._news.set()

    async def _look(self, name: str) -> None:
        try:
            await self._ports.looking.look(id_in(name))
        except RemudaError as error:
            self._failed.add(name)  # it comes again at the next poll
            structlog.get_logger().warning("server not looked at", server=name, error=error.code)
        else:
            self._digests.looked(name)

    def _miss(self, gone: Mapping[str, str]) -> Iterator[str]:
        """Forget servers that are not there any more, one by one; yield our ids of them."""
        for name, version in gone.items():
            self._digests.drop(name, version)
            if name in self._failed:
                self._failed.remove(name)
                self._digests.looked(name)
            yield id_in(name)

    async def _tell(self, ids: Iterable[str]) -> None:
        async for each in _in_strides(ids):
            self._ports.wake(each)


async def _in_strides(names: Iterable[str]) -> AsyncIterator[str]:
    """Yield names, and let others run after each few."""
    for count, name in enumerate(names, 1):
        yield name
        if count % _STRIDE == 0:
            await let_others_run()


def _told(part: Sequence[Sighting]) -> Iterator[tuple[str, str]]:
    return ((each.handle.name, each.version) for each in part)


def _joined(one: dict[str, str], other: dict[str, str]) -> dict[str, str]:
    """Return both together, which have nothing in common; the larger one is not copied."""
    few, many = sorted((one, other), key=len)
    many.update(few)
    return many
