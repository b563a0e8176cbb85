"""Nothing blocks the loop: the most CPU time of one callback in what region does at length.

The garbage collector is asked to look at what is new while we watch. As in `remuda up`, it need not look at what was
built when all stands.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

from prometheus_client import CollectorRegistry

from bench.bed import Bed
from bench.callers import CALLERS, by_callers
from bench.loopwatch import watched
from bench.region.environment import REGION, Environment, housed
from bench.region.fleet import fleet
from bench.report import Measure, at_most, figure
from remuda.region.catalogue.provider_registry import require
from remuda.region.monitor.metrics import MonitorMetrics, ServerCounts
from remuda.region.monitor.monitor import new_monitor

__all__ = ["Case", "measures", "watch"]

_LIMIT_MS = 10.0
_COUNTING_S = 10.0

Work = Callable[[], Awaitable[object]]
Case = tuple[str, Work]
"""What is done, by its title."""


def measures(bed: Bed) -> Iterator[Measure]:
    """Run each work under watch."""
    yield from asyncio.run(watch(_cases(bed)))


async def watch(cases: AsyncIterator[Case]) -> list[Measure]:
    """Run the work of each case, and return how long it blocked the event loop at most."""
    found: list[Measure] = []
    async for title, work in cases:
        async with watched() as held:
            await asyncio.create_task(_run(work))
            asyncio.get_running_loop().call_soon(gc.collect, 0)
            await asyncio.sleep(0)
        found.append(at_most(1, f"blocks the event loop: {title}", held.cpu_s * 1_000, _LIMIT_MS, "ms CPU"))
        found.append(figure(f"wall lag: {title}", held.lag_s * 1_000, "ms"))
    return found


async def _run(work: Work) -> None:
    await work()


async def _cases(bed: Bed) -> AsyncIterator[Case]:
    count = bed.sizes.networked
    async with housed(bed) as environment:
        (network,) = await environment.networks(1)
        yield f"{count:,} servers created by {CALLERS} callers", partial(_make, environment, network, count)
        yield f"a list of {count:,} servers", partial(environment.root.get, "/api/v2/servers")
        yield f"reconciling all {count:,} servers", partial(_scan, environment)
        yield f"deleting a project with {count:,} servers", environment.end_project
    fleet_size = f"{bed.sizes.fleet:,} servers"
    async with fleet(bed, bed.sizes.fleet) as environment:
        poll = await _poll(environment)
        yield f"the first poll of {fleet_size} after a start", poll
        yield f"a poll of {fleet_size}", poll
        yield f"a count of {fleet_size}", partial(_count, environment)


async def _make(environment: Environment, network: str, count: int) -> None:
    await by_callers(lambda number: environment.server(network, f"server-{number}"), range(count))
    await environment.settled()


async def _scan(environment: Environment) -> None:
    await environment.region.running_controllers["servers"].resync()
    await environment.settled()


async def _poll(environment: Environment) -> Work:
    """Return a poll: the first time it sees all servers again, from then on all are as they were."""
    region = environment.region
    apart = replace(region.ports, metrics=CollectorRegistry())  # the environment has a monitor of its own
    poll = (
        new_monitor(apart, region.providers, region.running_controllers["servers"].enqueue).region_tasks(REGION).poller
    )
    return partial(poll.poll, require((await region.providers.get(REGION)).provider.servers))


async def _count(environment: Environment) -> None:
    """Have a census taken, and taken again."""
    ports, metrics = environment.region.ports, MonitorMetrics(CollectorRegistry())
    census = ServerCounts(ports.store, ports.clock, metrics)
    for _ in range(2):
        with suppress(TimeoutError):
            async with asyncio.timeout(_COUNTING_S):
                await census.run()
