"""Audit log API: who did what to which object, on whose behalf, and with which result; the latest first.

The records of an organization are readable for callers who may read the organization. They stay readable after it was
deleted for callers who may read every organization. So are the records of the system, which belong to no organization:
system-wide writes and the attempts of callers who could not be authenticated.

A page examines at most ten times its limit of records, a hundred at a time, and yields to the event loop in between.
With filters it may be short, even empty, and not be the last. `continue` names the last record that was examined. It is
sealed for the caller and the records that it was issued for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import msgspec

from remuda.access.checks import allow_everywhere, allow_in_organization
from remuda.access.principal import Context
from remuda.http.audit import (
    STREAM,
    Actor,
    AuditOperation,
    AuditRecord,
    AuditResult,
    AuditTarget,
    Component,
    subject_of_organization,
)
from remuda.http.pagination import PageTokens, page_headers
from remuda.http.responses import Rendered
from remuda.http.routes import AnyRoute, Id, PageQuery, Route, Wire
from remuda.identity.names import ORGANIZATION, OrganizationPath, permission
from remuda.kernel.clock import yield_to_loop
from remuda.kernel.sealing import Sealer
from remuda.store.logs import Entry, Log

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
    operation: AuditOperation
    resource: AuditTarget
    result: AuditResult
    scope: Annotated[
        Mapping[str, str], msgspec.Meta(description="Where: the parameters of the path, and who pays if that was said.")
    ]
    component: Component
    trace_id: Annotated[str, msgspec.Meta(description="Names the request in logs and traces.")] = msgspec.field(
        name="traceID"
    )


_DECODE = msgspec.json.Decoder(AuditRecord).decode


def read_entry(entry: Entry) -> EntryRead:
    """Return a record as clients read it."""
    record = _DECODE(entry.data)
    return EntryRead(
        time=entry.time,
        actor=record.actor,
        operation=record.operation,
        resource=record.resource,
        result=record.result,
        scope=record.scope,
        component=record.component,
        trace_id=record.trace_id,
    )


def is_wanted(read: EntryRead, query: AuditQuery) -> bool:
    """Tell whether a record is one that a query means."""
    return (
        (query.actor is None or query.actor in {read.actor.subject, read.actor.actor, read.actor.service})
        and (query.resource is None or query.resource == read.resource.type)
        and (query.resource_id is None or query.resource_id == read.resource.id)
        and (query.until is None or read.time <= query.until)
        and (query.status is None or _has_status(read.result.status, query.status))
    )


def is_too_old(entry: Entry, query: AuditQuery) -> bool:
    """Tell whether a record, and so every one before it, is from before the time that a query means."""
    return query.since is not None and entry.time < query.since


def _has_status(status: int, wanted: str) -> bool:
    return str(status)[0] == wanted[0] if wanted.endswith("xx") else str(status) == wanted


READ = permission("organizations", "read")
"""Who may read an organization may read what was done in it."""

_DEFAULT_LIMIT = 100
_LOOKS = 10
_SLICE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Auditing:
    """The records of every component that writes to this log."""

    log: Log
    sealer: Sealer

    async def of_organization(
        self, context: Context, organization: str, query: AuditQuery
    ) -> Rendered[list[EntryRead]]:
        allow_in_organization(context.principal, READ, organization)
        return await self._page(context, subject_of_organization(organization), query)

    async def of_system(self, context: Context, query: SystemAuditQuery) -> Rendered[list[EntryRead]]:
        allow_everywhere(context.principal, READ)
        return await self._page(context, subject_of_organization(query.organization), query)

    async def _page(self, context: Context, subject: str, query: AuditQuery) -> Rendered[list[EntryRead]]:
        tokens = PageTokens(self.sealer, path=f"{STREAM}/{subject}", caller=context.principal.caller)
        place = None if query.continue_ is None else tokens.read_position(query.continue_)
        entries, place = await self._look(subject, query, place)
        following = None if place is None else tokens.write_position(place)
        return Rendered(msgspec.json.encode(entries), headers=page_headers(query, following))

    async def _look(self, subject: str, query: AuditQuery, place: int | None) -> tuple[list[EntryRead], int | None]:
        """Return what a query means of the records before a place, and where to go on, if there is more."""
        limit = query.limit or _DEFAULT_LIMIT
        found: list[EntryRead] = []
        left = _LOOKS * limit
        at_once = min(limit, _SLICE)
        while True:
            page = await self.log.read_back(STREAM, subject, before=place, limit=min(at_once, left))
            for entry in page.entries:
                if is_too_old(entry, query):
                    return found, None
                read = read_entry(entry)
                if is_wanted(read, query):
                    found.append(read)
                if len(found) == limit:
                    is_last = page.next is None and entry is page.entries[-1]
                    return found, None if is_last else entry.position
            place, left = page.next, left - len(page.entries)
            if place is None or left == 0:
                return found, place
            await yield_to_loop()


_ABOUT = (
    "The latest first, 100 unless `limit` says otherwise. Every write of a known caller is there, whatever came of it, "
    "and so are logins. With filters a page may be short, even empty, and not be the last: only one without "
    "X-Continue is."
)


ROUTES: list[AnyRoute] = [
    Route(
        method="GET",
        path=f"{ORGANIZATION}/audit",
        name="list_audit",
        summary="List the audit records of an organization",
        description=_ABOUT,
        scope="organization",
        permission=READ,
        path_type=OrganizationPath,
        query_type=AuditQuery,
        response_type=list[EntryRead],
        service=Auditing,
        calls=Auditing.of_organization,
    ),
    Route(
        method="GET",
        path="/api/v1/audit",
        name="list_system_audit",
        summary="List the audit records of no organization, or of the one that is named",
        description=_ABOUT,
        scope="everywhere",
        permission=READ,
        query_type=SystemAuditQuery,
        response_type=list[EntryRead],
        service=Auditing,
        calls=Auditing.of_system,
    ),
]
