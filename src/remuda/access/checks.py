"""Permission checks, for calls over HTTP and within a process alike.

Each returns nothing or raises Forbidden with a message that names the missing permission and the reason.
"""

from collections.abc import Awaitable, Callable

from remuda.access.principal import EVERYWHERE, OrganizationAccess, Permission, Principal
from remuda.kernel.errors import Forbidden, NotFound

ProjectExists = Callable[[str, str], Awaitable[bool]]
"""Returns whether an organization has a project."""

_NOWHERE = OrganizationAccess()
_NO_ORGANIZATION = "organization is not in this principal's accessible set"
_NO_PROJECT = "project is not in this principal's accessible set"
_NO_FACTOR = "a second factor is required here: log in again with one, or set one up on your account page first"


def require_everywhere(principal: Principal, permission: Permission) -> None:
    if permission not in principal.access.everywhere:
        why = "no global-scope permissions are granted to this principal"
        raise _out_of_reach(principal, permission, _NO_FACTOR if EVERYWHERE in principal.closed else why)


def require_somewhere(principal: Principal, permission: Permission) -> None:
    """Require the permission in any scope, for objects that belong to no organization."""
    if not is_allowed_somewhere(principal, permission):
        raise _out_of_reach(principal, permission, _NO_FACTOR) if principal.closed else _forbidden(permission)


def is_allowed_somewhere(principal: Principal, permission: Permission) -> bool:
    """Return whether the permission is granted globally, in an organization or in a project."""
    access = principal.access
    return permission in access.everywhere or any(
        permission in inside.permissions or any(permission in granted for granted in inside.projects.values())
        for inside in access.organizations.values()
    )


def require_in_organization(principal: Principal, permission: Permission, organization: str) -> None:
    access = principal.access
    if permission in access.everywhere:
        return
    if organization not in access.organizations:
        raise _no_organization(principal, permission, organization)
    if permission not in access.organizations[organization].permissions:
        raise _forbidden(permission)


def require_in_project(principal: Principal, permission: Permission, organization: str, project: str) -> None:
    if is_allowed_in_project(principal, permission, organization, project):
        return
    access = principal.access.organizations.get(organization)
    if access is None:
        raise _no_organization(principal, permission, organization)
    if project not in access.projects:
        raise _out_of_reach(principal, permission, _NO_PROJECT)
    raise _forbidden(permission)


def is_allowed_in_project(principal: Principal, permission: Permission, organization: str, project: str) -> bool:
    """Return whether the permission is granted in a project; lists check each item with it."""
    access = principal.access
    if permission in access.everywhere:
        return True
    inside = access.organizations.get(organization, _NOWHERE)
    return permission in inside.permissions or permission in inside.projects.get(project, ())


async def require_new_in_project(
    principal: Principal, permission: Permission, organization: str, project: str, *, exists: ProjectExists
) -> None:
    """Require the permission to create something in a project that a request's body names, and that it exists."""
    require_in_project(principal, permission, organization, project)
    access = principal.access
    if permission in access.everywhere or project in access.organizations[organization].projects:
        return
    if not await exists(organization, project):
        raise NotFound("Project", project)


def require_for_object(
    principal: Principal, permission: Permission, organization: str, project: str, *, kind: str, name: str
) -> None:
    """Require the permission for an object found by its id; NotFound without access to its organization.

    A member whose login lacked the second factor that the organization requires is told so.
    """
    if not _is_closed(principal, organization) and not _knows_organization(principal, permission, organization):
        raise NotFound(kind, name)
    require_in_project(principal, permission, organization, project)


def require_organization_access(principal: Principal, permission: Permission, organization: str) -> None:
    """Require that a caller who names an organization in a path has access to it, existing or not."""
    if not _knows_organization(principal, permission, organization):
        raise _no_organization(principal, permission, organization)


def _knows_organization(principal: Principal, permission: Permission, organization: str) -> bool:
    everywhere = principal.access.everywhere
    may_read = permission in everywhere or Permission(permission.endpoint, "read") in everywhere
    return may_read or organization in principal.access.organizations


def _no_organization(principal: Principal, permission: Permission, organization: str) -> Forbidden:
    return _out_of_reach(principal, permission, _NO_FACTOR if _is_closed(principal, organization) else _NO_ORGANIZATION)


def _is_closed(principal: Principal, organization: str) -> bool:
    """Tell whether the login lacked the second factor that the permissions of its user need in this organization."""
    return organization in principal.closed or EVERYWHERE in principal.closed


def _out_of_reach(principal: Principal, permission: Permission, why: str) -> Forbidden:
    """Return the error for a caller without access. With any global permission, only the permission is missing."""
    return _forbidden(permission, " is not permitted" if principal.access.everywhere else f" — {why}")


def _forbidden(permission: Permission, why: str = " is not permitted") -> Forbidden:
    return Forbidden(
        f"operation is not allowed by rbac: operation '{permission.verb}' on endpoint '{permission.endpoint}'{why}"
    )
