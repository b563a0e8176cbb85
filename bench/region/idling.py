"""Many servers to which nothing happens: how much of a core they take, at the periods that an operator gets by default.

All that goes on by itself is made to go on while we watch, each at its own pace: a full scan of the controller, the
monitor's first looks at servers, and its search for orphans. They are spread over hours, and hardly ever go on all at
once. The monitor's poll, and its look at supplies, are short: what they take is added as a share of their period.
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
from bench.region.fleet import fleet, prepared
from bench.region.house import REGION, House
from bench.report import Measure, at_most, figure
from remuda.reconcile.sources import names
from remuda.region.catalogue.clouds import need
from remuda.region.kinds.servers import Server
from remuda.region.monitor.monitor import Watch, monitor_of

__all__ = ["measures"]

_LIMIT_PERCENT = 1.0


def measures(bed: Bed) -> Iterator[Measure]:
    """Open a house, let it begin, and wait."""
    idle, poll, alone, began = run(_spent(bed))
    count = f"{bed.sizes.fleet:,} idle servers"
    yield at_most(1, f"{count}, scans and polls included", idle + poll, _LIMIT_PERCENT, "% CPU")
    yield figure(f"{count}: the polls' part", poll, "% CPU")
    yield figure(f"{count}: between scans and polls", alone, "% CPU")
    yield figure(f"{count}: until everything was looked at and counted", began, "s CPU")


async def _spent(bed: Bed) -> tuple[float, float, float, float]:
    await prepared(bed, bed.sizes.fleet)
    start = time.process_time()
    async with fleet(bed, bed.sizes.fleet) as house:
        while (alone := await idle_share(bed.sizes.idle_s / 8)) > _LIMIT_PERCENT:
            continue  # the monitor still counts what there is
        began, version = time.process_time() - start, house.store.stamp((Server,))
        watch = _watch(house)
        poll = await _poll_share(house, watch)
        async with _everything(house, watch):
            idle = await idle_share(bed.sizes.idle_s)
        assert version == house.store.stamp((Server,)), "nothing was to be done"
    return idle, poll, alone, began


def _watch(house: House) -> Watch:
    """Return a monitor's eyes, beside those of the house, which have not opened yet."""
    region = house.region
    apart = replace(region.ports, metrics=CollectorRegistry())
    return monitor_of(apart, region.clouds, region.drivers["servers"].wake).watch()


async def _poll_share(house: House, watch: Watch) -> float:
    """Return how much of a core the monitor's short looks take, in percent of their period."""
    cloud = await house.region.clouds.get(REGION)
    servers = need(cloud.provider.servers)
    await watch.poll.poll(servers)
    start = time.process_time()
    await watch.poll.poll(servers)
    await watch.supplies.look(cloud)
    return (time.process_time() - start) / house.region.ports.settings.poll_idle.total_seconds() * 100


@asynccontextmanager
async def _everything(house: House, watch: Watch) -> AsyncIterator[None]:
    """Have all of it go on."""
    cloud = await house.region.clouds.get(REGION)
    works = (_scan(house), watch.poll.keep_looking(), watch.orphans.look(cloud))
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert not [each for each in ended if isinstance(each, Exception)], ended


async def _scan(house: House) -> None:
    """Do what a full scan does, at its pace: it begins by itself only after half an hour."""
    settings, driver = house.region.ports.control.scan, house.region.drivers["servers"]
    count = 0
    async for name in names(house.store, Server):
        driver.wake(name)
        count += 1
        if count % settings.chunk == 0:
            await asyncio.sleep(settings.chunk / settings.keys_per_s)
