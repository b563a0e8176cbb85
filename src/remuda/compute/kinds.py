"""Stored kinds of compute: instances and project policies.

Instances have the fields of existing Unikorn clusters and some of Remuda; kinds of the group `compute.remuda` exist
only here.
"""

from typing import Any, Literal

import msgspec

from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.reconcile.status import unsettled_index
from remuda.resources.conventions import UNINDEXED, LifecycleStatus, nonempty
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, StoredStruct

UNIKORN_GROUP = "compute.unikorn-cloud.org"
"""Group of the kinds that Unikorn clusters have, too."""
REMUDA_GROUP = "compute.remuda"
"""Group of the kinds that only Remuda has."""
VERSION = "v1alpha1"


PowerState = Literal["Pending", "Queued", "Building", "Running", "Stopping", "Stopped", "Rebuilding", "Error"]


class InstanceNetworking(StoredStruct, frozen=True):
    """The network configuration of an instance."""

    security_group_ids: tuple[str, ...] = msgspec.field(default=(), name="securityGroupIDs")
    public_ip: bool | None = None
    """None, if the client did not set it, means no."""
    allowed_source_addresses: tuple[str, ...] = ()


class Protection(StoredStruct, frozen=True):
    """Protection of an instance against mistakes."""

    deletion: bool = False
    plan: bool = False
    """Whether an update that destroys data has to carry the hash of its plan."""


class InstanceSpec(StoredStruct, frozen=True, kw_only=True):
    """The desired state of an instance."""

    flavor_id: str
    image_id: str
    rebuilds: int = 0
    """Number of rebuilds that were requested. Each one starts the server from a new disk once."""
    rebuilding_operation: str = ""
    """The operation that requested the last rebuild, so that a repeated request is no other rebuild."""
    networking: InstanceNetworking = InstanceNetworking()
    ssh_certificate_authority_id: str = ""
    user_data: Secret | None = None
    """In base64, as it was sent. Sealed, since it often contains passwords and tokens."""
    protection: Protection = Protection()
    server_id: str = ""
    """The server of the instance, derived from network and name. Empty only in objects of an existing cluster."""
    gpus: int = 0
    """Number of physical GPUs of the flavor. Stored, so that the quota does not depend on later offers."""
    operation: str = ""
    """The operation that created it, after which its quota allocation is named."""
    pause: bool = False
    tags: tuple[Tag, ...] = ()
    replicas: int | None = None
    """A field of existing clusters, which is kept and not used."""
    disk_size: str = ""
    """The same, a Kubernetes quantity such as `20Gi`."""

    @property
    def wants_public_ip(self) -> bool:
        return bool(self.networking.public_ip)


class AppliedSpec(StoredStruct, frozen=True):
    """The part of the spec that the server was created from; a change of it needs a rebuild or replacement."""

    flavor_id: str
    image_id: str
    rebuilds: int = 0
    ssh_certificate_authority_id: str = ""
    gpus: int = 0
    """Number of physical GPUs of that flavor, which count against the quota until the server is replaced."""


class Addresses(StoredStruct, frozen=True):
    """The addresses of an instance."""

    private_ip: str = ""
    public_ip: str = ""
    mac_address: str = ""


class InstanceStatus(LifecycleStatus, frozen=True):
    """The observed state of an instance, derived from its server."""

    power_state: PowerState | None = None
    private_ip: str = ""
    public_ip: str = ""
    mac_address: str = ""
    previous_addresses: Addresses | None = None
    """Those that the server no longer has, until it has others."""
    has_server: bool = False
    """Whether the server was created once: if it is missing now, another program deleted it."""
    recreations: int = 0
    """Number of times that the server disappeared from the provider and was created again."""
    applied: AppliedSpec | None = None
    """None until the server was provisioned."""


class ComputeInstance(Resource, frozen=True):
    """An instance. Its labels name project, region and network."""

    spec: InstanceSpec
    status: InstanceStatus = InstanceStatus()


INSTANCE = Kind(
    type=ComputeInstance,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="computeinstances",
    uncounted="quota servers",
    indexes=(
        Index(name="operation", values=lambda instance: nonempty(instance.spec.operation)),
        Index(name="server", values=lambda instance: nonempty(instance.spec.server_id)),
        unsettled_index(),
    ),
    unindexed=UNINDEXED,
    columns={
        "Status": '.status.conditions[?(@.type=="Available")].reason',
        "Power": ".status.powerState",
        "Private IP": ".status.privateIp",
        "Public IP": ".status.publicIp",
    },
)
"""Unsettled instances are reconciled first after a start; the server watch reports changes of the others."""


class ProjectPolicy(Resource, frozen=True):
    """The policy of a project, which applies to each of its instances. Its name is the id of the project."""

    spec: Protection = Protection()


POLICY = Kind(
    type=ProjectPolicy, group=REMUDA_GROUP, version=VERSION, plural="projectpolicies", uncounted="one for each project"
)


class WatchPositionSpec(StoredStruct, frozen=True):
    """A cursor of the server watch, and what was not reconciled when it was stored."""

    revision: str = ""
    """Digest of the source code that has stored it."""
    cursor: str = ""
    """Every change of a server up to here was observed."""
    instances: tuple[str, ...] = ()
    """Instances that these changes concern, and that were not reconciled since."""


class WatchPosition(Resource, frozen=True):
    """The position from which the server watch continues after a start."""

    spec: WatchPositionSpec = WatchPositionSpec()


WATCH_POSITION = Kind(
    type=WatchPosition, group=REMUDA_GROUP, version=VERSION, plural="watchpositions", uncounted="there is only one"
)

KINDS: tuple[Kind[Any], ...] = (INSTANCE, POLICY, WATCH_POSITION)
