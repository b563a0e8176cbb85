"""Many instances to which nothing happens: how much of a core everything takes, at the periods of the default.

What goes on for hours after a start goes on while we watch: both controllers look at what is at rest, region's monitor
at servers and for orphans, compute's at instances and at what is held for them. What is short and comes again is added
as a share of its period: region's poll, and identity's look at the ledger.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from prometheus_client import CollectorRegistry

from bench.bed import Bed
from bench.compute.environment import ComputeEnvironment
from bench.compute.fleet import at_rest, fleet, prepared
from bench.loops import run
from bench.region.environment import TENANT
from bench.region.idling import eyes, poll_share, searching, share_at_rest
from bench.report import Measure, at_most, figure
from remuda.compute.kinds import ComputeInstance
from remuda.compute.monitor.monitor import Monitor, new_monitor
from remuda.identity.kinds.quotas import Allocation
from remuda.identity.quotas.monitor import compare, pause_s
from remuda.region.kinds.servers import Server

__all__ = ["measures", "monitor_beside"]

_LIMIT_PERCENT = 1.0
_LEARNING_S = 2.0


def measures(bed: Bed) -> Iterator[Measure]:
    """Open an environment, let it begin, and wait."""
    idle, poll, ledger = run(_spent(bed))
    count = f"{bed.sizes.fleet:,} idle instances"
    yield at_most(1, f"{count}, resyncs, polls and rounds included", idle + poll + ledger, _LIMIT_PERCENT, "% CPU")
    yield figure(f"{count}: the polls' part", poll, "% CPU")
    yield figure(f"{count}: the ledger's part", ledger, "% CPU")


async def _spent(bed: Bed) -> tuple[float, float, float]:
    await prepared(bed, bed.sizes.fleet)
    opened = time.perf_counter()
    async with fleet(bed, bed.sizes.fleet) as environment:
        await at_rest()
        version, watch = (
            environment.store.change_counter((Server, ComputeInstance, Allocation)),
            eyes(environment.region),
        )
        poll, ledger = await poll_share(environment.region, watch), await _ledger_share(environment)
        async with searching(environment.region, watch), _rounds(environment):
            idle = await share_at_rest(opened)
        assert version == environment.store.change_counter((Server, ComputeInstance, Allocation)), (
            "nothing was to be done"
        )
    return idle, poll, ledger


async def _ledger_share(environment: ComputeEnvironment) -> float:
    """Return how much of a core identity's look at the ledger takes, in percent of its period."""
    start = time.process_time()
    drift, rows = await compare(environment.store, TENANT.id)
    assert drift is None, "it is right"
    return (time.process_time() - start) / pause_s(rows) * 100


@asynccontextmanager
async def _rounds(environment: ComputeEnvironment) -> AsyncIterator[None]:
    """Have compute's monitor check everything meanwhile."""
    monitor = await monitor_beside(environment)
    looks = [asyncio.ensure_future(look()) for look in (monitor.instances.run, monitor.allocations.run)]
    try:
        await monitor.stalled.run()
        await monitor.orphans.run()
        yield
    finally:
        assert not any(look.done() for look in looks), "they take hours"
        await _ended(looks)


async def monitor_beside(environment: ComputeEnvironment) -> Monitor:
    """Return a monitor beside that of the environment, which knows the projects there are."""
    compute = environment.compute
    apart = replace(compute.ports, metrics=CollectorRegistry())
    monitor = new_monitor(apart, compute.running_controllers["instances"].enqueue)
    learning = asyncio.ensure_future(monitor.allocations.watch_projects())
    await asyncio.sleep(_LEARNING_S)
    await _ended([learning])
    return monitor


async def _ended(tasks: Sequence[asyncio.Future[None]]) -> None:
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(ended, asyncio.CancelledError), ended
