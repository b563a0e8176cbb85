"""Where an organization and a project are in the API, for the rooms that have something below them.

Rights to what identity has, by the names that roles give them.
"""

from remuda.access.principal import Permission, Verb
from remuda.http.schema import Id, Parameters

ORGANIZATIONS = "/api/v1/organizations"
"""All organizations."""
ORGANIZATION = f"{ORGANIZATIONS}/{{organizationID}}"
"""One of them."""
PROJECTS = f"{ORGANIZATION}/projects"
"""Its projects."""
PROJECT = f"{PROJECTS}/{{projectID}}"
"""One of those."""


class OrganizationPath(Parameters, frozen=True, rename={"organization": "organizationID"}):
    """An organization."""

    organization: Id


class ProjectPath(Parameters, frozen=True, rename={"organization": "organizationID", "project": "projectID"}):
    """A project."""

    organization: Id
    project: Id


def permission(endpoint: str, verb: Verb) -> Permission:
    """Return a right to an endpoint of identity's, such as `projects` or `projects/references`."""
    return Permission(f"identity:{endpoint}", verb)
