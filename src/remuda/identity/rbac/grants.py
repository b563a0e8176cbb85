"""Who may give which role: nobody gives more than they have.

What a role allows everywhere must be held everywhere; what it allows in an organization, there; and what it allows in
projects, in the organization or in some project of it. The last is enough because a role takes effect in a project
only through a group that the project lists, and both the group and that list need rights of their own to change.
"""

from remuda.access.principal import OrganizationAccess, Principal
from remuda.identity.kinds.roles import Role
from remuda.identity.rbac.book import rights_of
from remuda.kernel.errors import Forbidden

_NOWHERE = OrganizationAccess()


def check_grant(principal: Principal, role: Role, organization: str) -> None:
    """Raise Forbidden unless this principal may put the role into a group of the organization."""
    if role.spec.protected:
        raise Forbidden("requested role is protected")
    if not is_grantable(principal, role, organization):
        raise Forbidden("requested role cannot be granted")


def is_grantable(principal: Principal, role: Role, organization: str) -> bool:
    """Tell whether this principal may put the role into a group of the organization."""
    wanted, access = rights_of(role.spec), principal.access
    inside = access.organizations.get(organization, _NOWHERE)
    in_organization = access.everywhere | inside.permissions
    in_some_project = in_organization.union(*inside.projects.values())
    return (
        not role.spec.protected
        and wanted.everywhere <= access.everywhere
        and wanted.organization <= in_organization
        and wanted.project <= in_some_project
    )
