"""Schemas of instances."""

from typing import Annotated

import msgspec

from remuda.compute.kinds import PowerState
from remuda.compute.plans.schema import PlanHash
from remuda.http.schema import Id, Parameters, Uuid, Wire
from remuda.kernel.secrets import Secret
from remuda.resources.schema import MetadataWrite, OrganizationId, ProjectId, ProjectMetadataRead


class InstanceNetworkingWire(Wire, frozen=True):
    """The networking of an instance."""

    security_groups: Annotated[
        tuple[Id, ...],
        msgspec.Meta(max_length=64, description="Security groups of the network, whose rules allow traffic."),
    ] = ()
    public_ip: (
        Annotated[bool, msgspec.Meta(description="The instance has a public address.", examples=[True])] | None
    ) = msgspec.field(default=None, name="publicIP")
    allowed_source_addresses: Annotated[
        tuple[str, ...],
        msgspec.Meta(
            max_length=64, description="Further IPv4 prefixes that the instance may send from, such as those of a VPN."
        ),
    ] = ()


class ProtectionWire(Wire, frozen=True, omit_defaults=False):
    """The protection of an instance."""

    deletion: Annotated[bool, msgspec.Meta(description="The instance cannot be deleted while this is set.")] = False
    plan: Annotated[
        bool, msgspec.Meta(description="An update that destroys data has to carry the hash of its plan.")
    ] = False


class InstanceSpecWire(Wire, frozen=True, kw_only=True):
    """The specification of an instance."""

    flavor_id: Annotated[
        Id,
        msgspec.Meta(
            description="A different flavor replaces the server: the root disk is lost.",
            examples=["a1f0c0de-0001-4000-8000-000000000001"],
        ),
    ]
    image_id: Annotated[
        Id,
        msgspec.Meta(
            description="A different image rebuilds the server: the root disk is lost.",
            examples=["b1f0c0de-0006-4000-8000-000000000006"],
        ),
    ]
    networking: Annotated[InstanceNetworkingWire | None, msgspec.Meta(examples=[{"publicIP": True}])] = None
    ssh_certificate_authority_id: (
        Annotated[Id, msgspec.Meta(description="Users with a certificate of this authority can log in.")] | None
    ) = None
    user_data: Annotated[
        str,
        msgspec.Meta(
            description="Input of cloud-init at the first start of the instance, in base64; 64 KiB at most. It is "
            "shown only to callers who may update the instance. An update without it removes it.",
            extra_json_schema={"format": "byte"},
        ),
    ] = ""
    protection: ProtectionWire | None = None


class InstanceCreateSpec(InstanceSpecWire, frozen=True, kw_only=True):
    """The specification of a new instance."""

    organization_id: OrganizationId
    project_id: ProjectId
    network_id: Annotated[
        Id,
        msgspec.Meta(
            description="A network of the project. The instance is in its region.",
            examples=["a7c3e5f1-2b4d-4e6f-8a9b-0c1d2e3f4a01"],
        ),
    ]


class InstanceCreate(Wire, frozen=True):
    """A request for a new instance."""

    metadata: MetadataWrite
    spec: InstanceCreateSpec


class InstanceUpdate(Wire, frozen=True):
    """An update of an instance. Protection that is left out stays unchanged."""

    metadata: MetadataWrite
    spec: InstanceSpecWire


class InstanceStatusRead(Wire, frozen=True, kw_only=True):
    """The status of an instance."""

    region_id: Annotated[Uuid, msgspec.Meta(description="Region of the instance.")]
    network_id: Annotated[Uuid, msgspec.Meta(description="Network of the instance.")]
    power_state: Annotated[
        PowerState | None, msgspec.Meta(description="What the server of the instance does; absent before it has one.")
    ] = None
    private_ip: Annotated[
        str, msgspec.Meta(description="Its IPv4 address on the network; absent before it has one.")
    ] = msgspec.field(default="", name="privateIP")
    public_ip: Annotated[str, msgspec.Meta(description="Its public IPv4 address; absent without one.")] = msgspec.field(
        default="", name="publicIP"
    )
    mac_address: Annotated[str, msgspec.Meta(description="MAC address of its port; absent before it has one.")] = ""
    rebuilds: Annotated[int, msgspec.Meta(description="How often its rebuild was requested.")] = 0


class InstanceRead(Wire, frozen=True):
    """An instance."""

    metadata: ProjectMetadataRead
    spec: InstanceSpecWire
    status: InstanceStatusRead


class InstanceSnapshotCreate(Wire, frozen=True):
    """A request for a snapshot of an instance, which is an image."""

    metadata: Annotated[MetadataWrite, msgspec.Meta(description="Tags that are reserved for services are dropped.")]


class InstanceSshKeyRead(Wire, frozen=True):
    """The private SSH key of an instance."""

    private_key: Annotated[Secret, msgspec.Meta(description="Private key in the format of OpenSSH.")]


class InstanceConsoleSessionRead(Wire, frozen=True):
    """The address of an instance's console, for a browser."""

    url: Annotated[str, msgspec.Meta(description="URL of the console, for a browser. It contains a secret.")]


class InstanceConsoleOutputRead(Wire, frozen=True, omit_defaults=False):
    """The console output of an instance."""

    contents: Annotated[str, msgspec.Meta(description="Last lines that were written to the console.")]


class RebootQuery(Parameters, frozen=True):
    """Options of a reboot."""

    hard: Annotated[
        bool, msgspec.Meta(description="Cut the power instead of asking the operating system to reboot.")
    ] = False


class ConsoleQuery(Parameters, frozen=True):
    """Options of console output."""

    length: (
        Annotated[int, msgspec.Meta(ge=1, le=100_000, description="The number of lines, counted from the last.")] | None
    ) = None


class UpdateQuery(Parameters, frozen=True, rename={"dry_run": "dryRun"}):
    """Options of an update, or of a rebuild."""

    dry_run: Annotated[bool, msgspec.Meta(description="Change nothing, and respond with the plan.")] = False
    plan: (
        Annotated[
            PlanHash,
            msgspec.Meta(description="The hash of the plan to carry out: 409 if the plan is a different one by now."),
        ]
        | None
    ) = None
