"""Instances as they are stored: what somebody wants, and what is known of the server that does the work.

The server is linked explicitly, before it exists: its id follows from network and name, and so a second try finds the
first one's. What the server says is projected into the status; nothing is observed here.

The API groups that compute's kinds belong to.

What a project demands of all its instances, named after the project.

What compute stores. `KINDS` is all of it.

Instances have the fields that existing clusters know, and some of our own beside them. Kinds of the group
`compute.remuda` are ours alone.
"""

from typing import Any, Literal

import msgspec

from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.reconcile.status import unsettled_index
from remuda.resources.conventions import UNINDEXED, LifecycleStatus, nonempty
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, StoredStruct

SHARED = "compute.unikorn-cloud.org"
"""Kinds that existing clusters have too."""
OURS = "compute.remuda"
"""Kinds that only we have."""
VERSION = "v1alpha1"
"""The version of all of them."""


PowerState = Literal["Pending", "Queued", "Building", "Running", "Stopping", "Stopped", "Rebuilding", "Error"]
"""Where in its life an instance is."""


class InstanceNetworking(StoredStruct, frozen=True):
    """How an instance is reached, and from where it may send."""

    security_group_ids: tuple[str, ...] = msgspec.field(default=(), name="securityGroupIDs")
    public_ip: bool | None = None
    """None if nobody said: it has none then."""
    allowed_source_addresses: tuple[str, ...] = ()


class Protection(StoredStruct, frozen=True):
    """What must not happen to an instance by mistake."""

    deletion: bool = False
    """It cannot be deleted while this is set."""
    plan: bool = False
    """A change that destroys something has to carry the hash of its plan."""


class InstanceSpec(StoredStruct, frozen=True, kw_only=True):
    """What is wanted of an instance."""

    flavor_id: str
    image_id: str
    networking: InstanceNetworking = InstanceNetworking()
    ssh_certificate_authority_id: str = ""
    user_data: Secret | None = None
    """In base64, as it was sent. Sealed, since it often holds passwords and tokens."""
    protection: Protection = Protection()
    server_id: str = ""
    """The server that does the work, known before it exists; empty only in what an existing cluster brings along."""
    gpus: int = 0
    """How many physical GPUs its flavor has: what it costs must not hang on what is offered later."""
    operation: str = ""
    """The operation that made it, after which what it costs is named."""
    pause: bool = False
    tags: tuple[Tag, ...] = ()
    replicas: int | None = None
    """What existing clusters have of machines of every sort. Nobody asks for it; it stays as it is."""
    disk_size: str = ""
    """The same, as a Kubernetes quantity such as `20Gi`."""

    @property
    def wants_public_ip(self) -> bool:
        """Whether it is to have a public address."""
        return bool(self.networking.public_ip)


class Applied(StoredStruct, frozen=True):
    """What a server was made of when it was last as it had been asked to be: another of these makes it anew."""

    flavor_id: str
    image_id: str
    ssh_certificate_authority_id: str = ""
    gpus: int = 0
    """How many physical ones that flavor has: it is charged for them until it has another."""


class Addresses(StoredStruct, frozen=True):
    """Where an instance is reached."""

    private_ip: str = ""
    public_ip: str = ""
    mac_address: str = ""


class InstanceStatus(LifecycleStatus, frozen=True):
    """What is known of an instance, as its server tells it."""

    power_state: PowerState | None = None
    private_ip: str = ""
    public_ip: str = ""
    mac_address: str = ""
    had: Addresses | None = None
    """Those of its addresses that its server has not any more, until it has others."""
    has_server: bool = False
    """Its server was there once: if it is gone now, somebody else removed it."""
    remade: int = 0
    """How often its server says that it was gone from its provider and made again."""
    applied: Applied | None = None
    """None until its server was there and as it had been asked to be."""


class ComputeInstance(Resource, frozen=True):
    """An instance. Labels say in which project, in which region and on which network."""

    spec: InstanceSpec
    status: InstanceStatus = InstanceStatus()


INSTANCE = Kind(
    type=ComputeInstance,
    group=SHARED,
    version=VERSION,
    plural="computeinstances",
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
"""Instances, found by their labels, by the operation that made them, and by their server; and those that are unsettled,
which cannot wait after a start. What happens to the servers of the others is told by the watch of servers."""


class ProjectPolicy(Resource, frozen=True):
    """A project's policy: it holds for each of its instances, whatever the instance itself says."""

    spec: Protection = Protection()


POLICY = Kind(type=ProjectPolicy, group=OURS, version=VERSION, plural="projectpolicies")
"""Policies, by the ids of their projects."""


KINDS: tuple[Kind[Any], ...] = (INSTANCE, POLICY)
"""Every kind of the compute service."""
