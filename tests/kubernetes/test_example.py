"""The whole example service on a real API server, in real time: the same customers, pasture and laws."""

import time
from collections import Counter
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SeededRandomness
from remuda.store.kubernetes.client import kubeconfig
from remuda.store.kubernetes.store import KubernetesStore, open_kubernetes_store
from tests.example.app import registry
from tests.example.house import House, Pace
from tests.example.pasture import FAULTS as PASTURE_FAULTS
from tests.kit.simulation.faults import FaultMenu, assert_all_fired
from tests.kit.simulation.store import SEALER
from tests.kit.watchdog import Watchdog, check_log
from tests.kubernetes.cluster import Cluster, OwnCluster
from tests.kubernetes.harness import settings_for

pytestmark = pytest.mark.kubernetes

SEEDS = 3
BOOTS = 2
PACE = Pace(pause_s=0.3, latency_s=0.02, stale_s=0.5, look_every_s=1.0, rest_s=120.0)
RATES = {
    **{f"pasture.{fault}": 0.15 for fault in PASTURE_FAULTS},
    "pasture.duplicate_rows": 0.5,
    "pasture.stray": 0.3,
    "watch.dropped": 0.05,
    "watch.doubled": 0.1,
    "watch.gone": 0.05,
    "control.restart": 0.2,
    "leader.two": 0.5,
    "process.killed": 0.5,
}
LOOKS = 10
"""At the laws, from one trouble to the next."""
EXPECTED = {"GET 200", "POST 201", "POST 202", "POST 403", "PUT 202", "DELETE 202"}
"""What customers have to be told at least once for this to be a test."""
REGISTRY = registry()
_COLLECTOR_LOOKS_EVERY_S = 35


class ApiServer:
    """An API server as the machine: it stays when our processes go."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.clock, self.randomness = SystemClock(), SeededRandomness(seed)
        self.faults = FaultMenu(seed, RATES)
        self.is_down = False
        self._cluster, self._namespace = cluster, cluster.namespace()

    async def open(self) -> KubernetesStore:
        self.is_down = False
        source, settings = kubeconfig(self._cluster.kubeconfig), settings_for(self._namespace)
        at_once = replace(settings, reader=replace(settings.reader, slice_objects=1000))  # the watchdog cannot wait
        return await open_kubernetes_store(source, REGISTRY, SEALER, settings=at_once)

    async def close(self, store: KubernetesStore) -> None:
        await store.close()


@pytest.fixture(scope="module")
def livery_cluster(cluster: Cluster) -> Cluster:
    """The API server, with the livery's kinds, of which the garbage collector knows."""
    if cluster.define(REGISTRY):
        if isinstance(cluster, OwnCluster):
            cluster.plane.restart("controller-manager")
        else:
            time.sleep(_COLLECTOR_LOOKS_EVERY_S)
    return cluster


async def trouble(house: House, machine: ApiServer, watchdog: Watchdog) -> None:
    """Let things happen, each as the menu says."""
    faults, draw = machine.faults, machine.randomness.randrange
    while house.is_serving:
        for _ in range(LOOKS):
            await machine.clock.sleep(0.2 / LOOKS)
            watchdog.check()
        if faults.fires("pasture.stray"):
            house.lose_a_mount()
        if faults.fires("control.restart"):
            await house.apps[draw(len(house.apps))].restart_control()


async def live(cluster: Cluster, seed: int, outcomes: Counter[str]) -> FaultMenu:
    """Serve, be killed, serve again, and come to rest; count what customers were told."""
    machine = ApiServer(cluster, seed)
    compute = House(machine, PACE)
    watchdog = Watchdog(compute)
    compute.after_act = watchdog.check
    with capture_logs() as lines:
        for _ in range(BOOTS):
            await compute.boot(processes=2 if machine.faults.fires("leader.two") else 1)
            await compute.serve(customers=2, acts=6, trouble=lambda: trouble(compute, machine, watchdog))
            machine.is_down = machine.faults.fires("process.killed")
            await compute.halt()
        machine.faults.stop()
        await compute.boot(is_calm=True)
        await compute.come_to_rest()
        compute.lose_a_mount()
        await compute.come_to_rest()
        watchdog.check()
        await compute.halt()
    check_log(lines)
    assert watchdog.looks > LOOKS, "the laws were held against what went on"
    outcomes.update(compute.book.outcomes)
    return machine.faults


async def test_the_livery_keeps_its_promises_on_an_api_server(livery_cluster: Cluster) -> None:
    outcomes: Counter[str] = Counter()
    assert_all_fired([await live(livery_cluster, seed, outcomes) for seed in range(SEEDS)])
    assert outcomes.keys() >= EXPECTED, outcomes
