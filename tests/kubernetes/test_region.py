"""Identity and region on a real API server, in real time: a server comes and goes, and so does a whole project."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from remuda.app import registry
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.region.kinds import KINDS
from remuda.region.kinds.servers import Server
from remuda.store.kubernetes.client import kubeconfig
from remuda.store.kubernetes.store import open_kubernetes_store
from tests.kit.region.environment import RegionEnvironment, region_environment
from tests.kit.region.project_deletion import end_project, furnish, left_of, until_project_is_gone
from tests.kit.simulation.checks import check_log
from tests.kit.simulation.store import SEALER
from tests.kubernetes.cluster import Cluster, OwnCluster
from tests.kubernetes.harness import settings_for

pytestmark = pytest.mark.kubernetes

REGISTRY = registry()
SERVERS, PARTS, CUSTOMERS = 200, 5, 8
WITHIN_S = 600.0
_COLLECTOR_LOOKS_EVERY_S = 35


@pytest.fixture(scope="module")
def region_cluster(cluster: Cluster) -> Cluster:
    """The API server with the kinds of both services, of which the garbage collector knows."""
    if cluster.define(REGISTRY):
        if isinstance(cluster, OwnCluster):
            cluster.plane.restart("controller-manager")
        else:
            time.sleep(_COLLECTOR_LOOKS_EVERY_S)
    return cluster


@asynccontextmanager
async def on_cluster(cluster: Cluster) -> AsyncIterator[RegionEnvironment]:
    """Run both services in a namespace of their own."""
    settings = settings_for(cluster.namespace())
    at_once = replace(settings, reader=replace(settings.reader, slice_objects=1000))
    store: Any = await open_kubernetes_store(kubeconfig(cluster.kubeconfig), REGISTRY, SEALER, settings=at_once)
    others: dict[str, Any] = {"is_only_process": False}
    with capture_logs() as lines:
        async with region_environment(
            store,
            SystemClock(),
            SystemRandomness(),
            directory=None,
            is_instant=True,
            identity_ports=others,
            more=others,
        ) as region:
            yield region
    check_log(lines)


def test_an_api_server_accepts_every_kind_of_region(region_cluster: Cluster) -> None:
    for kind in KINDS:
        found = region_cluster.request("GET", f"/apis/{kind.api_version}/{kind.plural}?limit=1")
        assert found["kind"].endswith("List")


async def test_a_server_comes_up_and_goes(region_cluster: Cluster) -> None:
    async with on_cluster(region_cluster) as region:
        network = await region.network()
        server = await region.server(network, networking={"publicIP": True})
        path = f"/api/v2/servers/{server}"
        read = await region.until(path, "provisioned")
        assert read["status"]["powerState"] == "Running"
        assert read["status"]["privateIP"].startswith("10.0.")
        assert (await region.root.delete(f"/api/v2/networks/{network}")).status == 403
        assert (await region.root.delete(path)).status == 202
        await region.until_gone(path)
        assert (await region.root.delete(f"/api/v2/networks/{network}")).status == 202
        await region.until_gone(f"/api/v2/networks/{network}")


async def test_the_end_of_a_project_is_the_end_of_everything_in_it(region_cluster: Cluster) -> None:
    async with on_cluster(region_cluster) as region:
        network = await region.network()
        servers = await furnish(region, network, servers=range(SERVERS), parts=PARTS, at_once=CUSTOMERS)
        for server in servers[: SERVERS // 2]:
            await region.until(f"/api/v2/servers/{server}", "provisioned")
        assert len((await region.store.list_names(Server)).items) == SERVERS
        await end_project(region)
        await until_project_is_gone(region, within_s=WITHIN_S)
        assert await left_of(region) == {}
