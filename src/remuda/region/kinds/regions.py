"""What a region says about an OpenStack cloud: how to log in, and which of its resources are on offer.

What a region says about a Kubernetes cluster that it stands for.

Regions as they are stored: which cloud, and which of what it has is on offer.

Quantities (memory, disk) are bytes. Passwords are either in a secret of a cluster, named here, or here and sealed.
"""

from typing import Annotated, Literal

import msgspec

from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.region.kinds.common import UNIKORN_GROUP, VERSION, Cpu, Gpu, ProviderType
from remuda.resources.conventions import LifecycleStatus
from remuda.store.kinds import Kind, keyed
from remuda.store.objects import Resource, StoredStruct


class SecretName(StoredStruct, frozen=True):
    """Names a secret of the cluster that the objects are stored in."""

    namespace: str
    name: str


class KubernetesNode(StoredStruct, frozen=True):
    """A sort of node, which is a flavor if the cluster has one."""

    id: str
    name: str
    cpu: Cpu
    memory: int
    disk: int
    gpu: Gpu | None = None


class RegionKubernetes(StoredStruct, frozen=True):
    """How to reach the cluster, and what its nodes are."""

    kube_config_secret: SecretName | None = None
    kube_config: Secret | None = None
    """The kubeconfig itself, where no cluster keeps secrets for us."""
    nodes: Annotated[tuple[KubernetesNode, ...], keyed("id")] = ()
    domain_name: str = ""


class IdSelector(StoredStruct, frozen=True):
    """What is on offer, by the cloud's ids."""

    ids: tuple[str, ...] = ()


class ServiceAccountConfig(StoredStruct, frozen=True):
    """The user that makes projects and users for others."""

    domain_id: str = msgspec.field(name="domainID")
    project_id: str = msgspec.field(name="projectID")
    user_id: str = msgspec.field(name="userID")
    password: Secret


class RolesConfig(StoredStruct, frozen=True):
    """Which roles the users that are made have; none means the usual ones."""

    cluster_roles: tuple[str, ...] = ()


class FlavorMetadata(StoredStruct, frozen=True):
    """What the cloud does not tell, or tells wrongly, of a flavor."""

    id: str
    baremetal: bool = False
    cpu: Cpu | None = None
    memory: int | None = None
    gpu: Gpu | None = None
    pinned_only: bool = False
    """It can only be had on a machine that is named."""


class FlavorsConfig(StoredStruct, frozen=True):
    """Flavors: those chosen, or all that are public if none is."""

    selector: IdSelector | None = None
    metadata: tuple[FlavorMetadata, ...] = ()


class PlacementPreflight(StoredStruct, frozen=True):
    """Whether to ask first if the machine that is named can take a server."""

    enabled: bool = False
    required_traits: tuple[str, ...] = ()


class ComputeConfig(StoredStruct, frozen=True):
    """How servers are made."""

    server_group_policy: str = ""
    placement_preflight: PlacementPreflight | None = None
    flavors: FlavorsConfig | None = None


class ImageSelector(StoredStruct, frozen=True):
    """Which public images are believed."""

    signing_key: str = ""
    """A public key, PEM in base64: only images that its other half signed."""


class ImagesConfig(StoredStruct, frozen=True):
    """Which images are on offer."""

    selector: ImageSelector | None = None


class TaggedSelector(StoredStruct, frozen=True):
    """Chosen by id (any of them) and by tag (all of them)."""

    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class ExternalNetworksConfig(StoredStruct, frozen=True):
    """Networks that public addresses come from; without a selector, all."""

    selector: TaggedSelector | None = None


class VlanSegment(StoredStruct, frozen=True):
    """VLANs in a row, both ends included."""

    start_id: int
    end_id: int


class VlanConfig(StoredStruct, frozen=True):
    """The VLANs that are ours to give."""

    segments: tuple[VlanSegment, ...] = ()


class ProviderNetworksConfig(StoredStruct, frozen=True):
    """Where networks become VLANs of a physical network."""

    physical_network: str = ""
    vlan: VlanConfig | None = None


class NetworksConfig(StoredStruct, frozen=True):
    """How networks are made."""

    external_networks: ExternalNetworksConfig | None = None
    provider_networks: ProviderNetworksConfig | None = None


class VolumePerformance(StoredStruct, frozen=True):
    """What a class of volumes can do at most."""

    max_iops: int | None = msgspec.field(default=None, name="maxIOPS")
    max_throughput: int | None = msgspec.field(default=None, name="maxThroughputMiBps")


class VolumeClassMetadata(StoredStruct, frozen=True):
    """What the cloud does not tell of a class of volumes."""

    id: str
    media: Literal["hdd", "ssd", "nvme"] | None = None
    performance: VolumePerformance | None = None
    encrypted: bool = False


class VolumeClassesConfig(StoredStruct, frozen=True):
    """Classes of volumes: those chosen, and no others."""

    selector: IdSelector | None = None
    metadata: Annotated[tuple[VolumeClassMetadata, ...], keyed("id")] = ()


class BlockStorageConfig(StoredStruct, frozen=True):
    """Which volumes there are."""

    volume_classes: VolumeClassesConfig | None = None


class RegionOpenstack(StoredStruct, frozen=True):
    """How to reach the cloud, and what of it is on offer."""

    endpoint: str
    """The address of its identity service."""
    service_account_secret: SecretName | None = None
    service_account: ServiceAccountConfig | None = None
    """The account itself, where no cluster keeps secrets for us."""
    identity: RolesConfig | None = None
    compute: ComputeConfig | None = None
    image: ImagesConfig | None = None
    network: NetworksConfig | None = None
    block_storage: BlockStorageConfig | None = None


class RegionOrganization(StoredStruct, frozen=True):
    """An organization that may see a region."""

    id: str


class RegionSecurity(StoredStruct, frozen=True):
    """Who may see a region: only these, or everybody if there are none."""

    organizations: tuple[RegionOrganization, ...] = ()


class RegionSimulated(StoredStruct, frozen=True):
    """Where in the simulated cloud a region is."""

    region: str
    """What the cloud calls it."""


class RegionSpec(StoredStruct, frozen=True):
    """What a region is. Of the three blocks, the one that is named by `provider` counts."""

    provider: ProviderType
    security: RegionSecurity | None = None
    openstack: RegionOpenstack | None = None
    kubernetes: RegionKubernetes | None = None
    simulated: RegionSimulated | None = None
    tags: tuple[Tag, ...] = ()

    @property
    def organizations(self) -> frozenset[str]:
        """Who may see it; nobody in particular means everybody."""
        return frozenset(each.id for each in self.security.organizations) if self.security else frozenset()


class RegionStatus(LifecycleStatus, frozen=True):
    """What was last seen of a region's cloud."""


class Region(Resource, frozen=True):
    """A part of a cloud, named by its id; a label says what people call it."""

    spec: RegionSpec
    status: RegionStatus = RegionStatus()


REGION = Kind(
    type=Region,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="regions",
    columns={"Display name": ".metadata.labels.unikorn-cloud\\.org/name", "Provider": ".spec.provider"},
)
"""Regions."""
