"""What compute is given to work with.

Of region it knows this port and nothing else. What is looked up for a caller is asked for as that caller, with no more
rights than both have (`asker`); what controllers and verbs do, compute does itself, for whoever pays.

What compute sees of what identity and region keep, and what it wants of them: the values that pass its ports.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal, Protocol

from remuda.access.principal import Context
from remuda.compute.settings import ComputeSettings
from remuda.http.authentication import Authenticator
from remuda.kernel.secrets import Secret
from remuda.quota.ports import Amount, Charge, Ledger, ProjectRef, ProjectState
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.resync import ResyncSettings
from remuda.resources.schema import FlavorRead, ImageRead, MetadataWrite, RegionRead
from remuda.service import ServicePorts

Settling = Literal["unknown", "pending", "provisioning", "provisioned", "deprovisioning", "error"]
Health = Literal["unknown", "healthy", "degraded", "error"]
"""How a server is, as region says it."""
ServerPower = Literal["Pending", "Queued", "Building", "Running", "Stopping", "Stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What is held for something: an allocation."""

    name: str
    """The allocation's own id."""
    payer: ProjectRef
    kind: str
    """The qualified plural of what it is for."""
    id: str
    """What it is for."""
    amounts: frozenset[Amount]
    is_confirmed: bool
    """Somebody said that what it is for is there. What nobody says lapses by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSeen:
    """A network as it stands now."""

    id: str
    name: str
    region: str
    place: ProjectRef
    is_deleting: bool = False
    """It is being deleted."""
    is_gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSeen:
    """A security group."""

    id: str
    network: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthoritySeen:
    """An SSH certificate authority."""

    id: str
    place: ProjectRef


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a server is asked to be, as it can be compared: the same facts of what is wanted and of what is there."""

    flavor: str
    image: str
    security_groups: tuple[str, ...] = ()
    public_ip: bool = False
    allowed_source_addresses: tuple[str, ...] = ()
    authority: str = ""
    user_data: Secret | None = None
    """In base64."""
    description: str = ""
    tags: tuple[tuple[str, str], ...] = ()
    """In the order of their names; those that say whose server it is are among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerWanted:
    """A server to make or to change."""

    id: str
    """What it will be called, as it follows from network and name."""
    name: str
    network: str
    facts: ServerFacts
    payer: ProjectRef
    actor: str = ""
    """For whom it is done."""
    revision: str | None = None
    """To change it only if nothing else was asked of it since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """What takes a server's place: it gets the same port, addresses and MAC."""

    server: str
    flavor: str
    image: str
    user_data: Secret | None
    authority: str
    payer: ProjectRef
    operation: str
    """Asked for again under the same one, it is done once."""
    actor: str = ""
    revision: str | None = None
    """As in ServerWanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSeen:
    """A server as it stands now."""

    id: str
    name: str
    place: ProjectRef
    region: str
    network: str
    instance: str = ""
    """The instance that it says it belongs to."""
    incarnation: str = ""
    """The uid of that instance."""
    facts: ServerFacts
    settling: Settling
    """`provisioned` means: it is as it was last asked to be."""
    reason: str = ""
    message: str = ""
    health: Health = "unknown"
    health_message: str = ""
    power: ServerPower | None = None
    private_ip: str = ""
    public_ip: str = ""
    mac_address: str = ""
    drift: str = ""
    """How it has become another at its provider than it was made, if it has."""
    remade: int = 0
    """How often it was gone from its provider, unasked, and was made again: with nothing on its disk."""
    replacements: int = 0
    """How often another server was wanted in its place, unless that was taken back."""
    revision: str = ""
    """Another one whenever something else is asked of it."""
    is_deleting: bool = False
    is_gone: bool = False
    """Only a watch tells of one that is gone."""


@dataclass(frozen=True, slots=True)
class AllTold:
    """Everything that is there has been told: what is not among these is gone, maybe while nobody watched."""

    ids: AbstractSet[str]


class IdentityPort(Ledger, Protocol):
    """What compute asks of identity."""

    async def held_for(self, charge: Charge) -> Held | None:
        """Return what is held for something of ours, or None if nothing is."""
        ...

    def held_in(self, place: ProjectRef) -> AsyncIterator[Held]:
        """Yield everything that is held in a project, whatever it is for."""
        ...

    async def free_in(self, place: ProjectRef) -> Mapping[str, int]:
        """Return how much a project may still have, by the kind of quota: of its own and of its organization's."""
        ...

    async def let_go(self, held: Held) -> None:
        """Hold it no more; what is not held is fine."""
        ...

    def projects(self) -> AsyncIterator[ProjectState]:
        """Yield every project there is, then each that changes, without end; now and then all of them again."""
        ...


class RegionPort(Protocol):
    """What compute asks of region. Everything may be repeated, and raises Unavailable if nobody can say.

    Whatever takes a `Context` is asked as its principal (impersonated), and raises what region tells that one:
    NotFound, Forbidden. Everything else is asked as compute itself.
    """

    async def regions(self, context: Context, organization: str) -> Sequence[RegionRead]:
        """Return the regions that the caller may know of."""
        ...

    async def flavors(
        self, context: Context, organization: str, region: str, *, fresh: bool = False
    ) -> Sequence[FlavorRead]:
        """Return the flavors that the caller may use, with how many are free where the region tells.

        That was so a few seconds ago, unless it is to be fresh.
        """
        ...

    async def images(self, context: Context, organization: str, region: str) -> Sequence[ImageRead]:
        """Return the images that an organization may use, in whatever state."""
        ...

    async def capabilities(self, region: str) -> frozenset[str]:
        """Return what a region's provider has."""
        ...

    async def network(self, context: Context, network: str) -> NetworkSeen:
        """Return a network that the caller may read."""
        ...

    async def security_group(self, context: Context, group: str) -> GroupSeen:
        """Return a security group that the caller may read."""
        ...

    async def authority(self, context: Context, authority: str) -> AuthoritySeen:
        """Return an SSH certificate authority that the caller may read."""
        ...

    async def find_network(self, network: str) -> NetworkSeen | None:
        """Return a network, or None if there is none."""
        ...

    async def servers_of(self, instance: str, place: ProjectRef, region: str, network: str) -> Sequence[ServerSeen]:
        """Return the servers in this scope that say they belong to an instance: one indexed lookup."""
        ...

    async def servers_anywhere(self, instance: str, payer: ProjectRef) -> Sequence[ServerSeen]:
        """Return all servers that say they belong to an instance, wherever they are: the same lookup."""
        ...

    async def create_server(self, wanted: ServerWanted, operation: str) -> ServerSeen:
        """Make a server. AlreadyExists if one of its id is there that this operation did not make."""
        ...

    async def change_server(self, wanted: ServerWanted) -> ServerSeen:
        """Make a server what is wanted, without another flavor. Another image rebuilds it."""
        ...

    async def replace_server(self, wanted: Replacement) -> ServerSeen:
        """Put another server in the place of one."""
        ...

    async def delete_server(self, server: str, payer: ProjectRef) -> None:
        """Ask for a server to go; one that is not there is fine."""
        ...

    async def start(self, context: Context, server: str) -> None:
        """Start a stopped server. Verbs are compute's own act, for the caller, whose right compute has judged."""
        ...

    async def stop(self, context: Context, server: str) -> None:
        """Stop a running server."""
        ...

    async def reboot(self, context: Context, server: str, *, hard: bool) -> None:
        """Reboot a running server."""
        ...

    async def ssh_key(self, context: Context, server: str) -> Secret:
        """Return the private key that opens a server."""
        ...

    async def open_console(self, context: Context, server: str) -> str:
        """Return where a browser sees a server's screen."""
        ...

    async def console_output(self, context: Context, server: str, lines: int | None) -> str:
        """Return the last lines that a server wrote to its console."""
        ...

    async def snapshot(self, context: Context, server: str, metadata: MetadataWrite) -> ImageRead:
        """Make an image of a server."""
        ...

    def servers(self) -> AsyncIterator[ServerSeen | AllTold]:
        """Yield every server that says it belongs to an instance, then each that changes or goes, without end.

        When every one has been told, at first or anew, that is said.
        """
        ...

    def networks(self) -> AsyncIterator[NetworkSeen]:
        """Yield every network, then each that changes or goes, without end."""
        ...


@dataclass(frozen=True, kw_only=True)
class ComputePorts(ServicePorts):
    """Everything outside compute that it touches."""

    authenticator: Authenticator
    identity: IdentityPort
    region: RegionPort
    settings: ComputeSettings = field(default_factory=ComputeSettings)
    controllers: ControllerSettings = field(
        default_factory=lambda: ControllerSettings(resync=ResyncSettings(keys_per_s=2.0))
    )
    """A full scan of 100,000 instances takes hours, and so next to nothing."""
