"""Routes of roles, access lists and revocations."""

from remuda.http.routes import AnyRoute, Route
from remuda.http.schema import ListQuery, NameQuery, Nothing
from remuda.identity.names import ORGANIZATION
from remuda.identity.rbac.schema import AclRead, RevocationRead, RoleRead
from remuda.identity.rbac.service import READ_REVOCATIONS, READ_ROLES, Permissions
from remuda.resources.schema import OrganizationPath

ACL: Route[Permissions, Nothing, Nothing, Nothing, AclRead] = Route(
    method="GET",
    path="/api/v1/acl",
    name="get_acl",
    summary="Read your permissions",
    scope="authenticated",
    response_type=AclRead,
    service=Permissions,
    calls=Permissions.acl,
)
"""Permissions of the caller; services in other processes read them for each of their callers."""

REVOCATIONS: Route[Permissions, Nothing, ListQuery, Nothing, list[RevocationRead]] = Route(
    method="GET",
    path="/api/v1/revocations",
    name="list_revocations",
    summary="List or watch revocations",
    description="For services that verify tokens themselves: ids of tokens and sessions that were revoked before they "
    "expired. It needs a global permission that the role of every service has.",
    scope="everywhere",
    permission=READ_REVOCATIONS,
    query_type=ListQuery,
    response_type=list[RevocationRead],
    service=Permissions,
    calls=Permissions.revocations,
)
"""Revocations, which services in other processes watch."""


ROUTES: list[AnyRoute] = [
    Route(
        method="GET",
        path=f"{ORGANIZATION}/roles",
        name="list_roles",
        summary="List the roles that groups can have",
        scope="organization",
        permission=READ_ROLES,
        path_type=OrganizationPath,
        query_type=NameQuery,
        response_type=list[RoleRead],
        service=Permissions,
        calls=Permissions.list_roles,
    ),
    ACL,
    Route(
        method="GET",
        path=f"{ORGANIZATION}/acl",
        name="get_organization_acl",
        summary="Read your permissions, with those in one organization",
        scope="authenticated",
        path_type=OrganizationPath,
        response_type=AclRead,
        service=Permissions,
        calls=Permissions.acl,
    ),
    REVOCATIONS,
]
