"""Many servers to which nothing happens: how much of a core they take, at the periods that an operator gets by default.

What goes on after a start goes on while we watch, and for hours: the controller looks at all servers that are at rest,
and the monitor at all that it does not remember, which here is all of them. Its search for orphans would begin only in
some minutes, so we begin it. Its poll, and its look at supplies, are short: what they take is added as a share of their
period. The resync that comes now and then is as slow as the first one, and never goes on beside it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

from prometheus_client import CollectorRegistry

from bench.bed import Bed
from bench.cpu import idle_share
from bench.loops import run
from bench.region.environment import REGION, Environment
from bench.region.fleet import fleet, prepared
from bench.report import Measure, at_most, figure
from remuda.region.catalogue.provider_registry import require
from remuda.region.kinds.servers import Server
from remuda.region.monitor.monitor import RegionTasks, new_monitor

__all__ = ["eyes", "measures", "poll_share", "searching", "share_at_rest"]

_LIMIT_PERCENT = 1.0
_WATCHED_S = 50.0
"""A whole number of everybody's pauses, of which the longest are 25 s and 12.5 s: whoever looks at 50 things in a row
and then pauses would be counted once too often, or too seldom, in any other time."""
_FIRST_LOOKS_S = 300.0
"""When the short looks come for the first time after a start."""
_MAX_WAITS = 10


def measures(bed: Bed) -> Iterator[Measure]:
    """Open an environment, let it begin, and wait."""
    idle, poll, began = run(_spent(bed))
    count = f"{bed.sizes.fleet:,} idle servers"
    yield at_most(1, f"{count}, resyncs and polls included", idle + poll, _LIMIT_PERCENT, "% CPU")
    yield figure(f"{count}: the polls' part", poll, "% CPU")
    yield figure(f"{count}: a start, until it idles", began, "s CPU")


async def _spent(bed: Bed) -> tuple[float, float, float]:
    await prepared(bed, bed.sizes.fleet)
    start, opened = time.process_time(), time.perf_counter()
    async with fleet(bed, bed.sizes.fleet) as environment:
        for _ in range(_MAX_WAITS):  # it polls and counts what there is
            if await idle_share(bed.sizes.idle_s / 8) < _LIMIT_PERCENT:
                break
        began, version = time.process_time() - start, environment.store.change_counter((Server,))
        watch = eyes(environment)
        poll = await poll_share(environment, watch)
        async with searching(environment, watch):
            idle = await share_at_rest(opened)
        assert version == environment.store.change_counter((Server,)), "nothing was to be done"
    return idle, poll, began


async def share_at_rest(opened: float) -> float:
    """Return how much of a core this process uses, in percent, in an environment that was opened then."""
    share = await idle_share(_WATCHED_S)
    age_s = time.perf_counter() - opened
    assert age_s < _FIRST_LOOKS_S, f"after {age_s:.0f} s short looks would be counted twice: have less run beside it"
    return share


def eyes(environment: Environment) -> RegionTasks:
    """Return a monitor's eyes, beside those of the environment."""
    region = environment.region
    apart = replace(region.ports, metrics=CollectorRegistry())
    return new_monitor(apart, region.providers, region.running_controllers["servers"].enqueue).region_tasks(REGION)


async def poll_share(environment: Environment, watch: RegionTasks) -> float:
    """Return how much of a core the monitor's short looks take, in percent of their period."""
    cloud = await environment.region.providers.get(REGION)
    servers = require(cloud.provider.servers)
    await watch.poller.poll(servers)
    start = time.process_time()
    await watch.poller.poll(servers)
    await watch.capacity.measure(cloud)
    return (time.process_time() - start) / environment.region.ports.settings.poll_idle.total_seconds() * 100


@asynccontextmanager
async def searching(environment: Environment, watch: RegionTasks) -> AsyncIterator[None]:
    """Have orphans searched for."""
    search = asyncio.ensure_future(watch.orphans.scan(await environment.region.providers.get(REGION)))
    try:
        yield
    finally:
        search.cancel()
        (ended,) = await asyncio.gather(search, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError), ended
