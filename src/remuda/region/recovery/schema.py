"""What operators send and read."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Id, ListQuery, Parameters, Wire
from remuda.resources.schema import Name

RecoverableKind = Literal["identities", "networks", "securitygroups", "loadbalancers", "servers", "filestorages"]
"""The kinds of objects that have resources at a provider, by the plural under which they are stored."""
OrphanSubject = Literal["tenancy", "network", "group", "port", "server", "balancer", "storage", "image"]
"""What something at a provider is."""
OrphanWhy = Literal["ObjectUnknown", "ObjectLetGo", "ObjectAbandoned", "Superseded"]
"""Why it is nobody's."""


class RecoverablePath(Parameters, frozen=True, rename={"name": "id"}):
    """An object that a controller cannot reconcile."""

    kind: RecoverableKind
    name: Id


class OrphanPath(Parameters, frozen=True, rename={"orphan": "orphanID"}):
    """An orphan."""

    orphan: Id


class OrphanQuery(ListQuery, frozen=True, rename={"continue_": "continue", "regions": "regionID"}):
    """Which orphans."""

    regions: Annotated[tuple[Id, ...], msgspec.Meta(description="Only in these regions.")] = ()


class AbandonWrite(Wire, frozen=True):
    """Why an object goes without what it has at its provider."""

    reason: Annotated[
        str,
        msgspec.Meta(min_length=1, max_length=255, description="Kept in the timeline, and with what is left."),
    ]


class AdoptWrite(Wire, frozen=True):
    """Which server an orphan was: its name, and the network that it is on."""

    name: Annotated[Name, msgspec.Meta(description="The name that the server had: its id follows from it.")]
    network_id: Id


class ForgetWrite(Wire, frozen=True):
    """What becomes of an orphan."""

    remove: Annotated[
        bool,
        msgspec.Meta(description="Remove it at the provider; its record goes when it is gone."),
    ] = False


class OrphanRead(Wire, frozen=True, kw_only=True):
    """Something at a provider that is nobody's."""

    id: str
    region_id: str
    subject: OrphanSubject
    name: Annotated[str, msgspec.Meta(description="What it is called at the provider.")]
    tenancy: Annotated[str, msgspec.Meta(description="The tenancy that has it; left out for what is in none.")] = ""
    object_id: Annotated[str, msgspec.Meta(description="The object that it was made for.")] = ""
    object_uid: str = ""
    first_seen: datetime
    why: OrphanWhy
    reason: Annotated[str, msgspec.Meta(description="What the operator said who abandoned it.")] = ""
