"""The checks: every service asks these, whether it is called over HTTP or in its own process.

Each returns in silence or raises Forbidden with a sentence that names the missing permission and why it is missing.
"""

from collections.abc import Awaitable, Callable

from remuda.access.principal import OrganizationAccess, Permission, Principal
from remuda.kernel.errors import Forbidden, NotFound

ProjectExists = Callable[[str, str], Awaitable[bool]]
"""Tells whether an organization has a project."""

_NOWHERE = OrganizationAccess()
_NO_ORGANIZATION = "organization is not in this principal's accessible set"
_NO_PROJECT = "project is not in this principal's accessible set"


def allow_everywhere(principal: Principal, permission: Permission) -> None:
    """Demand the right in the whole system."""
    if permission not in principal.access.everywhere:
        raise _out_of_reach(principal, permission, "no global-scope permissions are granted to this principal")


def allow_somewhere(principal: Principal, permission: Permission) -> None:
    """Demand the right in the whole system or anywhere in it, for what belongs to no organization in particular."""
    if not is_allowed_somewhere(principal, permission):
        raise _forbidden(permission)


def is_allowed_somewhere(principal: Principal, permission: Permission) -> bool:
    """Tell whether the right holds in the whole system, in some organization or in some project."""
    access = principal.access
    return permission in access.everywhere or any(
        permission in inside.permissions or any(permission in held for held in inside.projects.values())
        for inside in access.organizations.values()
    )


def allow_in_organization(principal: Principal, permission: Permission, organization: str) -> None:
    """Demand the right in an organization."""
    access = principal.access
    if permission in access.everywhere:
        return
    if organization not in access.organizations:
        raise _out_of_reach(principal, permission, _NO_ORGANIZATION)
    if permission not in access.organizations[organization].permissions:
        raise _forbidden(permission)


def allow_in_project(principal: Principal, permission: Permission, organization: str, project: str) -> None:
    """Demand the right in a project."""
    if is_allowed_in_project(principal, permission, organization, project):
        return
    access = principal.access.organizations.get(organization)
    if access is None:
        raise _out_of_reach(principal, permission, _NO_ORGANIZATION)
    if project not in access.projects:
        raise _out_of_reach(principal, permission, _NO_PROJECT)
    raise _forbidden(permission)


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


def allow_for_object(
    principal: Principal, permission: Permission, organization: str, project: str, *, kind: str, name: str
) -> None:
    """Demand the right to an object that was found by its id, in the organization and project that it belongs to.

    For a stranger to the organization it does not exist (NotFound); whoever belongs there may be told what is missing.
    """
    if not _knows_organization(principal, permission, organization):
        raise NotFound(kind, name)
    allow_in_project(principal, permission, organization, project)


def allow_naming_organization(principal: Principal, permission: Permission, organization: str) -> None:
    """Demand that a caller who names an organization in a query has to do with it, whether it exists or not."""
    if not _knows_organization(principal, permission, organization):
        raise _out_of_reach(principal, permission, _NO_ORGANIZATION)


async def allow_naming_project(
    principal: Principal, permission: Permission, project: str, *, exists: ProjectExists
) -> None:
    """Demand that a caller who names a project in a query has to do with it, whether it exists or not."""
    if permission in principal.access.everywhere:
        return
    for organization, access in principal.access.organizations.items():
        if project in access.projects:
            return
        if permission in access.permissions and await exists(organization, project):
            return
    raise _out_of_reach(principal, permission, _NO_PROJECT)


def _knows_organization(principal: Principal, permission: Permission, organization: str) -> bool:
    everywhere = principal.access.everywhere
    may_read = permission in everywhere or Permission(permission.endpoint, "read") in everywhere
    return may_read or organization in principal.access.organizations


def _out_of_reach(principal: Principal, permission: Permission, why: str) -> Forbidden:
    """Return the refusal of one who does not get there.

    Any right in the whole system gets everywhere: then the right is missing, and to say that the place is would be
    false.
    """
    return _forbidden(permission, " is not permitted" if principal.access.everywhere else f" — {why}")


def _forbidden(permission: Permission, why: str = " is not permitted") -> Forbidden:
    return Forbidden(
        f"operation is not allowed by rbac: operation '{permission.verb}' on endpoint '{permission.endpoint}'{why}"
    )
