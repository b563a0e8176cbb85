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
from typing import Annotated

import msgspec

from remuda.access.checks import require_everywhere, require_in_organization
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
from remuda.http.list_cache import array
from remuda.http.page_reads import PageRead, Reading
from remuda.http.pagination import PageTokens, page_headers
from remuda.http.responses import Rendered
from remuda.http.routes import AnyRoute, Route
from remuda.http.schema import Id, Moment, PageQuery, Wire
from remuda.identity.names import ORGANIZATION, permission
from remuda.kernel.clock import yield_to_loop
from remuda.kernel.fields import common_fields
from remuda.kernel.sealing import Sealer
from remuda.resources.schema import OrganizationPath
from remuda.store.logs import Entry, Log


class AuditQuery(PageQuery, frozen=True, rename={"continue_": "continue", "resource_id": "resourceID"}):
    """Filter of audit records."""

    actor: Annotated[str, msgspec.Meta(description="Subject, actor, service or account name.")] | None = None
    resource: Annotated[str, msgspec.Meta(description="Type of the resource, as in paths: `projects`.")] | None = None
    resource_id: Annotated[str, msgspec.Meta(description="Id of the resource.")] | None = None
    since: Annotated[Moment, msgspec.Meta(description="Not before this time.")] | None = None
    until: Annotated[Moment, msgspec.Meta(description="Not after this time.")] | None = None
    status: (
        Annotated[
            str, msgspec.Meta(pattern="^[1-5]([0-9]{2}|xx)$", description="Status of the response, such as 404 or 4xx.")
        ]
        | None
    ) = None


class SystemAuditQuery(
    AuditQuery,
    frozen=True,
    rename={"continue_": "continue", "resource_id": "resourceID", "organization": "organizationID"},
):
    """Filter of audit records of the system, or of an organization."""

    organization: (
        Annotated[Id, msgspec.Meta(description="Organization of the records; without it, those of the system.")] | None
    ) = None


class EntryRead(Wire, frozen=True):
    """Audit record: actor, operation, resource and result."""

    time: Annotated[Moment, msgspec.Meta(description="Time of the request.")]
    actor: Annotated[
        Actor, msgspec.Meta(description="Subject of the credentials, the actor it acted for, and the service.")
    ]
    operation: AuditOperation
    resource: AuditTarget
    result: AuditResult
    scope: Annotated[Mapping[str, str], msgspec.Meta(description="Parameters of the path, and the payer if given.")]
    component: Component
    trace_id: Annotated[str, msgspec.Meta(description="Id of the request in logs and traces.")] = msgspec.field(
        name="traceID"
    )


_DECODE = msgspec.json.Decoder(AuditRecord).decode
_SAME_FIELDS = common_fields(AuditRecord, EntryRead)


def read_entry(entry: Entry) -> EntryRead:
    return EntryRead(time=entry.time, **_SAME_FIELDS(_DECODE(entry.data)))


def matches(read: EntryRead, query: AuditQuery) -> bool:
    return (
        (query.actor is None or query.actor in _names(read.actor))
        and (query.resource is None or query.resource == read.resource.type)
        and (query.resource_id is None or query.resource_id == read.resource.id)
        and (query.until is None or read.time <= query.until)
        and (query.status is None or _has_status(read.result.status, query.status))
    )


def _names(actor: Actor) -> set[str | None]:
    return {actor.subject, actor.actor, actor.service, actor.name}


def is_too_old(entry: Entry, query: AuditQuery) -> bool:
    """Return whether a record, and so every earlier one, is from before the time of a query."""
    return query.since is not None and entry.time < query.since


def _has_status(status: int, status_filter: str) -> bool:
    return str(status)[0] == status_filter[0] if status_filter.endswith("xx") else str(status) == status_filter


READ = permission("organizations", "read")
"""Permission to read an organization, which includes its audit log."""

_DEFAULT_LIMIT = 100
_SCAN_FACTOR = 10
_SLICE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLog:
    """Service of the audit records of all components."""

    log: Log
    sealer: Sealer

    async def of_organization(
        self, context: Context, organization: str, query: AuditQuery
    ) -> PageRead[list[EntryRead]]:
        require_in_organization(context.principal, READ, organization)
        return self._page(context, subject_of_organization(organization), query)

    async def of_system(self, context: Context, query: SystemAuditQuery) -> PageRead[list[EntryRead]]:
        require_everywhere(context.principal, READ)
        return self._page(context, subject_of_organization(query.organization), query)

    def _page(self, context: Context, subject: str, query: AuditQuery) -> PageRead[list[EntryRead]]:
        tokens = PageTokens(self.sealer, path=f"{STREAM}/{subject}", caller=context.principal.caller)
        before = None if query.continue_ is None else tokens.read_position(query.continue_)

        async def read(reading: Reading) -> Rendered[list[EntryRead]]:
            async with reading.page(query.limit or _DEFAULT_LIMIT):
                records, position = await self._scan(subject, query, before, reading)
                next_token = None if position is None else tokens.write_position(position)
                return Rendered(array(records), headers=page_headers(query, next_token))

        return PageRead(read)

    async def _scan(
        self, subject: str, query: AuditQuery, position: int | None, reading: Reading
    ) -> tuple[list[bytes], int | None]:
        """Return the matching records before a position, as JSON, and where to continue, if there are more."""
        limit = query.limit or _DEFAULT_LIMIT
        found: list[bytes] = []
        remaining = _SCAN_FACTOR * limit
        page_size = min(limit, _SLICE)
        while True:
            page = await self.log.read_back(STREAM, subject, before=position, limit=min(page_size, remaining))
            reading.count(len(page.entries))
            for entry in page.entries:
                if is_too_old(entry, query):
                    return found, None
                read = read_entry(entry)
                if matches(read, query):
                    found.append(msgspec.json.encode(read))  # the decoded record takes ten times as much
                if len(found) == limit:
                    is_last = page.next is None and entry is page.entries[-1]
                    return found, None if is_last else entry.position
            position, remaining = page.next, remaining - len(page.entries)
            if position is None or remaining == 0:
                return found, position
            await yield_to_loop()


_ABOUT = (
    "The latest first, 100 unless `limit` is given. Includes every write of an authenticated caller, whatever its "
    "result, and logins. With filters a page may be short, even empty, without being the last: the last page is the "
    "one without X-Continue."
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
        service=AuditLog,
        calls=AuditLog.of_organization,
    ),
    Route(
        method="GET",
        path="/api/v1/audit",
        name="list_system_audit",
        summary="List the audit records of the system, or of an organization",
        description=_ABOUT,
        scope="everywhere",
        permission=READ,
        query_type=SystemAuditQuery,
        response_type=list[EntryRead],
        service=AuditLog,
        calls=AuditLog.of_system,
    ),
]
