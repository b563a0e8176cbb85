"""What clients ask of the audit, and what they read."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from remuda.http.audit import Actor, Component, Operation, Result, Target
from remuda.http.routes import Id, PageQuery, Wire

Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class AuditQuery(PageQuery, frozen=True, rename={"continue_": "continue", "resource_id": "resourceID"}):
    """Which of the records."""

    actor: Annotated[str, msgspec.Meta(description="Who did it, or for whom it was done.")] | None = None
    resource: Annotated[str, msgspec.Meta(description="What it was about, as paths have it: `projects`.")] | None = None
    resource_id: Annotated[str, msgspec.Meta(description="Which one of these.")] | None = None
    since: Annotated[Moment, msgspec.Meta(description="Not before this moment.")] | None = None
    until: Annotated[Moment, msgspec.Meta(description="Not after this moment.")] | None = None
    status: (
        Annotated[
            str, msgspec.Meta(pattern="^[1-5]([0-9]{2}|xx)$", description="How it ended: a status, or all such as 4xx.")
        ]
        | None
    ) = None


class SystemAuditQuery(
    AuditQuery,
    frozen=True,
    rename={"continue_": "continue", "resource_id": "resourceID", "organization": "organizationID"},
):
    """Which of the records, and whose: the system's own, unless an organization is named."""

    organization: Annotated[Id, msgspec.Meta(description="Whose records; without it, what belongs to none.")] | None = (
        None
    )


class EntryRead(Wire, frozen=True):
    """Who did what to which object, for whom, and how it ended."""

    time: datetime
    actor: Annotated[
        Actor,
        msgspec.Meta(description="Whose credentials; for whom, if for somebody else; the service that acted."),
    ]
    operation: Operation
    resource: Target
    result: Result
    scope: Annotated[
        Mapping[str, str], msgspec.Meta(description="Where: the parameters of the path, and who pays if that was said.")
    ]
    component: Component
    trace_id: Annotated[str, msgspec.Meta(description="Names the request in logs and traces.")] = msgspec.field(
        name="traceID"
    )
