"""Rules of the catalogue: views of regions, flavors and external networks."""

from collections.abc import Iterable
from datetime import UTC, datetime

from remuda.access.checks import is_allowed_somewhere
from remuda.access.principal import Principal
from remuda.kernel.encoding import to_base64url
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

_UNKNOWN_TIME = datetime(1, 1, 1, tzinfo=UTC)  # no provider tells when a flavor was created
_GB = 10**9


def usable_flavors(flavors: Iterable[CloudFlavor], principal: Principal) -> list[CloudFlavor]:
    """Return the flavors that a caller can use, the smallest first: by GPUs, then CPUs, then memory.

    A flavor for a named host only is for callers that may create servers, since only those can name a host.
    """
    can_pin = is_allowed_somewhere(principal, permission("servers", "create"))
    return sorted((each for each in flavors if can_pin or not each.is_pinned_only), key=size_of)


def size_of(flavor: CloudFlavor) -> tuple[int, int, int, str]:
    """Return the sort key of flavors, the smallest first."""
    gpus = flavor.gpu.logical_count if flavor.gpu else 0
    return gpus, flavor.cpus, flavor.memory_bytes, flavor.id


def read_region(region: Region, capabilities: tuple[str, ...]) -> RegionRead:
    found = region.spec
    spec = RegionSpecWire(type=found.provider, features=_features(region, capabilities), disabled=found.disabled)
    return RegionRead(metadata=read_metadata(region.metadata, region.spec.tags), spec=spec)


def read_detail(region: Region, capabilities: tuple[str, ...]) -> RegionDetailRead:
    """Return a region with the credentials of its cluster, for services that work in it."""
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
        raise Unavailable(f"The region {region.name} has no kubeconfig here. Add it to the configuration.")
    text = to_base64url(found.kube_config.reveal().encode())
    return KubernetesWire(kubeconfig=Secret(text), domain_name=found.domain_name)


def read_flavor(flavor: CloudFlavor, *, with_free: bool) -> FlavorRead:
    """Return the view of a flavor; `with_free` adds its free capacity, which clients must not cache."""
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
    return FlavorRead(
        metadata=StaticMetadataRead(id=flavor.id, name=flavor.name, creation_time=_UNKNOWN_TIME), spec=spec
    )


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
    return ExternalNetworkRead(id=network.id, name=network.name)
