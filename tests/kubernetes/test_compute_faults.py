"""Controllers and sagas of all services on a real API server: faulty watches, two processes, and restarts."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from remuda.app import registry
from remuda.compute.app import ComputeApp
from remuda.compute.kinds import ComputeInstance
from remuda.identity.kinds.quotas import Allocation
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SeededRandomness
from remuda.region.app import RegionApp
from remuda.region.kinds.servers import Server
from remuda.store.kubernetes.client import kubeconfig
from remuda.store.kubernetes.store import KubernetesStore, open_kubernetes_store
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment, with_compute
from tests.kit.compute.requests import DEBIAN, at
from tests.kit.faulty_watch import FlakyWatches
from tests.kit.region.environment import region_environment
from tests.kit.simulation.checks import check_log
from tests.kit.simulation.faults import FaultMenu, assert_all_fired
from tests.kit.simulation.store import SEALER
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.harness import settings_for

pytestmark = pytest.mark.kubernetes

REGISTRY = registry()
SEEDS = 2
CUSTOMERS, ACTS = 3, 4
RATES = {"watch.doubled": 0.1, "watch.gone": 0.05, "control.restart": 0.2}
EXPECTED = {201, 202, 409}
"""Statuses that customers have to get at least once."""


async def _opened(cluster: Cluster, namespace: str) -> KubernetesStore:
    settings = settings_for(namespace)
    at_once = replace(settings, reader=replace(settings.reader, slice_objects=1000))
    return await open_kubernetes_store(kubeconfig(cluster.kubeconfig), REGISTRY, SEALER, settings=at_once)


@asynccontextmanager
async def _second_process(
    compute: ComputeEnvironment, cluster: Cluster, namespace: str, faults: FaultMenu
) -> AsyncIterator[tuple[RegionApp, ComputeApp]]:
    """Run region and compute once more, over a store of their own and the same clouds: both processes lead."""
    store: Any = await _opened(cluster, namespace)
    own: dict[str, Any] = {
        "store": store,
        "log": store,
        "watched": FlakyWatches(store, faults),
        "closing": asyncio.Event(),
    }
    region = RegionApp(replace(compute.region.app.ports, **own, metrics=CollectorRegistry()))
    second = ComputeApp(replace(compute.app.ports, **own, metrics=CollectorRegistry()))
    await region.start()
    await second.start()
    try:
        yield region, second
    finally:
        await second.stop()
        await region.stop()
        await store.close()


async def _restart(apps: Sequence[RegionApp | ComputeApp], faults: FaultMenu) -> None:
    """Stop and start the controllers of a process now and then, as when leadership moves."""
    while True:
        for app in apps:
            await asyncio.sleep(0.2)
            if faults.fires("control.restart"):
                for controller in app.running_controllers.values():
                    await controller.stop()
                    await controller.start()


async def _customer(compute: ComputeEnvironment, network: str, number: int, statuses: set[int]) -> None:
    """Create an instance, whose name another customer may take first, reboot it, and delete every second one."""
    for act in range(ACTS):
        name = f"shared-{act}" if act % 2 else f"own-{number}-{act}"
        reply = await compute.root.post(INSTANCES, compute.wanted(network, name, imageId=DEBIAN))
        statuses.add(reply.status)
        if reply.status != 201:
            continue
        instance = str(reply.json["metadata"]["id"])
        await compute.until(instance, "provisioned")
        if act % 2:
            statuses.add((await compute.root.delete(at(instance))).status)
            await compute.until_gone(instance)


async def _live(cluster: Cluster, seed: int, statuses: set[int]) -> FaultMenu:
    """Serve customers with faults, come to rest without them, and delete everything."""
    faults, namespace = FaultMenu(seed, RATES), cluster.namespace()
    store: Any = await _opened(cluster, namespace)
    others: dict[str, Any] = {"is_only_process": False, "watched": FlakyWatches(store, faults)}
    clock, randomness = SystemClock(), SeededRandomness(seed)
    with capture_logs() as lines:
        async with (
            region_environment(
                store, clock, randomness, directory=None, is_instant=True, identity_ports=others, more=others
            ) as region,
            with_compute(region, others) as compute,
            _second_process(compute, cluster, namespace, faults) as second,
        ):
            network = await region.network()
            restarting = asyncio.create_task(_restart([region.app, compute.app, *second], faults))
            working: list[Awaitable[None]] = [
                _customer(compute, network, number, statuses) for number in range(CUSTOMERS)
            ]
            await asyncio.gather(*working)
            restarting.cancel()
            faults.stop()
            left = (await store.list(ComputeInstance)).items
            assert len(left) == CUSTOMERS * ACTS // 2, "one instance for each that was not deleted"
            assert len((await store.list(Server)).items) == len(left)
            for instance in left:
                await compute.until(instance.name, "provisioned")
                assert (await compute.root.delete(at(instance.name))).status == 202
            for instance in left:
                await compute.until_gone(instance.name)
            assert (await region.root.delete(f"/api/v2/networks/{network}")).status == 202
            await region.until_gone(f"/api/v2/networks/{network}")
            allocations = (await store.list(Allocation)).items
            assert {each.spec.state for each in allocations} == {"released"}, "released ones are kept for a while"
            assert not region.north.operator.servers(), "nothing is left at the cloud"
    check_log(lines)
    return faults


async def test_controllers_and_sagas_converge_in_two_processes_with_faulty_watches(cluster: Cluster) -> None:
    cluster.define(REGISTRY)
    statuses: set[int] = set()
    assert_all_fired([await _live(cluster, seed, statuses) for seed in range(SEEDS)])
    assert statuses >= EXPECTED
