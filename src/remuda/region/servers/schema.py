"""Schema of servers."""

from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Id, Parameters, Uuid, Wire
from remuda.kernel.secrets import Secret
from remuda.resources.schema import FlavorId, ImageId, MetadataWrite, NetworkId, ProjectMetadataRead

PowerState = Literal["Pending", "Queued", "Building", "Running", "Stopping", "Stopped"]
SshInjectionWire = Literal["ca", "identityKeypair", "none"]
"""The way by which users log in."""


class ServerNetworkingWire(Wire, frozen=True):
    """The networking of a server."""

    security_groups: Annotated[
        tuple[Id, ...],
        msgspec.Meta(max_length=64, description="Security groups of the network, whose rules allow traffic."),
    ] = ()
    public_ip: Annotated[bool, msgspec.Meta(description="Whether it has a public address.")] = msgspec.field(
        default=False, name="publicIP"
    )
    allowed_source_addresses: Annotated[
        tuple[str, ...],
        msgspec.Meta(max_length=64, description="Further IPv4 source prefixes, such as those of a VPN."),
    ] = ()


class ServerSpecWire(Wire, frozen=True, kw_only=True):
    """The writable spec of a server."""

    flavor_id: FlavorId
    image_id: Annotated[
        Id,
        msgspec.Meta(
            description="Another one rebuilds the server; data on its root disk is lost.",
            examples=["b1f0c0de-0006-4000-8000-000000000006"],
        ),
    ]
    rebuilds: Annotated[
        int,
        msgspec.Meta(
            ge=0,
            le=2**31 - 1,
            description="How often a rebuild was requested. A greater number rebuilds the server from its image, and "
            "data on its root disk is lost; a smaller one is ignored.",
        ),
    ] = 0
    networking: ServerNetworkingWire | None = None
    user_data: Annotated[
        str,
        msgspec.Meta(
            description="User data for cloud-init at the first boot, in base64; at most 64 KiB. It is shown only to "
            "callers who may update the server. An update without it removes it.",
            extra_json_schema={"format": "byte"},
        ),
    ] = ""


class ServerCreateSpec(ServerSpecWire, frozen=True, kw_only=True):
    """The spec of a new server."""

    network_id: NetworkId
    ssh_certificate_authority_id: Annotated[
        Id | None, msgspec.Meta(description="Users with a certificate of this authority can log in.")
    ] = None
    ssh_injection: (
        Annotated[
            SshInjectionWire,
            msgspec.Meta(description="By default ca if an authority is given, and identityKeypair otherwise."),
        ]
        | None
    ) = None
    infrastructure_ref: Annotated[str, msgspec.Meta(max_length=255, description="The host on which it must run.")] = ""


class ServerCreate(Wire, frozen=True):
    """The request to create a server."""

    metadata: MetadataWrite
    spec: ServerCreateSpec


class ServerUpdate(Wire, frozen=True):
    """The request to update a server."""

    metadata: MetadataWrite
    spec: ServerSpecWire


class ReplaceWrite(Wire, frozen=True):
    """The request to replace a server by a new one with its port, addresses and MAC, and an empty disk."""

    flavor_id: FlavorId
    image_id: ImageId
    rebuilds: Annotated[
        int, msgspec.Meta(ge=0, le=2**31 - 1, description="How often a rebuild of the server was requested.")
    ] = 0
    user_data: Annotated[
        str,
        msgspec.Meta(
            extra_json_schema={"format": "byte"},
            description="User data for cloud-init at the first boot, in base64; at most 64 KiB.",
        ),
    ] = ""
    ssh_certificate_authority_id: Annotated[
        Id | None, msgspec.Meta(description="Users with a certificate of this authority can log in.")
    ] = None


class RevisionQuery(Parameters, frozen=True):
    """Query for a change of a certain revision."""

    revision: (
        Annotated[
            str,
            msgspec.Meta(
                max_length=100,
                description="The expected `status.revision`; 412 if the desired state has changed since.",
            ),
        ]
        | None
    ) = None


class ServerStatusRead(Wire, frozen=True, kw_only=True):
    """The status of a server."""

    region_id: Annotated[Uuid, msgspec.Meta(description="Region of the server.")]
    network_id: Annotated[Uuid, msgspec.Meta(description="Network of the server.")]
    ssh_certificate_authority_id: Annotated[
        str, msgspec.Meta(description="SSH certificate authority of the server; absent without one.")
    ] = ""
    ssh_injection: Annotated[SshInjectionWire, msgspec.Meta(description="The way by which users log in.")]
    infrastructure_ref: Annotated[str, msgspec.Meta(description="The host on which it must run, if one was named.")] = (
        ""
    )
    power_state: Annotated[
        PowerState | None, msgspec.Meta(description="What the server does; absent before it exists at the provider.")
    ] = None
    private_ip: Annotated[
        str, msgspec.Meta(description="Its IPv4 address on the network; absent before it has one.")
    ] = msgspec.field(default="", name="privateIP")
    public_ip: Annotated[str, msgspec.Meta(description="Its public IPv4 address; absent without one.")] = msgspec.field(
        default="", name="publicIP"
    )
    mac_address: Annotated[str, msgspec.Meta(description="MAC address of its port; absent before it has one.")] = ""
    drift: Annotated[
        str, msgspec.Meta(description="The difference between the server at the provider and its spec, if any.")
    ] = ""
    recreations: Annotated[
        int,
        msgspec.Meta(
            description="How often it disappeared from the provider and was created again, with an empty disk."
        ),
    ] = 0
    replacements: Annotated[
        int, msgspec.Meta(description="How often its replacement was requested and not rolled back.")
    ] = 0
    revision: Annotated[str, msgspec.Meta(description="Changes with the desired state.")]


class ServerRead(Wire, frozen=True):
    """A server."""

    metadata: ProjectMetadataRead
    spec: ServerSpecWire
    status: ServerStatusRead


class ServerSshKeyRead(Wire, frozen=True):
    """The private SSH key of a server."""

    private_key: Annotated[Secret, msgspec.Meta(description="Private key in the format of OpenSSH.")]


class ServerConsoleSessionRead(Wire, frozen=True):
    """A console session in a browser."""

    url: Annotated[str, msgspec.Meta(description="URL of the console, for a browser. It contains a secret.")]


class ServerConsoleOutputRead(Wire, frozen=True, omit_defaults=False):
    """The console output of a server."""

    contents: Annotated[str, msgspec.Meta(description="Last lines that were written to the console.")]


class ServerPath(Parameters, frozen=True, rename={"server": "serverID"}):
    """The path of a server."""

    server: Annotated[Id, msgspec.Meta(description="Id of the server.")]


class ConsoleQuery(Parameters, frozen=True):
    """Query for console output."""

    length: Annotated[int, msgspec.Meta(ge=1, le=100_000, description="Number of lines, from the last.")] | None = None
