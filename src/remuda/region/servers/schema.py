"""What clients send and read of servers."""

from typing import Annotated, Literal

import msgspec

from remuda.http.routes import Id, Parameters, Wire
from remuda.kernel.secrets import Secret
from remuda.resources.schema import MetadataWrite, ProjectMetadataRead

PowerState = Literal["Pending", "Queued", "Building", "Running", "Stopping", "Stopped"]
"""Where in its life a server is."""
SshInjectionWire = Literal["ca", "identityKeypair", "none"]
"""Who can log in."""


class NetworkingWire(Wire, frozen=True):
    """How a server is reached, and from where it may send."""

    security_groups: Annotated[tuple[Id, ...], msgspec.Meta(max_length=64)] = ()
    public_ip: Annotated[bool, msgspec.Meta(description="It has a public address.")] = msgspec.field(
        default=False, name="publicIP"
    )
    allowed_source_addresses: Annotated[
        tuple[str, ...],
        msgspec.Meta(max_length=64, description="IPv4 prefixes from which it may also send, such as a VPN's."),
    ] = ()


class ServerSpecWire(Wire, frozen=True, kw_only=True):
    """What is wanted of a server."""

    flavor_id: Id
    image_id: Annotated[Id, msgspec.Meta(description="Another one rebuilds the server: its root disk is lost.")]
    networking: NetworkingWire | None = None
    user_data: Annotated[
        str,
        msgspec.Meta(
            description="What cloud-init does when the server first starts, in base64; 64 KiB at most.",
            extra_json_schema={"format": "byte"},
        ),
    ] = ""


class ServerCreateSpec(ServerSpecWire, frozen=True, kw_only=True):
    """What a new server is to be."""

    network_id: Id
    ssh_certificate_authority_id: Id | None = None
    ssh_injection: (
        Annotated[
            SshInjectionWire,
            msgspec.Meta(description="Left out, it is ca where an authority is named, and identityKeypair elsewhere."),
        ]
        | None
    ) = None
    infrastructure_ref: Annotated[
        str, msgspec.Meta(max_length=255, description="The machine that it has to be on.")
    ] = ""


class ServerCreate(Wire, frozen=True):
    """A server as it is asked for."""

    metadata: MetadataWrite
    spec: ServerCreateSpec


class ServerUpdate(Wire, frozen=True):
    """A server as it is to be from now on."""

    metadata: MetadataWrite
    spec: ServerSpecWire


class ReplaceWrite(Wire, frozen=True):
    """What takes a server's place: it gets the same port, addresses and MAC, and nothing of the old one's disk."""

    flavor_id: Id
    image_id: Id
    user_data: Annotated[str, msgspec.Meta(extra_json_schema={"format": "byte"})] = ""
    ssh_certificate_authority_id: Id | None = None


class RevisionQuery(Parameters, frozen=True):
    """Of what a change was made up."""

    revision: (
        Annotated[
            str,
            msgspec.Meta(
                max_length=100,
                description="Its `status.revision`: if something was asked of it since, 412, and nothing is changed.",
            ),
        ]
        | None
    ) = None


class ServerStatusRead(Wire, frozen=True, kw_only=True):
    """What is known of a server."""

    region_id: str
    network_id: str
    ssh_certificate_authority_id: str = ""
    ssh_injection: SshInjectionWire
    infrastructure_ref: str = ""
    power_state: PowerState | None = None
    private_ip: str = msgspec.field(default="", name="privateIP")
    public_ip: str = msgspec.field(default="", name="publicIP")
    mac_address: str = ""
    drift: Annotated[
        str, msgspec.Meta(description="How it has become another at its provider than it was made, if it has.")
    ] = ""
    recreations: Annotated[
        int,
        msgspec.Meta(description="How often it was gone from its provider, unasked, and was made again: its disk too."),
    ] = 0
    replacements: Annotated[
        int, msgspec.Meta(description="How often another server was wanted in its place, unless that was taken back.")
    ] = 0
    revision: Annotated[str, msgspec.Meta(description="Another one whenever something else is asked of it.")]


class ServerRead(Wire, frozen=True):
    """A server."""

    metadata: ProjectMetadataRead
    spec: ServerSpecWire
    status: ServerStatusRead


class SshKeyRead(Wire, frozen=True):
    """A key that opens a server."""

    private_key: Secret


class ConsoleSessionRead(Wire, frozen=True):
    """Where a browser sees a server's screen."""

    url: str


class ConsoleOutputRead(Wire, frozen=True, omit_defaults=False):
    """What a server wrote to its console."""

    contents: str


class ServerPath(Parameters, frozen=True, rename={"server": "serverID"}):
    """A server."""

    server: Id


class ConsoleQuery(Parameters, frozen=True):
    """How much of a console's output."""

    length: (
        Annotated[int, msgspec.Meta(ge=1, le=100_000, description="How many lines, counted from the last.")] | None
    ) = None
