"""What compute sees of what identity and region keep, and what it wants of them: the values that pass its ports."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from remuda.kernel.secrets import Secret
from remuda.quota.ports import Amount, Place

Settling = Literal["unknown", "pending", "provisioning", "provisioned", "deprovisioning", "error"]
Health = Literal["unknown", "healthy", "degraded", "error"]
"""How a server is, as region says it."""
ServerPower = Literal["Pending", "Queued", "Building", "Running", "Stopping", "Stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What is held for something: an allocation."""

    name: str
    """The allocation's own id."""
    payer: Place
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
    place: Place
    is_marked: bool = False
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
    place: Place


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
    payer: Place
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
    payer: Place
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
    place: Place
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
    is_marked: bool = False
    is_gone: bool = False
    """Only a watch tells of one that is gone."""


@dataclass(frozen=True, slots=True)
class AllTold:
    """Everything that is there has been told: what is not among these is gone, maybe while nobody watched."""

    ids: AbstractSet[str]
