"""What clients read of regions and of what their clouds offer."""

from typing import Annotated

import msgspec

from remuda.http.routes import Wire
from remuda.kernel.secrets import Secret
from remuda.providers.contract.catalogue import Architecture, Vendor
from remuda.providers.contract.provider import ProviderType
from remuda.resources.wire import MetadataRead, StaticMetadataRead

__all__ = [
    "ExternalNetworkRead",
    "FlavorRead",
    "FlavorSpecWire",
    "GpuWire",
    "KubernetesWire",
    "RegionDetailRead",
    "RegionDetailSpecWire",
    "RegionFeatures",
    "RegionRead",
    "RegionSpecWire",
]


class RegionFeatures(Wire, frozen=True, omit_defaults=False):
    """What a region can do."""

    physical_networks: Annotated[bool, msgspec.Meta(description="Networks can be joined to hardware.")]
    capabilities: Annotated[
        tuple[str, ...], msgspec.Meta(description="What its provider has, such as load_balancers; nothing else works.")
    ]


class RegionSpecWire(Wire, frozen=True):
    """What a region is."""

    type: ProviderType
    features: RegionFeatures


class RegionRead(Wire, frozen=True):
    """A region."""

    metadata: MetadataRead
    spec: RegionSpecWire


class KubernetesWire(Wire, frozen=True):
    """How to reach the cluster that a region stands for."""

    kubeconfig: Annotated[Secret, msgspec.Meta(description="In base64url, without padding.")]
    domain_name: str = ""


class RegionDetailSpecWire(Wire, frozen=True):
    """What a region is, and how to reach it."""

    type: ProviderType
    features: RegionFeatures
    kubernetes: KubernetesWire | None = None


class RegionDetailRead(Wire, frozen=True):
    """A region with what services need to work in it."""

    metadata: MetadataRead
    spec: RegionDetailSpecWire


class GpuWire(Wire, frozen=True):
    """The GPUs of a flavor."""

    vendor: Vendor
    model: str
    memory: Annotated[int, msgspec.Meta(description="GiB of each logical one.")]
    physical_count: int
    logical_count: int


class FlavorSpecWire(Wire, frozen=True, kw_only=True):
    """A size of server."""

    cpus: int
    cpu_family: str = ""
    memory: Annotated[int, msgspec.Meta(description="GiB.")]
    disk: Annotated[int, msgspec.Meta(description="GB.")]
    architecture: Architecture
    baremetal: bool = False
    pinned_only: Annotated[
        bool, msgspec.Meta(description="A server of it has to say on which piece of infrastructure it goes.")
    ] = False
    gpu: GpuWire | None = None
    free: Annotated[int, msgspec.Meta(description="So many more fit, as of a few seconds ago.")] | None = None


class FlavorRead(Wire, frozen=True):
    """A flavor."""

    metadata: StaticMetadataRead
    spec: FlavorSpecWire


class ExternalNetworkRead(Wire, frozen=True):
    """A network that leads out."""

    id: str
    name: str
