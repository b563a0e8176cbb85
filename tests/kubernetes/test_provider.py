"""A cluster as a provider, on a real API server: its nodes are flavors, and it says what it lacks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remuda.kernel.errors import Unavailable
from remuda.region.kinds.common import Cpu, Gpu
from remuda.region.kinds.regions import KubernetesNode
from tests.kubernetes.cloud import SMALL, cloud_at
from tests.kubernetes.cluster import OwnCluster
from tests.kubernetes.plane.certificates import bearer, write_kubeconfig
from tests.kubernetes.proxy import write_plain_kubeconfig

pytestmark = pytest.mark.kubernetes

MANY = 230
"""So many nodes come in several parts."""
OPEN = KubernetesNode(id="open", name="Open", cpu=Cpu(), memory=16 << 30, disk=10**11)
GRAPHIC = KubernetesNode(
    id="graphic",
    name="Graphic",
    cpu=Cpu(count=32),
    memory=64 << 30,
    disk=10**12,
    gpu=Gpu(vendor="NVIDIA", model="H100", physical_count=8, logical_count=8, memory=80 << 30),
)
LACKING = KubernetesNode(id="lacking", name="Lacking", cpu=Cpu(count=1), memory=1 << 30, disk=10**9)


async def _flavors(cluster: OwnCluster, *nodes: KubernetesNode) -> list[Any]:
    async with cloud_at(cluster.kubeconfig, *nodes) as cloud:
        return list(await cloud.provider.catalogue.flavors())


async def test_a_class_is_a_flavor_if_the_cluster_has_a_node_of_it(
    proxied_cluster: OwnCluster, node: Callable[..., None]
) -> None:
    node("a", "small")
    node("b", "graphic", arch="arm64")
    node("c", "unheard-of")
    node("d", None)
    small, graphic = await _flavors(proxied_cluster, SMALL, LACKING, GRAPHIC)
    assert (small.id, small.name, small.cpus, small.cpu_family) == ("small", "Small", 4, "EPYC")
    assert (small.memory_bytes, small.disk_bytes, small.architecture) == (8 << 30, 10**11, "x86_64")
    assert (graphic.id, graphic.architecture) == ("graphic", "aarch64")
    assert (graphic.gpu.model, graphic.gpu.logical_count, graphic.gpu.memory_bytes) == ("H100", 8, 80 << 30)


async def test_the_flavors_follow_the_nodes(proxied_cluster: OwnCluster, node: Callable[..., None]) -> None:
    async with cloud_at(proxied_cluster.kubeconfig, SMALL, OPEN) as cloud:
        assert await cloud.flavors() == ()
        node("a", "open", cpus="48")
        assert [(flavor.id, flavor.cpus) for flavor in await cloud.flavors()] == [("open", 48)]


async def test_many_nodes_are_all_looked_at(proxied_cluster: OwnCluster, node: Callable[..., None]) -> None:
    for number in range(MANY):
        node(f"many-{number:03}", "small")
    node("z-last", "open")
    assert [flavor.id for flavor in await _flavors(proxied_cluster, SMALL, OPEN)] == ["small", "open"]


async def test_it_has_flavors_and_nothing_else(proxied_cluster: OwnCluster) -> None:
    async with cloud_at(proxied_cluster.kubeconfig) as cloud:
        assert (cloud.provider.type, cloud.provider.capabilities) == ("kubernetes", ("catalogue",))


async def test_a_cluster_that_cannot_be_reached_is_told_without_its_address(tmp_path: Path) -> None:
    async with cloud_at(write_plain_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:9"), SMALL) as cloud:
        with pytest.raises(Unavailable) as caught:
            await cloud.flavors()
    assert "127.0.0.1" not in caught.value.message


async def test_a_cluster_that_does_not_know_us_is_told_as_that(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    plane = proxied_cluster.plane
    config = write_kubeconfig(tmp_path / "kubeconfig", plane.url, plane.authority.pem, bearer("canary-token"))
    async with cloud_at(config, SMALL) as cloud:
        with pytest.raises(Unavailable) as caught:
            await cloud.flavors()
    assert "canary" not in caught.value.message
