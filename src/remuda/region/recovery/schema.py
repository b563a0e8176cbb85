"""Schema of recovery."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Id, ListQuery, Parameters, Wire
from remuda.resources.schema import Name

RecoverableKind = Literal["identities", "networks", "securitygroups", "loadbalancers", "servers", "filestorages"]
"""Kinds of objects that have resources at a provider, by plural."""
OrphanSubject = Literal["tenancy", "network", "group", "port", "server", "balancer", "storage", "image"]
OrphanCause = Literal["ObjectUnknown", "ObjectDeleted", "ObjectAbandoned", "Superseded"]
"""Why a resource is an orphan."""


class RecoverablePath(Parameters, frozen=True, rename={"name": "id"}):
    """An object that a controller cannot reconcile."""

    kind: RecoverableKind
    name: Id


class OrphanPath(Parameters, frozen=True, rename={"orphan": "orphanID"}):
    """An orphan."""

    orphan: Id


class OrphanQuery(ListQuery, frozen=True, rename={"continue_": "continue", "regions": "regionID"}):
    """Query of a list of orphans."""

    regions: Annotated[tuple[Id, ...], msgspec.Meta(description="Only orphans in these regions.")] = ()


class AbandonWrite(Wire, frozen=True):
    """Reason why an object is deleted without its resources at the provider."""

    reason: Annotated[
        str, msgspec.Meta(min_length=1, max_length=255, description="Recorded in the timeline and with the orphans.")
    ]


class AdoptWrite(Wire, frozen=True):
    """Name and network of the server that an orphan is."""

    name: Annotated[Name, msgspec.Meta(description="The name that the server had; its id is derived from it.")]
    network_id: Id


class ForgetWrite(Wire, frozen=True):
    """Deletion of a record, or of the orphan too."""

    remove: Annotated[
        bool, msgspec.Meta(description="Delete the orphan at the provider; its record is deleted after it.")
    ] = False


class OrphanRead(Wire, frozen=True, kw_only=True):
    """Resource at a provider that belongs to no object."""

    id: str
    region_id: str
    subject: OrphanSubject
    name: Annotated[str, msgspec.Meta(description="Name at the provider.")]
    tenancy: Annotated[str, msgspec.Meta(description="Tenancy at the provider, if it is in one.")] = ""
    object_id: Annotated[str, msgspec.Meta(description="Object that it was created for.")] = ""
    object_uid: str = ""
    first_seen: datetime
    cause: OrphanCause
    reason: Annotated[str, msgspec.Meta(description="Reason of the operator who abandoned the object.")] = ""
