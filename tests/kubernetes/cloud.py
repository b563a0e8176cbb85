"""Provider over the API server of a test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from remuda.app.kubernetes import cluster_of
from remuda.kernel.clock import SystemClock
from remuda.kernel.secrets import Secret
from remuda.providers.kubernetes.provider import KubernetesCloud
from remuda.region.kinds.common import Cpu
from remuda.region.kinds.regions import KubernetesNode, RegionKubernetes, RegionSpec

SMALL = KubernetesNode(id="small", name="Small", cpu=Cpu(count=4, family="EPYC"), memory=8 << 30, disk=10**11)


def region_at(kubeconfig: Path | str, *nodes: KubernetesNode) -> RegionSpec:
    """Return a region that stands for a cluster."""
    kubernetes = RegionKubernetes(kube_config=Secret(Path(kubeconfig).read_text()), nodes=nodes)
    return RegionSpec(provider="kubernetes", kubernetes=kubernetes)


@asynccontextmanager
async def cloud_at(kubeconfig: Path | str, *nodes: KubernetesNode) -> AsyncIterator[KubernetesCloud]:
    found = cluster_of(region_at(kubeconfig, *nodes), clock=SystemClock())
    assert found is not None
    try:
        yield found
    finally:
        await found.close()
