"""Servers as they are stored. A server belongs to its network, and keeps what it names: network, groups, authority.

What is wanted is in the spec, what the cloud has is in the status; the two are compared only where a wish of the user's
is behind it. A server at the cloud that has become another one by itself is shown, and left alone.

What a server is made of as it is stored: the parts of what is wanted of it, and of what is known.

How a server stands, in the few words by which servers are counted.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal, NamedTuple

import msgspec

from remuda.kernel.conditions import find_condition
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.reconcile.status import unsettled_index
from remuda.region.kinds.common import UNIKORN_GROUP, VERSION, PartStatus, ProviderType
from remuda.resources.conventions import API_VERSION, IDENTITY, REGION, UNINDEXED, LifecycleStatus, nonempty
from remuda.store.kinds import Index, Kind, Reference, keyed
from remuda.store.objects import Resource, StoredStruct

SshInjection = Literal["ca", "identityKeypair", "none"]
"""Who can log in: whoever has a certificate, whoever has the identity's key, or nobody that we know of."""

RebuildState = Literal["Initiated", "Rebuilding", "Succeeded", "Failed"]
"""How far a rebuild is; it only goes forward."""


class ServerImage(StoredStruct, frozen=True):
    """What a server starts from."""

    id: str


class ServerGroup(StoredStruct, frozen=True):
    """A security group that a server is in."""

    id: str


class ServerVolume(StoredStruct, frozen=True):
    """A volume that a server wants; no API makes one yet."""

    id: str


class AddressPair(StoredStruct, frozen=True):
    """From where a server may send besides its own address."""

    cidr: str
    mac_address: str = ""


class ServerNetwork(StoredStruct, frozen=True):
    """A network that a server is on."""

    id: str
    allowed_address_pairs: tuple[AddressPair, ...] = ()


class PublicIpAllocation(StoredStruct, frozen=True):
    """Whether a server has a public address."""

    enabled: bool = False


class Adopted(StoredStruct, frozen=True):
    """A server at the cloud whose object was lost: what names it there, and the address that it has.

    The names at the cloud carry the uid of the object that was lost, and count its replacements.
    """

    uid: str
    address: str
    number: int = 0
    """What its first replacement is counted from."""


class Rebuild(StoredStruct, frozen=True):
    """An image on its way onto a server."""

    target_image_id: str = msgspec.field(name="targetImageID")
    state: RebuildState


class ReplacementStatus(StoredStruct, frozen=True):
    """Which of the servers that were wanted in turn is being made, and which one was last there.

    The counter is written before the cloud is asked, since it is in the name there: whoever comes back after a crash
    looks for that server, and never for a third.
    """

    counter: int = 0
    done: int = 0
    cleared: int = 0
    """For which one the place is free: what stood there before is gone."""


class LastAppliedSpec(StoredStruct, frozen=True):
    """What a server was before another was wanted in its place: who wants that again, in time, takes the wish back."""

    flavor_id: str = msgspec.field(name="flavorID")
    image_id: str = msgspec.field(name="imageID")
    ssh_certificate_authority_id: str = msgspec.field(default="", name="sshCertificateAuthorityID")
    ssh_injection: SshInjection | None = None


class ServerVolumeStatus(StoredStruct, frozen=True):
    """How far a volume is."""

    id: str
    provisioning_status: PartStatus
    message: str
    device: str = ""


DRIFTED = "Drifted"
"""The condition that says whether a server is another at its provider than it was made."""


class StatusSummary(NamedTuple):
    """One of a few dozen: many servers stand alike."""

    region: str
    phase: str
    """In lower case."""
    has_run: bool
    is_drifted: bool

    @property
    def text(self) -> str:
        """By which an index finds those that stand so."""
        ran, drifted = "ran" if self.has_run else "", "drifted" if self.is_drifted else ""
        return f"{self.region}/{self.phase}/{ran}/{drifted}"

    @classmethod
    def of_text(cls, text: str) -> "StatusSummary":
        """Return what such a text stands for."""
        region, phase, ran, drifted = text.split("/")
        return cls(region, phase, bool(ran), bool(drifted))


ADDRESSES_EXHAUSTED = "AddressesExhausted"
"""Why a server is not made whose network has no free address."""

Phase = Literal["Pending", "Queued", "Building", "Running", "Stopping", "Stopped"]
"""Where in its life a server is, as far as the cloud has told."""


class ServerSpec(StoredStruct, frozen=True):
    """What is wanted of a server."""

    flavor_id: str = msgspec.field(name="flavorID")
    """Only a replacement changes it."""
    image: ServerImage
    networks: tuple[ServerNetwork, ...] = ()
    """One, unless the first API made it."""
    security_groups: tuple[ServerGroup, ...] = ()
    public_ip_allocation: PublicIpAllocation | None = msgspec.field(default=None, name="publicIPAllocation")
    ssh_certificate_authority_id: str = msgspec.field(default="", name="sshCertificateAuthorityID")
    ssh_injection: SshInjection | None = None
    user_data: Secret | None = None
    """In base64, as it was sent. Sealed, since it often holds passwords and tokens."""
    infrastructure_ref: str = ""
    """The machine that it has to be on."""
    volumes: Annotated[tuple[ServerVolume, ...], keyed("id")] = ()
    provider: ProviderType | None = None
    """Only servers of the first API have it."""
    replacement: int = 0
    """How often another server was wanted in its place."""
    stands: LastAppliedSpec | None = None
    """What stands while another is wanted in its place."""
    replacing_operation: str = ""
    """The operation that wanted the last one: asked again, it wants no other."""
    operation: str = ""
    """The operation that made it."""
    adopted: Adopted | None = None
    """Where it was there before this object was."""
    pause: bool = False
    tags: tuple[Tag, ...] = ()

    @property
    def has_public_ip(self) -> bool:
        """Whether it is to have a public address."""
        return self.public_ip_allocation is not None and self.public_ip_allocation.enabled


class ServerStatus(LifecycleStatus, frozen=True):
    """What is known of a server."""

    phase: Phase | None = None
    private_ip: str = msgspec.field(default="", name="privateIP")
    public_ip: str = msgspec.field(default="", name="publicIP")
    mac_address: str = ""
    scheduled_at: datetime | None = None
    """When the cloud took it on."""
    launched_at: datetime | None = None
    """When it last came up."""
    provisioned_at: datetime | None = None
    """When it first came up; written once."""
    provider_create_failures: int = 0
    provider_create_retrying: bool = False
    """What failed is being removed, before the next try."""
    rebuild: Rebuild | None = None
    replacement: ReplacementStatus = ReplacementStatus()
    provider_id: str = ""
    """What the cloud calls it; empty until it was seen there."""
    applied_image_id: str = ""
    """The image that we last put on it: another one wanted is a rebuild."""
    image_id: str = ""
    """What the cloud says that it was made of. Another one than is wanted is shown, and nothing comes of it."""
    flavor_id: str = ""
    """What the cloud says that it is, likewise."""
    remade: int = 0
    """How often it was gone from the cloud without anybody here having asked for that, and was made again."""
    volumes: Annotated[tuple[ServerVolumeStatus, ...], keyed("id")] = ()


class Server(Resource, frozen=True):
    """A server. Labels say of which region, identity and network."""

    spec: ServerSpec
    status: ServerStatus = ServerStatus()

    @property
    def cloud_uid(self) -> str:
        """The uid in its names at the cloud: its own, unless it was adopted."""
        return self.uid if self.spec.adopted is None else self.spec.adopted.uid

    def cloud_number(self, replacement: int) -> int:
        """Return what its names at the cloud count a replacement as: the same, unless it was adopted."""
        return replacement if self.spec.adopted is None else self.spec.adopted.number + replacement


def cloud_uid_of(resource: Resource) -> str:
    """Return the uid in the names of what an object has at its cloud: its own, unless it is an adopted server."""
    return resource.cloud_uid if isinstance(resource, Server) else resource.uid


def _images(server: Server) -> Iterator[str]:
    """Yield the image that is wanted, and the one that it still runs from."""
    yield from {server.spec.image.id, *nonempty(server.status.image_id)}


def drift_of(server: Server) -> str:
    """Return how a server is known to be another at its provider than it was made; nothing, if it is not."""
    found = find_condition(server.status.conditions, DRIFTED)
    return found.message if found is not None and found.status == "True" else ""


def is_drifted(server: Server) -> bool:
    """Tell whether a server is known to be another at its provider than it was made."""
    return bool(drift_of(server))


def status_summary(server: Server) -> StatusSummary:
    return StatusSummary(
        region=server.metadata.labels.get(REGION, ""),
        phase=(server.status.phase or "Pending").lower(),
        has_run=server.status.provisioned_at is not None,
        is_drifted=is_drifted(server),
    )


def _is_on_its_way(server: Server) -> bool:
    """Tell whether its provider changes its power."""
    return server.status.phase not in {"Running", "Stopped"}


def _without_address(server: Server) -> Iterator[str]:
    """Yield the network on which a server waits for a free address."""
    available = find_condition(server.status.conditions, "Available")
    if available is not None and available.reason == ADDRESSES_EXHAUSTED:
        yield from (each.id for each in server.spec.networks)


def capacity_key(server: Server) -> str:
    """Return which sort of place a server takes: so many of a flavor are in a region."""
    return f"{server.metadata.labels.get(REGION, '')}/{server.spec.flavor_id}"


def _awaited_capacity(server: Server) -> Iterator[str]:
    """Yield what is to be there for a server whose replacement has begun."""
    turn = server.status.replacement or ReplacementStatus()
    if turn.done < turn.counter:
        yield capacity_key(server)


SERVER = Kind(
    type=Server,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="servers",
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
        Index(name="awaited place", values=_awaited_capacity),
        Index(name="group", values=lambda server: [each.id for each in server.spec.security_groups]),
        Index(name="standing", values=lambda server: [status_summary(server).text]),
        unsettled_index(_is_on_its_way),
    ),
    unindexed=UNINDEXED | {API_VERSION, IDENTITY},
    columns={
        "Status": '.status.conditions[?(@.type=="Available")].reason',
        "Phase": ".status.phase",
        "Private IP": ".status.privateIP",
        "Public IP": ".status.publicIP",
    },
)
"""Servers, found by their labels, by the operation that made them, by image, by security group and by how they stand;
those that wait for an address by their network, those that wait for a place by flavor; and those that are unsettled,
which cannot wait after a start."""
