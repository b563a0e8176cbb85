"""The auditing room's handlers: each asks the service and renders what it says."""

import msgspec

from remuda.http.pagination import page_headers
from remuda.http.responses import Rendered
from remuda.http.routes import Call, Nothing
from remuda.identity.auditing import wire
from remuda.identity.auditing.service import Auditing, AuditPage
from remuda.identity.names import OrganizationPath


async def list_audit(
    auditing: Auditing, call: Call[OrganizationPath, wire.AuditQuery, Nothing]
) -> Rendered[list[wire.EntryRead]]:
    """List what was done in an organization."""
    return _rendered(await auditing.of_organization(call.context, call.path.organization, call.query), call.query)


async def list_system_audit(
    auditing: Auditing, call: Call[Nothing, wire.SystemAuditQuery, Nothing]
) -> Rendered[list[wire.EntryRead]]:
    """List what belongs to no organization, or to the one that is named."""
    return _rendered(await auditing.of_system(call.context, call.query), call.query)


def _rendered(page: AuditPage, query: wire.AuditQuery) -> Rendered[list[wire.EntryRead]]:
    return Rendered(msgspec.json.encode(page.entries), headers=page_headers(query, page.next))
