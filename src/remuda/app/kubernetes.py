"""Kubernetes clusters as providers of regions; imported only where a region has one, because its client is heavy."""

from collections.abc import Iterator

from remuda.kernel.clock import Clock
from remuda.kernel.fields import with_common_fields
from remuda.providers.contract.catalogue import CloudGpu
from remuda.providers.kubernetes.provider import KubernetesCloud, NodeClass
from remuda.region.kinds import common as hardware
from remuda.region.kinds.regions import KubernetesNode, RegionSpec


def cluster_of(spec: RegionSpec, *, clock: Clock) -> KubernetesCloud | None:
    """Return the cluster that a region stands for, or None if it stands for none that can be reached from here."""
    found = spec.kubernetes
    if spec.provider != "kubernetes" or found is None or found.kube_config is None:
        return None
    return KubernetesCloud(found.kube_config, tuple(_classes(found.nodes)), clock=clock)


def _classes(nodes: tuple[KubernetesNode, ...]) -> Iterator[NodeClass]:
    for node in nodes:
        yield NodeClass(
            id=node.id,
            name=node.name,
            cpus=node.cpu.count,
            cpu_family=node.cpu.family,
            memory_bytes=node.memory,
            disk_bytes=node.disk,
            gpu=_gpu(node.gpu),
        )


def _gpu(gpu: hardware.Gpu | None) -> CloudGpu | None:
    if gpu is None:
        return None
    return with_common_fields(CloudGpu, gpu, memory_bytes=gpu.memory)
