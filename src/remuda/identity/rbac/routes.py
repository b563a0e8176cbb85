"""The room's routes.

The room's handlers: each asks the service and returns what it says.
"""

from remuda.http.responses import Collection
from remuda.http.routes import AnyRoute, Call, ListQuery, Nothing, Route
from remuda.identity.kinds.tokens import Revocation
from remuda.identity.names import ORGANIZATION, OrganizationPath
from remuda.identity.rbac.schema import AclRead, RevocationRead, RoleRead
from remuda.identity.rbac.service import READ_REVOCATIONS, READ_ROLES, Rights


async def list_roles(rights: Rights, call: Call[OrganizationPath, Nothing, Nothing]) -> list[RoleRead]:
    """List the roles that an organization's groups can have."""
    return await rights.list_roles(call.context, call.path.organization)


async def get_acl(rights: Rights, call: Call[Nothing, Nothing, Nothing]) -> AclRead:
    """Tell what the caller may do."""
    return rights.acl(call.context)


async def get_organization_acl(rights: Rights, call: Call[OrganizationPath, Nothing, Nothing]) -> AclRead:
    """Tell the same, and what of it is about one organization."""
    return rights.acl(call.context, call.path.organization)


async def list_revocations(
    rights: Rights, call: Call[Nothing, ListQuery, Nothing]
) -> Collection[Revocation, list[RevocationRead]]:
    """List or follow what was revoked."""
    return rights.revocations(call.context)


ACL: Route[Rights, Nothing, Nothing, Nothing, AclRead] = Route(
    method="GET",
    path="/api/v1/acl",
    name="get_acl",
    summary="Read what you may do",
    scope="authenticated",
    answer_type=AclRead,
    handler=get_acl,
)
"""What the caller may do; services in other processes ask it for each of their callers."""

REVOCATIONS: Route[Rights, Nothing, ListQuery, Nothing, list[RevocationRead]] = Route(
    method="GET",
    path="/api/v1/revocations",
    name="list_revocations",
    summary="Follow what is revoked",
    description="For services that check tokens themselves: ids of tokens and sessions that are over before their time."
    " It needs a right that the role of every service has everywhere.",
    scope="everywhere",
    permission=READ_REVOCATIONS,
    query_type=ListQuery,
    answer_type=list[RevocationRead],
    handler=list_revocations,
)
"""What was revoked; services in other processes watch it."""


def routes() -> list[AnyRoute]:
    """Return them all."""
    return [
        Route(
            method="GET",
            path=f"{ORGANIZATION}/roles",
            name="list_roles",
            summary="List the roles that groups can have",
            scope="organization",
            permission=READ_ROLES,
            path_type=OrganizationPath,
            answer_type=list[RoleRead],
            handler=list_roles,
        ),
        ACL,
        Route(
            method="GET",
            path=f"{ORGANIZATION}/acl",
            name="get_organization_acl",
            summary="Read what you may do, and in one organization",
            scope="authenticated",
            path_type=OrganizationPath,
            answer_type=AclRead,
            handler=get_organization_acl,
        ),
        REVOCATIONS,
    ]
