"""Schema of regions and of what their providers offer."""

from typing import Annotated

import msgspec

from remuda.http.schema import NameQuery, Wire
from remuda.kernel.secrets import Secret
from remuda.providers.contract.common import ProviderType
from remuda.resources.schema import MetadataRead, RegionFeatures


class FlavorQuery(NameQuery, frozen=True):
    """Query of a list of flavors."""

    fresh: Annotated[
        bool, msgspec.Meta(description="Read from the provider now instead of a cache of some seconds.")
    ] = False


class KubernetesWire(Wire, frozen=True):
    """Access to the cluster of a region."""

    kubeconfig: Annotated[Secret, msgspec.Meta(description="In base64url, without padding.")]
    domain_name: Annotated[
        str, msgspec.Meta(description="Domain below which the cluster's services are reachable.")
    ] = ""


class RegionDetailSpecWire(Wire, frozen=True):
    """Type, features and cluster of a region."""

    type: Annotated[ProviderType, msgspec.Meta(description="Type of the provider.")]
    features: RegionFeatures
    kubernetes: KubernetesWire | None = None


class RegionDetailRead(Wire, frozen=True):
    """A region with the credentials that services need to work in it."""

    metadata: MetadataRead
    spec: RegionDetailSpecWire


class ExternalNetworkRead(Wire, frozen=True):
    """A network outside the region, from which public addresses come."""

    id: Annotated[str, msgspec.Meta(description="Id at the provider.")]
    name: Annotated[str, msgspec.Meta(description="Name at the provider.")]
