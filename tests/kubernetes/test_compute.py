"""All three services on a real API server, in real time: an instance comes, changes and goes, and so does a project."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from remuda.app import registry
from remuda.compute.kinds import INSTANCE, KINDS, ComputeInstance
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.region.kinds.servers import Server
from remuda.store.kubernetes.client import kubeconfig
from remuda.store.kubernetes.store import open_kubernetes_store
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment, with_compute
from tests.kit.compute.requests import DEBIAN, at
from tests.kit.compute.updates import SMALL
from tests.kit.identity.environment import expect
from tests.kit.region.environment import STANDARD, region_environment
from tests.kit.region.project_deletion import end_project, left_of, until_project_is_gone
from tests.kit.simulation.checks import check_log
from tests.kit.simulation.store import SEALER
from tests.kubernetes.cluster import Cluster, OwnCluster
from tests.kubernetes.harness import settings_for

pytestmark = pytest.mark.kubernetes

REGISTRY = registry()
MANY = 10
WITHIN_S = 180.0
_COLLECTOR_LOOKS_EVERY_S = 35


@pytest.fixture(scope="module")
def compute_cluster(cluster: Cluster) -> Cluster:
    """The API server with the kinds of all services, of which the garbage collector knows."""
    if cluster.define(REGISTRY):
        if isinstance(cluster, OwnCluster):
            cluster.plane.restart("controller-manager")
        else:
            time.sleep(_COLLECTOR_LOOKS_EVERY_S)
    return cluster


@asynccontextmanager
async def on_cluster(cluster: Cluster, namespace: str) -> AsyncIterator[ComputeEnvironment]:
    """Run all services in a namespace."""
    settings = settings_for(namespace)
    at_once = replace(settings, reader=replace(settings.reader, slice_objects=1000))
    store: Any = await open_kubernetes_store(kubeconfig(cluster.kubeconfig), REGISTRY, SEALER, settings=at_once)
    others: dict[str, Any] = {"is_only_process": False}
    with capture_logs() as lines:
        async with (
            region_environment(
                store,
                SystemClock(),
                SystemRandomness(),
                directory=None,
                is_instant=True,
                identity_ports=others,
                more=others,
            ) as region,
            with_compute(region, others) as compute,
        ):
            yield compute
    check_log(lines)


def test_an_api_server_accepts_every_kind_of_compute(compute_cluster: Cluster) -> None:
    for kind in KINDS:
        found = compute_cluster.request("GET", f"/apis/{kind.api_version}/{kind.plural}?limit=1")
        assert found["kind"].endswith("List")


async def test_m28_b04_an_instance_comes_up_changes_and_goes(compute_cluster: Cluster) -> None:
    namespace = compute_cluster.namespace()
    async with on_cluster(compute_cluster, namespace) as compute:
        network = await compute.region.network()
        data = "I2Nsb3VkLWNvbmZpZwpwYXNzd29yZDogY2FuYXJ5Cg=="
        instance = await compute.instance(network, imageId=DEBIAN, userData=data, networking={"publicIP": True})
        read = await compute.until(instance, "provisioned")
        assert (read["status"]["powerState"], read["spec"]["userData"]) == ("Running", data)
        again = compute.wanted(network, imageId=DEBIAN)
        assert (await compute.root.post(INSTANCES, again)).status == 409
        path = f"/apis/{INSTANCE.api_version}/namespaces/{namespace}/{INSTANCE.plural}/{instance}"
        stored = compute_cluster.request("GET", path)
        assert stored["spec"]["serverId"] == instance
        assert data not in str(stored), "user data is sealed"
        spec = {"flavorId": SMALL, "imageId": DEBIAN, "userData": data, "networking": {"publicIP": True}}
        body = {"metadata": {"name": "instance"}, "spec": spec}
        plan = expect(await compute.root.send("PUT", at(instance), query={"dryRun": "true"}, body=body), 200)
        expect(await compute.root.send("PUT", at(instance), query={"plan": plan["hash"]}, body=body), 202)
        changed = await compute.until(instance, "provisioned")
        for name in ("privateIP", "publicIP", "macAddress"):
            assert changed["status"][name] == read["status"][name]
        assert (await compute.root.delete(at(instance))).status == 202
        await compute.until_gone(instance)
        assert expect(await compute.root.get(at(instance, "timeline")), 200)
        expect(await compute.root.get(at(instance, "explain")), 200)
        assert not (await compute.store.list_names(Server)).items


async def test_the_end_of_a_project_is_the_end_of_its_instances(compute_cluster: Cluster) -> None:
    async with on_cluster(compute_cluster, compute_cluster.namespace()) as compute:
        network = await compute.region.network()
        made = [
            await compute.instance(network, f"instance-{number}", imageId=DEBIAN, flavorId=STANDARD)
            for number in range(MANY)
        ]
        for instance in made[: MANY // 2]:
            await compute.until(instance, "provisioned")
        await end_project(compute.region)
        await until_project_is_gone(compute.region, within_s=WITHIN_S)
        assert await left_of(compute.region) == {}
        assert not (await compute.store.list_names(ComputeInstance)).items
