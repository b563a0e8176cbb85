"""The monitor: a poll that finds every server as it was, with what the simulated cloud takes to list them."""

import time
from collections.abc import Iterator
from dataclasses import replace

from prometheus_client import CollectorRegistry

from bench.bed import Bed
from bench.cpu import spent_us
from bench.loops import run
from bench.region.environment import REGION, Environment
from bench.region.fleet import fleet
from bench.report import Measure, at_most, figure
from bench.rounds import good_time
from remuda.region.catalogue.provider_registry import require
from remuda.region.monitor.monitor import new_monitor

__all__ = ["measures"]

_LIMIT_US = 10.0
_POLLS = 10


def measures(bed: Bed) -> Iterator[Measure]:
    """Poll, beside only listing."""
    polled, listed = run(_spent(bed))
    yield at_most(1, f"a poll of {bed.sizes.fleet:,} unchanged servers, each", polled, _LIMIT_US, "µs CPU")
    yield figure(f"only listing {bed.sizes.fleet:,} servers, each", listed, "µs CPU")


async def _spent(bed: Bed) -> tuple[float, float]:
    async with fleet(bed, bed.sizes.fleet) as environment:
        region, count = environment.region, bed.sizes.fleet
        apart = replace(region.ports, metrics=CollectorRegistry())  # the environment has a monitor of its own
        poll = (
            new_monitor(apart, region.providers, region.running_controllers["servers"].enqueue)
            .region_tasks(REGION)
            .poller
        )
        servers = require((await region.providers.get(REGION)).provider.servers)
        await poll.poll(servers)
        assert poll.pending == count, "all are new"
        polled, listed = [], []
        for _ in range(_POLLS):
            start = time.process_time()
            await poll.poll(servers)
            polled.append(spent_us(start, count))
            listed.append(await _listed(environment, count))
        assert poll.pending == count, "none has changed"
    return good_time(polled), good_time(listed)


async def _listed(environment: Environment, count: int) -> float:
    servers, start = require(environment.cloud.provider.servers), time.process_time()
    assert sum([len(part) async for part in servers.server_versions()]) == count
    return spent_us(start, count)
