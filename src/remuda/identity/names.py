"""API paths and permission names of identity."""

from remuda.access.principal import Permission, Verb
from remuda.resources.schema import OrganizationPath, ProjectId

ORGANIZATIONS = "/api/v1/organizations"
ORGANIZATION = f"{ORGANIZATIONS}/{{organizationID}}"
PROJECTS = f"{ORGANIZATION}/projects"
PROJECT = f"{PROJECTS}/{{projectID}}"


class ProjectPath(OrganizationPath, frozen=True, rename={"project": "projectID"}):
    """Path of a project."""

    project: ProjectId


def permission(endpoint: str, verb: Verb) -> Permission:
    """Return the permission for an endpoint of identity, such as `projects` or `projects/references`."""
    return Permission(f"identity:{endpoint}", verb)
