"""Schema of recovery."""

from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Id, ListQuery, Moment, Parameters, Uuid, Wire
from remuda.resources.schema import Name, NetworkId

RecoverableKind = Literal["identities", "networks", "securitygroups", "loadbalancers", "servers", "filestorages"]
"""Kinds of objects that have resources at a provider, by plural."""
OrphanSubject = Literal["tenancy", "network", "group", "port", "server", "balancer", "storage", "image"]
OrphanCause = Literal["ObjectUnknown", "ObjectDeleted", "ObjectAbandoned", "Superseded"]
"""Why a resource is an orphan."""


class RecoverablePath(Parameters, frozen=True, rename={"name": "id"}):
    """An object that a controller cannot reconcile."""

    kind: Annotated[RecoverableKind, msgspec.Meta(description="Kind of the object, by plural.")]
    name: Annotated[Id, msgspec.Meta(description="Id of the object.")]


class OrphanPath(Parameters, frozen=True, rename={"orphan": "orphanID"}):
    """An orphan."""

    orphan: Annotated[Id, msgspec.Meta(description="Id of the record of the orphan.")]


class OrphanQuery(ListQuery, frozen=True, rename={"continue_": "continue", "regions": "regionID"}):
    """Query of a list of orphans."""

    regions: Annotated[tuple[Id, ...], msgspec.Meta(description="Only orphans in these regions.")] = ()


class AbandonWrite(Wire, frozen=True):
    """Reason why an object is deleted without its resources at the provider."""

    reason: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=255,
            description="Recorded in the timeline and with the orphans.",
            examples=["The hardware was returned to its owner."],
        ),
    ]


class AdoptWrite(Wire, frozen=True):
    """Name and network of the server that an orphan is."""

    name: Annotated[Name, msgspec.Meta(description="The name that the server had; its id is derived from it.")]
    network_id: NetworkId


class ForgetWrite(Wire, frozen=True):
    """Deletion of a record, or of the orphan too."""

    remove: Annotated[
        bool,
        msgspec.Meta(
            description="Delete the orphan at the provider; its record is deleted after it.", examples=[False]
        ),
    ] = False


class OrphanRead(Wire, frozen=True, kw_only=True):
    """Resource at a provider that belongs to no object."""

    id: Annotated[Uuid, msgspec.Meta(description="Id of the record.")]
    region_id: Annotated[Uuid, msgspec.Meta(description="Region of the resource.")]
    subject: Annotated[OrphanSubject, msgspec.Meta(description="Type of the resource.")]
    name: Annotated[str, msgspec.Meta(description="Name at the provider.")]
    tenancy: Annotated[str, msgspec.Meta(description="Tenancy at the provider, if it is in one.")] = ""
    object_id: Annotated[str, msgspec.Meta(description="Object that it was created for.")] = ""
    object_uid: Annotated[
        str, msgspec.Meta(description="Uid of that object: several objects may have had the same id.")
    ] = ""
    first_seen: Annotated[Moment, msgspec.Meta(description="Time at which it was found.")]
    cause: Annotated[OrphanCause, msgspec.Meta(description="Why it is an orphan.")]
    reason: Annotated[str, msgspec.Meta(description="Reason of the operator who abandoned the object.")] = ""
