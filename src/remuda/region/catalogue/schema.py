"""What clients read of regions and of what their clouds offer."""

from typing import Annotated

import msgspec

from remuda.http.schema import Parameters, Wire
from remuda.kernel.secrets import Secret
from remuda.providers.contract.common import ProviderType
from remuda.resources.schema import MetadataRead, RegionFeatures


class FlavorQuery(Parameters, frozen=True):
    """How to list flavors."""

    fresh: Annotated[
        bool, msgspec.Meta(description="Ask the provider now, which takes longer; else it was asked seconds ago.")
    ] = False


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


class ExternalNetworkRead(Wire, frozen=True):
    """A network that leads out."""

    id: str
    name: str
