"""What clients of the livery send and read."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from remuda.http.routes import ENCODED_TWICE, Id, ListQuery, Parameters, Wire
from remuda.kernel.secrets import Secret

Name = Annotated[
    str,
    msgspec.Meta(
        pattern="^[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$",
        min_length=1,
        max_length=63,
        description="A name for people, of letters, digits, '-', '_' and '.'.",
    ),
]
Text = Annotated[str, msgspec.Meta(max_length=1024)]
Stalls = Annotated[int, msgspec.Meta(ge=0, le=1000, description="How many mounts the yard takes.")]
Breed = Annotated[str, msgspec.Meta(min_length=1, max_length=63, description="What kind of mount it is.")]
Paddock = Annotated[str, msgspec.Meta(min_length=1, max_length=63, description="Where it grazes.")]

Provisioning = Literal["pending", "provisioning", "provisioned", "deprovisioning", "error"]
Health = Literal["unknown", "healthy", "degraded", "error"]


class TagWire(Wire, frozen=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    value: Annotated[str, msgspec.Meta(max_length=255)]


class MetadataWrite(Wire, frozen=True):
    name: Name
    description: Text = ""
    tags: Annotated[tuple[TagWire, ...], msgspec.Meta(max_length=50)] = ()


class MetadataRead(Wire, frozen=True, kw_only=True):
    id: str
    name: str
    description: str = ""
    tags: tuple[TagWire, ...] = ()
    creation_time: datetime
    created_by: str = ""
    deletion_time: datetime | None = None
    provisioning_status: Provisioning
    health_status: Health
    organization_id: str
    project_id: str


class YardSpecWire(Wire, frozen=True):
    stalls: Stalls


class YardWrite(Wire, frozen=True):
    metadata: MetadataWrite
    spec: YardSpecWire


class YardRead(Wire, frozen=True):
    metadata: MetadataRead
    spec: YardSpecWire


class NewMountSpec(Wire, frozen=True):
    yard_id: Id
    breed: Breed
    paddock: Paddock = "home"


class MountCreate(Wire, frozen=True):
    metadata: MetadataWrite
    spec: NewMountSpec


class MountSpecWire(Wire, frozen=True, omit_defaults=False):
    breed: Breed
    paddock: Paddock = "home"


class MountUpdate(Wire, frozen=True):
    metadata: MetadataWrite
    spec: MountSpecWire


class MountStatusRead(Wire, frozen=True):
    yard_id: str
    operation_id: str = ""
    pasture_id: str = ""
    paddock: str = ""


class MountRead(Wire, frozen=True):
    metadata: MetadataRead
    spec: MountSpecWire
    status: MountStatusRead


class BrandRead(Wire, frozen=True):
    brand: Secret


class TimelineEvent(Wire, frozen=True):
    time: datetime
    event: Annotated[dict[str, Any], msgspec.Meta(description="What happened and what caused it.")]


class OperationRead(Wire, frozen=True):
    id: str
    operation: Annotated[str, msgspec.Meta(description="What it does, such as mount.create.")]
    subject: str
    actor: str
    state: str
    reason: str = ""


class AbandonWrite(Wire, frozen=True):
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1024, description="Why, and what is left behind.")]


class VersionRead(Wire, frozen=True):
    name: str
    version: str


class ProjectPath(Parameters, frozen=True, rename={"organization": "organizationID", "project": "projectID"}):
    organization: Id
    project: Id


class YardPath(
    Parameters, frozen=True, rename={"organization": "organizationID", "project": "projectID", "yard": "yardID"}
):
    organization: Id
    project: Id
    yard: Id


class ReferencePath(
    Parameters, frozen=True, rename={"organization": "organizationID", "project": "projectID", "yard": "yardID"}
):
    organization: Id
    project: Id
    yard: Id
    reference: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=317,
            description=f"Who uses the yard, as plural.group/id. {ENCODED_TWICE}",
        ),
    ]


class MountPath(Parameters, frozen=True, rename={"mount": "mountID"}):
    mount: Id


class OperationPath(Parameters, frozen=True, rename={"operation": "operationID"}):
    operation: Id


class MountQuery(
    ListQuery,
    frozen=True,
    rename={
        "continue_": "continue",
        "organizations": "organizationID",
        "projects": "projectID",
        "yards": "yardID",
    },
):
    tag: Annotated[tuple[str, ...], msgspec.Meta(description="Only those with all of these, as name=value.")] = ()
    organizations: tuple[Id, ...] = ()
    projects: tuple[Id, ...] = ()
    yards: tuple[Id, ...] = ()
