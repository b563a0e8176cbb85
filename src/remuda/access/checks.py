"""The checks: every service asks these, whether it is called over HTTP or in its own process.

Each returns in silence or raises Forbidden with a sentence that names the missing permission and why it is missing.
"""

from collections.abc import Awaitable, Callable

from remuda.access.principal import OrganizationAccess, Permission, Principal
from remuda.kernel.errors import Forbidden, NotFound

__all__ = [
    "ProjectExists",
    "allow_everywhere",
    "allow_in_organization",
    "allow_in_project",
    "allow_new_in_project",
    "is_allowed_in_project",
]

ProjectExists = Callable[[str, str], Awaitable[bool]]
"""Tells whether an organization has a project."""

_NOWHERE = OrganizationAccess()


def allow_everywhere(principal: Principal, permission: Permission) -> None:
    """Demand the right in the whole system."""
    if permission not in principal.access.everywhere:
        raise _forbidden(permission, " — no global-scope permissions are granted to this principal")


def allow_in_organization(principal: Principal, permission: Permission, organization: str) -> None:
    """Demand the right in an organization."""
    access = principal.access
    if permission in access.everywhere:
        return
    if organization not in access.organizations:
        raise _forbidden(permission, " — organization is not in this principal's accessible set")
    if permission not in access.organizations[organization].permissions:
        raise _forbidden(permission, " is not permitted")


def allow_in_project(principal: Principal, permission: Permission, organization: str, project: str) -> None:
    """Demand the right in a project."""
    if is_allowed_in_project(principal, permission, organization, project):
        return
    access = principal.access.organizations.get(organization)
    if access is None:
        raise _forbidden(permission, " — organization is not in this principal's accessible set")
    if project not in access.projects:
        raise _forbidden(permission, " — project is not in this principal's accessible set")
    raise _forbidden(permission, " is not permitted")


def is_allowed_in_project(principal: Principal, permission: Permission, organization: str, project: str) -> bool:
    """Tell whether the right holds in a project; lists ask this of each item."""
    access = principal.access
    if permission in access.everywhere:
        return True
    inside = access.organizations.get(organization, _NOWHERE)
    return permission in inside.permissions or permission in inside.projects.get(project, ())


async def allow_new_in_project(
    principal: Principal, permission: Permission, organization: str, project: str, *, exists: ProjectExists
) -> None:
    """Demand the right to make something in a project that a request's body names, and that the project is there.

    A project the access list names is known to be there, and a holder of the right everywhere is trusted as it is. Who
    holds the right in the whole organization could name anything, so the project is looked for.
    """
    allow_in_project(principal, permission, organization, project)
    access = principal.access
    if permission in access.everywhere or project in access.organizations[organization].projects:
        return
    if not await exists(organization, project):
        raise NotFound("Project", project)


def _forbidden(permission: Permission, why: str) -> Forbidden:
    return Forbidden(
        f"operation is not allowed by rbac: operation '{permission.verb}' on endpoint '{permission.endpoint}'{why}"
    )
