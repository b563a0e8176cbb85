"""The auditing room's routes."""

from remuda.http.routes import AnyRoute, Route
from remuda.identity.auditing import handlers, wire
from remuda.identity.auditing.service import READ
from remuda.identity.names import ORGANIZATION, OrganizationPath

_ABOUT = (
    "The latest first, 100 unless `limit` says otherwise. Every write of a known caller is there, whatever came of it, "
    "and so are logins. With filters a page may be short, even empty, and not be the last: only one without "
    "X-Continue is."
)


def routes() -> list[AnyRoute]:
    """Return all of them, with paths below where identity is mounted."""
    return [
        Route(
            method="GET",
            path=f"{ORGANIZATION}/audit",
            name="list_audit",
            summary="List who did what in an organization",
            description=_ABOUT,
            scope="organization",
            permission=READ,
            path_type=OrganizationPath,
            query_type=wire.AuditQuery,
            answer_type=list[wire.EntryRead],
            handler=handlers.list_audit,
        ),
        Route(
            method="GET",
            path="/api/v1/audit",
            name="list_system_audit",
            summary="List who did what that belongs to no organization, or to the one that is named",
            description=_ABOUT,
            scope="everywhere",
            permission=READ,
            query_type=wire.SystemAuditQuery,
            answer_type=list[wire.EntryRead],
            handler=handlers.list_system_audit,
        ),
    ]
