"""Schema of servers."""

from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Id, Parameters, Wire
from remuda.kernel.secrets import Secret
from remuda.resources.schema import MetadataWrite, ProjectMetadataRead

PowerState = Literal["Pending", "Queued", "Building", "Running", "Stopping", "Stopped"]
SshInjectionWire = Literal["ca", "identityKeypair", "none"]
"""The way by which users log in."""


class NetworkingWire(Wire, frozen=True):
    """The networking of a server."""

    security_groups: Annotated[tuple[Id, ...], msgspec.Meta(max_length=64)] = ()
    public_ip: Annotated[bool, msgspec.Meta(description="Whether it has a public address.")] = msgspec.field(
        default=False, name="publicIP"
    )
    allowed_source_addresses: Annotated[
        tuple[str, ...],
        msgspec.Meta(max_length=64, description="Further IPv4 source prefixes, such as those of a VPN."),
    ] = ()


class ServerSpecWire(Wire, frozen=True, kw_only=True):
    """The writable spec of a server."""

    flavor_id: Id
    image_id: Annotated[Id, msgspec.Meta(description="Another one rebuilds the server; data on its root disk is lost.")]
    networking: NetworkingWire | None = None
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

    network_id: Id
    ssh_certificate_authority_id: Id | None = None
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

    flavor_id: Id
    image_id: Id
    user_data: Annotated[str, msgspec.Meta(extra_json_schema={"format": "byte"})] = ""
    ssh_certificate_authority_id: Id | None = None


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


class SshKeyRead(Wire, frozen=True):
    """The private SSH key of a server."""

    private_key: Secret


class ConsoleSessionRead(Wire, frozen=True):
    """A console session in a browser."""

    url: str


class ConsoleOutputRead(Wire, frozen=True, omit_defaults=False):
    """The console output of a server."""

    contents: str


class ServerPath(Parameters, frozen=True, rename={"server": "serverID"}):
    """The path of a server."""

    server: Id


class ConsoleQuery(Parameters, frozen=True):
    """Query for console output."""

    length: Annotated[int, msgspec.Meta(ge=1, le=100_000, description="Number of lines, from the last.")] | None = None
