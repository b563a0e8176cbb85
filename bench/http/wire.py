"""What clients of the measured API send and read: a machine, as large as the read view of a real instance."""

from datetime import datetime
from typing import Annotated

import msgspec

from bench.kinds import NAME, NETWORK, ORGANIZATION, PROJECT, REGION, Machine, MachineSpec, Networking
from remuda.http.responses import etag_view
from remuda.http.schema import Id, Parameters, Wire
from remuda.kernel.tags import Tag
from remuda.store.objects import Metadata

__all__ = ["VIEW", "MachinePath", "MachineRead", "MachineWrite", "OrganizationPath", "ProjectPath", "new", "read_of"]

Name = Annotated[str, msgspec.Meta(pattern="^[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$", max_length=63)]


class TagWire(Wire, frozen=True):
    """A tag."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    value: Annotated[str, msgspec.Meta(max_length=255)]


class NetworkingWire(Wire, frozen=True):
    """How a machine is reached."""

    public_ip: bool = msgspec.field(default=False, name="publicIP")
    security_groups: tuple[Id, ...] = ()
    allowed_source_addresses: tuple[str, ...] = ()


class SpecWire(Wire, frozen=True):
    """What is wanted of a machine."""

    flavor_id: Id
    image_id: Id
    networking: NetworkingWire = NetworkingWire()


class MetadataWrite(Wire, frozen=True):
    """What a client says about a machine."""

    name: Name
    tags: Annotated[tuple[TagWire, ...], msgspec.Meta(max_length=50)] = ()


class MachineWrite(Wire, frozen=True):
    """What a client sends."""

    metadata: MetadataWrite
    spec: SpecWire


class MetadataRead(Wire, frozen=True):
    """What a client is told about a machine."""

    id: str
    name: str
    tags: tuple[TagWire, ...]
    creation_time: datetime | None
    provisioning_status: str
    health_status: str
    organization_id: str
    project_id: str


class StatusRead(Wire, frozen=True):
    """What a machine is."""

    region_id: str
    network_id: str
    private_ip: str = msgspec.field(name="privateIP")


class MachineRead(Wire, frozen=True):
    """What a client reads."""

    metadata: MetadataRead
    spec: SpecWire
    status: StatusRead


class OrganizationPath(Parameters, frozen=True, rename={"organization": "organizationID"}):
    """Where an organization's machines are."""

    organization: Id


class ProjectPath(Parameters, frozen=True, rename={"organization": "organizationID", "project": "projectID"}):
    """Where a project's machines are."""

    organization: Id
    project: Id


class MachinePath(
    Parameters, frozen=True, rename={"organization": "organizationID", "project": "projectID", "machine": "machineID"}
):
    """Where one machine is."""

    organization: Id
    project: Id
    machine: Id


def read_of(machine: Machine) -> MachineRead:
    """Return a machine as clients read it."""
    labels = machine.metadata.labels
    metadata = MetadataRead(
        id=machine.name,
        name=labels[NAME],
        tags=_tags(machine),
        creation_time=machine.metadata.creation_timestamp,
        provisioning_status="provisioned",
        health_status="healthy",
        organization_id=labels[ORGANIZATION],
        project_id=labels[PROJECT],
    )
    status = StatusRead(
        region_id=labels.get(REGION, ""), network_id=labels.get(NETWORK, ""), private_ip=machine.status.private_ip
    )
    return MachineRead(metadata=metadata, spec=_spec(machine), status=status)


def new(name: str, path: ProjectPath, wanted: MachineWrite) -> Machine:
    """Return the machine that a client asks for."""
    labels = {ORGANIZATION: path.organization, PROJECT: path.project, NAME: wanted.metadata.name}
    networking = wanted.spec.networking
    spec = MachineSpec(
        flavor_id=wanted.spec.flavor_id,
        image_id=wanted.spec.image_id,
        networking=Networking(
            public_ip=networking.public_ip,
            security_groups=networking.security_groups,
            allowed_source_addresses=networking.allowed_source_addresses,
        ),
        tags=tuple(Tag(tag.name, tag.value) for tag in wanted.metadata.tags),
    )
    return Machine(metadata=Metadata(name=name, labels=labels), spec=spec)


def _tags(machine: Machine) -> tuple[TagWire, ...]:
    return tuple(TagWire(name=tag.name, value=tag.value) for tag in machine.spec.tags)


def _spec(machine: Machine) -> SpecWire:
    networking = machine.spec.networking
    return SpecWire(
        flavor_id=machine.spec.flavor_id,
        image_id=machine.spec.image_id,
        networking=NetworkingWire(
            public_ip=networking.public_ip,
            security_groups=networking.security_groups,
            allowed_source_addresses=networking.allowed_source_addresses,
        ),
    )


def _writable(machine: Machine) -> MachineWrite:
    metadata = MetadataWrite(name=machine.metadata.labels[NAME], tags=_tags(machine))
    return MachineWrite(metadata=metadata, spec=_spec(machine))


VIEW = etag_view(read_of, _writable)
"""How the store renders a machine, with its ETag in front."""
