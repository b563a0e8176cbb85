"""A server among 1,000 on one network beside one among 10: a reconcile that finds nothing to do, and one more server.

Both sides have as many servers in all. The one has them on one network, the other ten on each of many.
"""

import itertools
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bench.bed import Bed
from bench.callers import by_callers
from bench.cpu import spent_us
from bench.loops import run
from bench.region.environment import Environment, housed
from bench.report import Measure, at_most
from bench.rounds import Subject, alternate, good_time

__all__ = ["measures"]

_GOAL = 1.3
_FEW = 10
_MORE = 100
_TURNS = 10


def measures(bed: Bed) -> Iterator[Measure]:
    """Compare a reconcile, and a server from the request until it runs."""
    settled, creates = run(_compare(bed))
    many = f"{bed.sizes.networked:,} on a network to {_FEW}"
    yield at_most(_GOAL, f"a reconcile of a running server, {many}", *settled, "µs CPU")
    yield at_most(_GOAL, f"one more server, {many}", *creates, "µs CPU")


async def _compare(bed: Bed) -> tuple[tuple[float, float], tuple[float, float]]:
    count = bed.sizes.networked
    async with _furnished(bed, 1, count) as one, _furnished(bed, count // _FEW, count) as many:
        settled = await alternate(_TURNS, _scanning(one, count), _scanning(many, count))
        creates = await alternate(_TURNS, one.more(), many.more())
    return _good(settled), _good(creates)


def _good(values: Sequence[Sequence[float]]) -> tuple[float, float]:
    ours, limit = (good_time(each) for each in values)
    return ours, limit


@dataclass(frozen=True, slots=True)
class _Site:
    environment: Environment
    networks: list[str]
    numbers: Iterator[int]

    async def make(self, count: int) -> None:
        """Make so many servers, on the networks in turn."""
        numbers = [next(self.numbers) for _ in range(count)]
        await by_callers(lambda number: self.environment.server(self._network(number), f"server-{number}"), numbers)
        await self.environment.settled()

    def more(self) -> Subject:
        """Return what makes more, and tells what each took."""

        async def turn(_: int) -> float:
            start = time.process_time()
            await self.make(_MORE)
            return spent_us(start, _MORE)

        return turn

    def _network(self, number: int) -> str:
        return self.networks[number % len(self.networks)]


@asynccontextmanager
async def _furnished(bed: Bed, networks: int, servers: int) -> AsyncIterator[_Site]:
    async with housed(bed) as environment:
        site = _Site(environment, await environment.networks(networks), itertools.count())
        await site.make(servers)
        yield site


def _scanning(site: _Site, count: int) -> Subject:
    async def turn(_: int) -> float:
        start = time.process_time()
        assert await site.environment.region.running_controllers["servers"].resync() == count
        await site.environment.settled()
        return spent_us(start, count)

    return turn
