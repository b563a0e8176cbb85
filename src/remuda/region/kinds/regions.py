"""Regions as they are stored: the cloud of each, and which of its resources are offered.

Memory and disk are bytes. Passwords are in a secret of a cluster, which is named here, or here and sealed.
"""

from typing import Annotated, Literal

import msgspec

from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.providers.contract.common import ProviderType
from remuda.region.kinds.common import UNIKORN_GROUP, VERSION, Cpu, Gpu
from remuda.resources.conventions import LifecycleStatus
from remuda.store.kinds import Kind, keyed
from remuda.store.objects import Resource, StoredStruct


class SecretName(StoredStruct, frozen=True):
    """Reference to a secret of the cluster that stores the objects."""

    namespace: str
    name: str


class KubernetesNode(StoredStruct, frozen=True):
    """Type of node, which is offered as a flavor if the cluster has one."""

    id: str
    name: str
    cpu: Cpu
    memory: int
    disk: int
    gpu: Gpu | None = None


class RegionKubernetes(StoredStruct, frozen=True):
    """Access to a Kubernetes cluster, and the types of its nodes."""

    kube_config_secret: SecretName | None = None
    kube_config: Secret | None = None
    """The kubeconfig, unless a secret has it."""
    nodes: Annotated[tuple[KubernetesNode, ...], keyed("id")] = ()
    domain_name: str = ""


class IdSelector(StoredStruct, frozen=True):
    """Selection by ids of the cloud."""

    ids: tuple[str, ...] = ()


class ServiceAccountConfig(StoredStruct, frozen=True):
    """Account that creates projects and users at an OpenStack cloud."""

    domain_id: str = msgspec.field(name="domainID")
    project_id: str = msgspec.field(name="projectID")
    user_id: str = msgspec.field(name="userID")
    password: Secret


class RolesConfig(StoredStruct, frozen=True):
    """Roles of the users that are created; none means the default ones."""

    cluster_roles: tuple[str, ...] = ()


class FlavorMetadata(StoredStruct, frozen=True):
    """Properties of a flavor that the cloud does not report, or reports wrongly."""

    id: str
    baremetal: bool = False
    cpu: Cpu | None = None
    memory: int | None = None
    gpu: Gpu | None = None
    pinned_only: bool = False
    """Whether it is available on a named host only."""


class FlavorsConfig(StoredStruct, frozen=True):
    """Offered flavors: the selected ones, or without a selector all public ones."""

    selector: IdSelector | None = None
    metadata: tuple[FlavorMetadata, ...] = ()


class PlacementPreflight(StoredStruct, frozen=True):
    """Check that a named host can take a server before it is created."""

    enabled: bool = False
    required_traits: tuple[str, ...] = ()


class OpenstackComputeConfig(StoredStruct, frozen=True):
    """Creation of servers."""

    server_group_policy: str = ""
    placement_preflight: PlacementPreflight | None = None
    flavors: FlavorsConfig | None = None


class ImageSelector(StoredStruct, frozen=True):
    """Selection of public images."""

    signing_key: str = ""
    """Public key, PEM in base64, that must have signed an image."""


class ImagesConfig(StoredStruct, frozen=True):
    """Offered images."""

    selector: ImageSelector | None = None


class TaggedSelector(StoredStruct, frozen=True):
    """Selection by id (any of them) and by tag (all of them)."""

    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class ExternalNetworksConfig(StoredStruct, frozen=True):
    """Offered external networks; without a selector, all."""

    selector: TaggedSelector | None = None


class VlanSegment(StoredStruct, frozen=True):
    """Range of VLANs, both ends included."""

    start_id: int
    end_id: int


class VlanConfig(StoredStruct, frozen=True):
    """VLANs that region allocates."""

    segments: tuple[VlanSegment, ...] = ()


class ProviderNetworksConfig(StoredStruct, frozen=True):
    """Physical network on which networks are VLANs."""

    physical_network: str = ""
    vlan: VlanConfig | None = None


class NetworksConfig(StoredStruct, frozen=True):
    """Creation of networks."""

    external_networks: ExternalNetworksConfig | None = None
    provider_networks: ProviderNetworksConfig | None = None


class VolumePerformance(StoredStruct, frozen=True):
    """Limits of a volume class."""

    max_iops: int | None = msgspec.field(default=None, name="maxIOPS")
    max_throughput: int | None = msgspec.field(default=None, name="maxThroughputMiBps")


class VolumeClassMetadata(StoredStruct, frozen=True):
    """Properties of a volume class that the cloud does not report."""

    id: str
    media: Literal["hdd", "ssd", "nvme"] | None = None
    performance: VolumePerformance | None = None
    encrypted: bool = False


class VolumeClassesConfig(StoredStruct, frozen=True):
    """Offered volume classes: the selected ones only."""

    selector: IdSelector | None = None
    metadata: Annotated[tuple[VolumeClassMetadata, ...], keyed("id")] = ()


class BlockStorageConfig(StoredStruct, frozen=True):
    """Offered volumes."""

    volume_classes: VolumeClassesConfig | None = None


class RegionOpenstack(StoredStruct, frozen=True):
    """Access to an OpenStack cloud, and which of its resources are offered."""

    endpoint: str
    region: str = ""
    """Region in the service catalogue of the cloud; empty if there is one only."""
    ca_certificate: str = ""
    """Authorities that have signed the certificates of the cloud, as PEM; empty for the public ones."""
    service_account_secret: SecretName | None = None
    service_account: ServiceAccountConfig | None = None
    """The account, unless a secret has it."""
    identity: RolesConfig | None = None
    compute: OpenstackComputeConfig | None = None
    image: ImagesConfig | None = None
    network: NetworksConfig | None = None
    block_storage: BlockStorageConfig | None = None


class RegionOrganization(StoredStruct, frozen=True):
    """Organization that a region is visible to."""

    id: str


class RegionSecurity(StoredStruct, frozen=True):
    """Organizations that a region is visible to; none means all."""

    organizations: tuple[RegionOrganization, ...] = ()


class RegionSimulated(StoredStruct, frozen=True):
    """Region of a simulated cloud."""

    region: str
    """Its name in the catalogue of simulated clouds."""


class RegionSpec(StoredStruct, frozen=True):
    """Desired state of a region. Of the three sections, the one that `provider` names is used."""

    provider: ProviderType
    security: RegionSecurity | None = None
    openstack: RegionOpenstack | None = None
    kubernetes: RegionKubernetes | None = None
    simulated: RegionSimulated | None = None
    disabled: bool = False
    """Nothing new can be created in it."""
    tags: tuple[Tag, ...] = ()

    @property
    def organizations(self) -> frozenset[str]:
        """Organizations that it is visible to; empty means all."""
        return frozenset(each.id for each in self.security.organizations) if self.security else frozenset()


class RegionStatus(LifecycleStatus, frozen=True):
    """Observed state of a region."""


class Region(Resource, frozen=True):
    """Part of a cloud. A label has its display name."""

    spec: RegionSpec
    status: RegionStatus = RegionStatus()


REGION = Kind(
    type=Region,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="regions",
    uncounted="configured by the operator",
    columns={"Display name": ".metadata.labels.unikorn-cloud\\.org/name", "Provider": ".spec.provider"},
)
