"""What a region says about an OpenStack cloud: how to log in, and which of its resources are on offer."""

from typing import Annotated, Literal

import msgspec

from remuda.kernel.secrets import Secret
from remuda.region.kinds.hardware import Cpu, Gpu
from remuda.region.kinds.region_kubernetes import SecretName
from remuda.store.kinds import keyed
from remuda.store.objects import StoredStruct


class Chosen(StoredStruct, frozen=True):
    """What is on offer, by the cloud's ids."""

    ids: tuple[str, ...] = ()


class ServiceAccount(StoredStruct, frozen=True):
    """The user that makes projects and users for others."""

    domain_id: str = msgspec.field(name="domainID")
    project_id: str = msgspec.field(name="projectID")
    user_id: str = msgspec.field(name="userID")
    password: Secret


class Roles(StoredStruct, frozen=True):
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


class Flavors(StoredStruct, frozen=True):
    """Flavors: those chosen, or all that are public if none is."""

    selector: Chosen | None = None
    metadata: tuple[FlavorMetadata, ...] = ()


class PlacementPreflight(StoredStruct, frozen=True):
    """Whether to ask first if the machine that is named can take a server."""

    enabled: bool = False
    required_traits: tuple[str, ...] = ()


class Compute(StoredStruct, frozen=True):
    """How servers are made."""

    server_group_policy: str = ""
    placement_preflight: PlacementPreflight | None = None
    flavors: Flavors | None = None


class ImageSelector(StoredStruct, frozen=True):
    """Which public images are believed."""

    signing_key: str = ""
    """A public key, PEM in base64: only images that its other half signed."""


class Images(StoredStruct, frozen=True):
    """Which images are on offer."""

    selector: ImageSelector | None = None


class TaggedSelector(StoredStruct, frozen=True):
    """Chosen by id (any of them) and by tag (all of them)."""

    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class ExternalNetworks(StoredStruct, frozen=True):
    """Networks that public addresses come from; without a selector, all."""

    selector: TaggedSelector | None = None


class VlanSegment(StoredStruct, frozen=True):
    """VLANs in a row, both ends included."""

    start_id: int
    end_id: int


class Vlan(StoredStruct, frozen=True):
    """The VLANs that are ours to give."""

    segments: tuple[VlanSegment, ...] = ()


class ProviderNetworks(StoredStruct, frozen=True):
    """Where networks become VLANs of a physical network."""

    physical_network: str = ""
    vlan: Vlan | None = None


class Networks(StoredStruct, frozen=True):
    """How networks are made."""

    external_networks: ExternalNetworks | None = None
    provider_networks: ProviderNetworks | None = None


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


class VolumeClasses(StoredStruct, frozen=True):
    """Classes of volumes: those chosen, and no others."""

    selector: Chosen | None = None
    metadata: Annotated[tuple[VolumeClassMetadata, ...], keyed("id")] = ()


class BlockStorage(StoredStruct, frozen=True):
    """Which volumes there are."""

    volume_classes: VolumeClasses | None = None


class RegionOpenstack(StoredStruct, frozen=True):
    """How to reach the cloud, and what of it is on offer."""

    endpoint: str
    """The address of its identity service."""
    service_account_secret: SecretName | None = None
    service_account: ServiceAccount | None = None
    """The account itself, where no cluster keeps secrets for us."""
    identity: Roles | None = None
    compute: Compute | None = None
    image: Images | None = None
    network: Networks | None = None
    block_storage: BlockStorage | None = None
