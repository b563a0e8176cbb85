"""API paths and permission names of identity."""

from remuda.access.principal import Permission, Verb
from remuda.http.schema import Id
from remuda.resources.schema import OrganizationPath

ORGANIZATIONS = "/api/v1/organizations"
ORGANIZATION = f"{ORGANIZATIONS}/{{organizationID}}"
PROJECTS = f"{ORGANIZATION}/projects"
PROJECT = f"{PROJECTS}/{{projectID}}"


class ProjectPath(OrganizationPath, frozen=True, rename={"project": "projectID"}):
    """Path of a project."""

    project: Id


def permission(endpoint: str, verb: Verb) -> Permission:
    """Return the permission for an endpoint of identity, such as `projects` or `projects/references`."""
    return Permission(f"identity:{endpoint}", verb)
