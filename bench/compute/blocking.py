"""Nothing blocks the loop: the most CPU time of one callback, at a start, in serving, and in everybody's rounds.

Rounds go as fast as they can here instead of for hours; each of their turns on the loop is the same.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

from bench.bed import Bed
from bench.callers import CALLERS, by_callers
from bench.compute.environment import INSTANCES, ComputeEnvironment, housed
from bench.compute.fleet import at_rest, fleet
from bench.compute.idling import monitor_beside
from bench.http.inside import Request
from bench.region.blocking import Case, watch
from bench.region.environment import TENANT
from bench.report import Measure
from remuda.compute.monitor.monitor import AllocationCheck, InstanceCheck
from remuda.identity.quotas.monitor import drift_of
from remuda.reconcile.leader import Pace

__all__ = ["measures"]

_AT_ONCE = 1_000_000.0
_LOOKING_S = 30.0


def measures(bed: Bed) -> Iterator[Measure]:
    """Run each work under watch."""
    yield from asyncio.run(watch(_cases(bed)))


async def _cases(bed: Bed) -> AsyncIterator[Case]:
    count = bed.sizes.networked
    async with housed(bed) as environment:
        (network,) = await environment.region.networks(1)
        yield f"{count:,} instances created by {CALLERS} callers", partial(_make, environment, network, count)
        yield f"reconciling all {count:,} instances", partial(_scan, environment)
        yield f"deleting a project with {count:,} instances", environment.region.end_project
    async for case in _among_many(bed, f"{bed.sizes.fleet:,} instances"):
        yield case


async def _among_many(bed: Bed, many: str) -> AsyncIterator[Case]:
    async with fleet(bed, bed.sizes.fleet) as environment:
        yield f"background work after a start with {many}", at_rest
        monitor = await monitor_beside(environment)
        everything = Request(environment.compute.api, INSTANCES, token=environment.region.identity.root)
        yield f"a list of {many}", everything.send
        yield f"the ledger of {many} compared", partial(drift_of, environment.store, TENANT.id)
        yield f"checking the allocations of {many}", partial(_for_a_while, _hurried(environment, monitor.allocations))
        yield f"checking {many} by the monitor", partial(_for_a_while, _hurried(environment, monitor.instances))


async def _make(environment: ComputeEnvironment, network: str, count: int) -> None:
    await by_callers(lambda number: environment.instance(network, f"instance-{number}"), range(count))
    await environment.settled()


async def _scan(environment: ComputeEnvironment) -> None:
    await environment.compute.running_controllers["instances"].resync()
    await environment.settled()


def _hurried(
    environment: ComputeEnvironment, round_: InstanceCheck | AllocationCheck
) -> InstanceCheck | AllocationCheck:
    return replace(round_, pace=Pace(environment.compute.ports.clock, _AT_ONCE))


async def _for_a_while(round_: InstanceCheck | AllocationCheck) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_LOOKING_S):
            await round_.run()
