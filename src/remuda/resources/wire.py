"""Metadata as clients send and read it, the same for every resource."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from remuda.http.routes import Wire

Name = Annotated[
    str,
    msgspec.Meta(
        pattern="^[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$",
        min_length=1,
        max_length=63,
        description="A name for people, of letters, digits, '-', '_' and '.'.",
    ),
]
"""A name for people that also fits a label."""
Text = Annotated[str, msgspec.Meta(max_length=4096)]
"""A page at most."""
Provisioning = Literal["pending", "provisioning", "provisioned", "deprovisioning", "error"]
"""How far an object's intent has become true."""
Health = Literal["unknown", "healthy", "degraded", "error"]
"""How an object is doing."""


class TagWire(Wire, frozen=True):
    """A name with a value, both chosen by the user."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    value: Annotated[str, msgspec.Meta(max_length=1024)]


class MetadataWrite(Wire, frozen=True):
    """What clients say about a resource besides its spec."""

    name: Name
    description: Text | msgspec.UnsetType = msgspec.UNSET
    tags: Annotated[tuple[TagWire, ...], msgspec.Meta(max_length=256)] = ()


class Detail(Wire, frozen=True):
    """Why a status is what it is."""

    reason: str
    message: str


class StaticMetadataRead(Wire, frozen=True, kw_only=True):
    """What clients read about something that a provider has and we do not store."""

    id: str
    name: Annotated[str, msgspec.Meta(description="A name for people, as the provider has it.")]
    description: str = ""
    tags: tuple[TagWire, ...] = ()
    creation_time: datetime
    created_by: str = ""
    modified_time: datetime | None = None
    modified_by: str = ""


class MetadataRead(Wire, frozen=True, kw_only=True):
    """What clients read about a resource of the whole system."""

    id: str
    name: Name
    description: str | msgspec.UnsetType = msgspec.UNSET
    tags: tuple[TagWire, ...] = ()
    creation_time: datetime
    created_by: str = ""
    modified_time: datetime | None = None
    modified_by: str = ""
    deletion_time: datetime | None = None
    provisioning_status: Provisioning
    provisioning_status_detail: Detail | None = None
    health_status: Health
    health_status_detail: Detail | None = None


class OrganizationMetadataRead(MetadataRead, frozen=True, kw_only=True):
    """What clients read about a resource of an organization."""

    organization_id: str


class ProjectMetadataRead(OrganizationMetadataRead, frozen=True, kw_only=True):
    """What clients read about a resource of a project."""

    project_id: str


class VersionRead(Wire, frozen=True, omit_defaults=False):
    """Which service answers, and which release of it."""

    name: str
    version: str
