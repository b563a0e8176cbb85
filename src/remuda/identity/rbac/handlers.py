"""The room's handlers: each asks the service and returns what it says."""

from remuda.http.responses import Collection
from remuda.http.routes import Call, ListQuery, Nothing
from remuda.identity.kinds.tokens import Revocation
from remuda.identity.names import OrganizationPath
from remuda.identity.rbac.schema import AclRead, RevocationRead, RoleRead
from remuda.identity.rbac.service import Rights


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
