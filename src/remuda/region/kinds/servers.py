"""Servers as they are stored. A network owns its servers; a server references network, security groups and authority.

The spec is the desired state, and the status what the provider has. A server that changed at the provider without a
request is reported as drifted, and not changed back.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal, NamedTuple

import msgspec

from remuda.kernel.conditions import find_condition, find_true
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.providers.contract.common import ProviderType
from remuda.reconcile.status import unsettled_index
from remuda.region.kinds.common import UNIKORN_GROUP, VERSION, PartStatus
from remuda.resources.conventions import API_VERSION, IDENTITY, REGION, UNINDEXED, LifecycleStatus, nonempty
from remuda.store.kinds import Index, Kind, Reference, keyed
from remuda.store.objects import Resource, StoredStruct

SshInjection = Literal["ca", "identityKeypair", "none"]
"""Login: with a certificate of the authority, with the key of the identity, or not by our means."""

RebuildState = Literal["Initiated", "Rebuilding", "Succeeded", "Failed"]


class ServerImage(StoredStruct, frozen=True):
    """Image that a server boots."""

    id: str


class ServerGroup(StoredStruct, frozen=True):
    """Security group of a server."""

    id: str


class ServerVolume(StoredStruct, frozen=True):
    """Volume of a server; no API creates one yet."""

    id: str


class AddressPair(StoredStruct, frozen=True):
    """Source address that a server may use besides its own."""

    cidr: str
    mac_address: str = ""


class ServerNetwork(StoredStruct, frozen=True):
    """Network of a server."""

    id: str
    allowed_address_pairs: tuple[AddressPair, ...] = ()


class PublicIpAllocation(StoredStruct, frozen=True):
    """Whether a server has a public address."""

    enabled: bool = False


class Adopted(StoredStruct, frozen=True):
    """Server whose former object was lost: its names have that uid, and count its replacements."""

    uid: str
    address: str
    number: int = 0
    """Number of its first replacement."""


class Rebuild(StoredStruct, frozen=True):
    """Rebuild in progress."""

    target_image_id: str = msgspec.field(name="targetImageID")
    state: RebuildState
    number: int = 0
    """Number of requested rebuilds that it carries out."""


class ReplacementStatus(StoredStruct, frozen=True):
    """Numbers of replacements: the last that was started, and the last that was completed.

    The number is in the name at the provider and is stored before the provider is called, so after a crash the
    controller looks for the server of that number and creates no other.
    """

    started: int = 0
    completed: int = 0
    predecessors_deleted: int = 0
    """Replacement whose predecessors are gone from the provider."""


class LastAppliedSpec(StoredStruct, frozen=True):
    """Spec that a server has while a replacement is pending; requesting it again in time cancels the replacement."""

    flavor_id: str = msgspec.field(name="flavorID")
    image_id: str = msgspec.field(name="imageID")
    rebuilds: int = 0
    ssh_certificate_authority_id: str = msgspec.field(default="", name="sshCertificateAuthorityID")
    ssh_injection: SshInjection | None = None


class ServerVolumeStatus(StoredStruct, frozen=True):
    """Observed state of a volume."""

    id: str
    provisioning_status: PartStatus
    message: str
    device: str = ""


DRIFTED = "Drifted"
"""Condition of a server that differs at its provider from what was created."""


class StatusSummary(NamedTuple):
    """Summary by which servers are counted; it has a few dozen values."""

    region: str
    phase: str
    """In lower case."""
    has_run: bool
    is_drifted: bool

    @property
    def text(self) -> str:
        ran, drifted = "ran" if self.has_run else "", "drifted" if self.is_drifted else ""
        return f"{self.region}/{self.phase}/{ran}/{drifted}"

    @classmethod
    def of_text(cls, text: str) -> "StatusSummary":
        region, phase, ran, drifted = text.split("/")
        return cls(region, phase, bool(ran), bool(drifted))


ADDRESSES_EXHAUSTED = "AddressesExhausted"
"""Reason of a server whose network has no free address."""

Phase = Literal["Pending", "Queued", "Building", "Running", "Stopping", "Stopped"]
"""Phase of a server as its provider reports it."""


class ServerSpec(StoredStruct, frozen=True):
    """Desired state of a server."""

    flavor_id: str = msgspec.field(name="flavorID")
    """Changed by a replacement only."""
    image: ServerImage
    rebuilds: int = 0
    """Number of rebuilds that were requested. It only increases, and each increase rebuilds the server once."""
    networks: tuple[ServerNetwork, ...] = ()
    """One, except in servers of version 1 of the API."""
    security_groups: tuple[ServerGroup, ...] = ()
    public_ip_allocation: PublicIpAllocation | None = msgspec.field(default=None, name="publicIPAllocation")
    ssh_certificate_authority_id: str = msgspec.field(default="", name="sshCertificateAuthorityID")
    ssh_injection: SshInjection | None = None
    user_data: Secret | None = None
    """Base64 as it was sent. Sealed, since it often has passwords and tokens."""
    infrastructure_ref: str = ""
    """Host that it has to run on."""
    volumes: Annotated[tuple[ServerVolume, ...], keyed("id")] = ()
    provider: ProviderType | None = None
    """Only in servers of version 1 of the API."""
    replacement: int = 0
    last_applied: LastAppliedSpec | None = None
    """Spec of the present server while a replacement is pending."""
    replacing_operation: str = ""
    """Operation that requested the last replacement, so that a repeated request starts no other."""
    operation: str = ""
    adopted: Adopted | None = None
    """Set if it was at the provider before this object."""
    pause: bool = False
    tags: tuple[Tag, ...] = ()

    @property
    def has_public_ip(self) -> bool:
        return self.public_ip_allocation is not None and self.public_ip_allocation.enabled


class ServerStatus(LifecycleStatus, frozen=True):
    """Observed state of a server."""

    phase: Phase | None = None
    private_ip: str = msgspec.field(default="", name="privateIP")
    public_ip: str = msgspec.field(default="", name="publicIP")
    mac_address: str = ""
    scheduled_at: datetime | None = None
    """Time at which the provider accepted it."""
    launched_at: datetime | None = None
    """Time of its first start at the provider."""
    provisioned_at: datetime | None = None
    """Time of its first start; written once."""
    provider_create_failures: int = 0
    provider_create_retrying: bool = False
    """Whether a failed server is being deleted before the next attempt."""
    rebuild: Rebuild | None = None
    replacement: ReplacementStatus = ReplacementStatus()
    provider_id: str = ""
    """Id at the provider; empty until it was observed there."""
    applied_image_id: str = ""
    """Image that was last applied; if another one is desired, the server is rebuilt."""
    applied_rebuilds: int = 0
    """Number of requested rebuilds that its disk stands for; if more are requested, the server is rebuilt."""
    image_id: str = ""
    """Image that the provider reports; a difference from the desired one is drift."""
    flavor_id: str = ""
    """Flavor that the provider reports, likewise."""
    recreations: int = 0
    """Number of times that it disappeared from the provider without a request and was created again."""
    volumes: Annotated[tuple[ServerVolumeStatus, ...], keyed("id")] = ()


class Server(Resource, frozen=True):
    """Labels name its region, identity and network."""

    spec: ServerSpec
    status: ServerStatus = ServerStatus()

    @property
    def cloud_uid(self) -> str:
        """Uid in its names at the provider: its own, unless it was adopted."""
        return self.uid if self.spec.adopted is None else self.spec.adopted.uid

    def cloud_number(self, replacement: int) -> int:
        """Return the number of a replacement in its names at the provider: the same, unless it was adopted."""
        return replacement if self.spec.adopted is None else self.spec.adopted.number + replacement


def cloud_uid_of(resource: Resource) -> str:
    """Return the uid in the names of an object's resources at the provider."""
    return resource.cloud_uid if isinstance(resource, Server) else resource.uid


def _images(server: Server) -> Iterator[str]:
    """Yield the desired image and the one that the server still runs."""
    yield from {server.spec.image.id, *nonempty(server.status.image_id)}


def drift_of(server: Server) -> str:
    """Return how a server differs at its provider from what was created; empty, if it does not."""
    found = find_true(server.status.conditions, DRIFTED)
    return "" if found is None else found.message


def is_drifted(server: Server) -> bool:
    return bool(drift_of(server))


def status_summary(server: Server) -> StatusSummary:
    return StatusSummary(
        region=server.metadata.labels.get(REGION, ""),
        phase=(server.status.phase or "Pending").lower(),
        has_run=server.status.provisioned_at is not None,
        is_drifted=is_drifted(server),
    )


def _is_changing(server: Server) -> bool:
    return server.status.phase not in {"Running", "Stopped"}


def _without_address(server: Server) -> Iterator[str]:
    """Yield the network of a server that waits for a free address."""
    available = find_condition(server.status.conditions, "Available")
    if available is not None and available.reason == ADDRESSES_EXHAUSTED:
        yield from (each.id for each in server.spec.networks)


def capacity_key(server: Server) -> str:
    """Return the region and flavor whose capacity a server uses."""
    return f"{server.metadata.labels.get(REGION, '')}/{server.spec.flavor_id}"


def _awaited_capacity(server: Server) -> Iterator[str]:
    replacement = server.status.replacement
    if replacement.completed < replacement.started:
        yield capacity_key(server)


SERVER = Kind(
    type=Server,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="servers",
    uncounted="quota servers",
    references=(
        Reference(target=f"networks.{UNIKORN_GROUP}", names=lambda server: [each.id for each in server.spec.networks]),
        Reference(
            target=f"securitygroups.{UNIKORN_GROUP}",
            names=lambda server: [each.id for each in server.spec.security_groups],
        ),
        Reference(
            target=f"sshcertificateauthorities.{UNIKORN_GROUP}",
            names=lambda server: nonempty(server.spec.ssh_certificate_authority_id),
        ),
    ),
    indexes=(
        Index(name="operation", values=lambda server: nonempty(server.spec.operation)),
        Index(name="image", values=_images),
        Index(name="without address", values=_without_address),
        Index(name="awaited capacity", values=_awaited_capacity),
        Index(name="group", values=lambda server: [each.id for each in server.spec.security_groups]),
        Index(name="status summary", values=lambda server: [status_summary(server).text]),
        unsettled_index(_is_changing),
    ),
    unindexed=UNINDEXED | {API_VERSION, IDENTITY},
    columns={
        "Status": '.status.conditions[?(@.type=="Available")].reason',
        "Phase": ".status.phase",
        "Private IP": ".status.privateIP",
        "Public IP": ".status.publicIP",
    },
)
"""Indexed by labels, operation, image, security group and status summary; by network if it waits for an address; by
capacity if it waits for that; and if it is unsettled, since such servers are reconciled first after a start."""
