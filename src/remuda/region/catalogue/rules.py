"""What clients read, from what is stored and what providers say."""

from collections.abc import Iterable
from datetime import UTC, datetime

from remuda.access.checks import is_allowed_somewhere
from remuda.access.principal import Principal
from remuda.kernel import encoding as base64url
from remuda.kernel.errors import Unavailable
from remuda.kernel.secrets import Secret
from remuda.providers.contract.catalogue import CloudExternalNetwork, CloudFlavor, CloudGpu
from remuda.region.catalogue.schema import ExternalNetworkRead, KubernetesWire, RegionDetailRead, RegionDetailSpecWire
from remuda.region.kinds.common import gib_of
from remuda.region.kinds.regions import Region
from remuda.region.names import permission
from remuda.resources.metadata import read_metadata
from remuda.resources.schema import (
    FlavorRead,
    FlavorSpecWire,
    GpuWire,
    RegionFeatures,
    RegionRead,
    RegionSpecWire,
    StaticMetadataRead,
)

_NO_TIME = datetime(1, 1, 1, tzinfo=UTC)  # no provider says when a flavor was made: clients know this for "not known"
_GB = 10**9


def usable_flavors(flavors: Iterable[CloudFlavor], principal: Principal) -> list[CloudFlavor]:
    """Return the flavors that a caller can use, the smallest first: by GPUs, then CPUs, then memory.

    One that can only be pinned is of no use to whoever cannot make servers, since only they say where a server goes.
    """
    is_pinning = _may_pin(principal)
    return sorted((each for each in flavors if is_pinning or not each.is_pinned_only), key=size_of)


def _may_pin(principal: Principal) -> bool:
    return is_allowed_somewhere(principal, permission("servers", "create"))


def size_of(flavor: CloudFlavor) -> tuple[int, int, int, str]:
    """Return what puts flavors in order, the smallest first."""
    gpus = flavor.gpu.logical_count if flavor.gpu else 0
    return gpus, flavor.cpus, flavor.memory_bytes, flavor.id


def read_region(region: Region, capabilities: tuple[str, ...]) -> RegionRead:
    """Return a region as clients read it."""
    spec = RegionSpecWire(type=region.spec.provider, features=_features(region, capabilities))
    return RegionRead(metadata=read_metadata(region.metadata, region.spec.tags), spec=spec)


def read_detail(region: Region, capabilities: tuple[str, ...]) -> RegionDetailRead:
    """Return a region as services read it that work in its cluster."""
    spec = RegionDetailSpecWire(
        type=region.spec.provider, features=_features(region, capabilities), kubernetes=_kubernetes(region)
    )
    return RegionDetailRead(metadata=read_metadata(region.metadata, region.spec.tags), spec=spec)


def _features(region: Region, capabilities: tuple[str, ...]) -> RegionFeatures:
    openstack = region.spec.openstack
    network = openstack.network if openstack else None
    has_physical = network is not None and network.provider_networks is not None
    return RegionFeatures(physical_networks=has_physical, capabilities=capabilities)


def _kubernetes(region: Region) -> KubernetesWire | None:
    if region.spec.provider != "kubernetes" or region.spec.kubernetes is None:
        return None
    found = region.spec.kubernetes
    if found.kube_config is None:
        raise Unavailable(f"The kubeconfig of the region {region.name} is not known here: have it configured.")
    text = base64url.encode(found.kube_config.reveal().encode())
    return KubernetesWire(kubeconfig=Secret(text), domain_name=found.domain_name)


def read_flavor(flavor: CloudFlavor, *, with_free: bool) -> FlavorRead:
    """Return a flavor as clients read it; how many are free is only for those who will not keep it for a day."""
    spec = FlavorSpecWire(
        cpus=flavor.cpus,
        cpu_family=flavor.cpu_family,
        memory=gib_of(flavor.memory_bytes),
        disk=flavor.disk_bytes // _GB,
        architecture=flavor.architecture,
        baremetal=flavor.is_baremetal,
        pinned_only=flavor.is_pinned_only,
        gpu=_gpu(flavor.gpu),
        free=flavor.free if with_free else None,
    )
    return FlavorRead(metadata=StaticMetadataRead(id=flavor.id, name=flavor.name, creation_time=_NO_TIME), spec=spec)


def _gpu(gpu: CloudGpu | None) -> GpuWire | None:
    if gpu is None:
        return None
    return GpuWire(
        vendor=gpu.vendor,
        model=gpu.model,
        memory=gib_of(gpu.memory_bytes),
        physical_count=gpu.physical_count,
        logical_count=gpu.logical_count,
    )


def read_external_network(network: CloudExternalNetwork) -> ExternalNetworkRead:
    """Return a way out as clients read it."""
    return ExternalNetworkRead(id=network.id, name=network.name)
