"""The tenancy room's routes.

The tenancy room's handlers: each asks the service and renders what it says.
"""

from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import AnyRoute, Call, ListQuery, Nothing, Route
from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.names import (
    ORGANIZATION,
    ORGANIZATIONS,
    PROJECT,
    PROJECTS,
    OrganizationPath,
    ProjectPath,
    permission,
)
from remuda.identity.tenancy import schema as wire
from remuda.identity.tenancy.facade import Tenancy
from remuda.identity.tenancy.rules import ORGANIZATION_VIEW, PROJECT_VIEW, PROVIDER_VIEW
from remuda.resources.schema import VersionRead
from remuda.resources.service_info import version_route


async def list_organizations(
    tenancy: Tenancy, call: Call[Nothing, wire.OrganizationQuery, Nothing]
) -> Collection[Organization, list[wire.OrganizationRead]] | Rendered[list[wire.OrganizationRead]]:
    """List the organizations that the caller belongs to, or all."""
    return await tenancy.organizations.list_seen(call.context, call.query)


async def create_organization(
    tenancy: Tenancy, call: Call[Nothing, Nothing, wire.OrganizationWrite]
) -> Shown[wire.OrganizationRead]:
    return Shown(ORGANIZATION_VIEW, await tenancy.organizations.create(call.context, call.body))


async def get_organization(
    tenancy: Tenancy, call: Call[OrganizationPath, Nothing, Nothing]
) -> Rendered[wire.OrganizationRead]:
    found = await tenancy.organizations.get(call.context, call.path.organization)
    return untag(await tenancy.store.get_view(Organization, found.name, ORGANIZATION_VIEW))


async def update_organization(tenancy: Tenancy, call: Call[OrganizationPath, Nothing, wire.OrganizationWrite]) -> None:
    await tenancy.organizations.update(call.context, call.path.organization, call.body)


async def delete_organization(tenancy: Tenancy, call: Call[OrganizationPath, Nothing, Nothing]) -> None:
    """Give an organization up."""
    await tenancy.organizations.delete(call.context, call.path.organization)


async def list_all_projects(
    tenancy: Tenancy, call: Call[Nothing, ListQuery, Nothing]
) -> Collection[Project, list[wire.ProjectRead]]:
    return tenancy.projects.list_all(call.context)


async def list_projects(
    tenancy: Tenancy, call: Call[OrganizationPath, ListQuery, Nothing]
) -> Collection[Project, list[wire.ProjectRead]]:
    """List the projects that the caller may read."""
    return await tenancy.projects.list_in(call.context, call.path.organization)


async def create_project(
    tenancy: Tenancy, call: Call[OrganizationPath, Nothing, wire.ProjectWrite]
) -> Shown[wire.ProjectRead]:
    return Shown(PROJECT_VIEW, await tenancy.projects.create(call.context, call.path.organization, call.body))


async def get_project(tenancy: Tenancy, call: Call[ProjectPath, Nothing, Nothing]) -> Rendered[wire.ProjectRead]:
    found = await tenancy.projects.get(call.context, call.path.organization, call.path.project)
    return untag(await tenancy.store.get_view(Project, found.name, PROJECT_VIEW))


async def update_project(tenancy: Tenancy, call: Call[ProjectPath, Nothing, wire.ProjectWrite]) -> None:
    await tenancy.projects.update(call.context, call.path.organization, call.path.project, call.body)


async def delete_project(tenancy: Tenancy, call: Call[ProjectPath, Nothing, Nothing]) -> None:
    """Give a project up."""
    await tenancy.projects.delete(call.context, call.path.organization, call.path.project)


async def add_reference(tenancy: Tenancy, call: Call[wire.ReferencePath, Nothing, Nothing]) -> None:
    """Keep a project from going."""
    path = call.path
    await tenancy.projects.add_reference(call.context, path.organization, path.project, path.reference)


async def remove_reference(tenancy: Tenancy, call: Call[wire.ReferencePath, Nothing, Nothing]) -> None:
    """Keep a project no longer."""
    path = call.path
    await tenancy.projects.remove_reference(call.context, path.organization, path.project, path.reference)


async def list_platform_providers(
    tenancy: Tenancy, _call: Call[Nothing, ListQuery, Nothing]
) -> Collection[OAuth2Provider, list[wire.ProviderRead]]:
    """List the providers of the whole system."""
    return tenancy.providers.list_platform()


async def list_providers(
    tenancy: Tenancy, call: Call[OrganizationPath, ListQuery, Nothing]
) -> Collection[OAuth2Provider, list[wire.ProviderRead]]:
    return await tenancy.providers.list_in(call.context, call.path.organization)


async def create_provider(
    tenancy: Tenancy, call: Call[OrganizationPath, Nothing, wire.ProviderWrite]
) -> Shown[wire.ProviderRead]:
    return Shown(PROVIDER_VIEW, await tenancy.providers.create(call.context, call.path.organization, call.body))


async def update_provider(tenancy: Tenancy, call: Call[wire.ProviderPath, Nothing, wire.ProviderWrite]) -> None:
    await tenancy.providers.update(call.context, call.path.organization, call.path.provider, call.body)


async def delete_provider(tenancy: Tenancy, call: Call[wire.ProviderPath, Nothing, Nothing]) -> None:
    """Give a provider up."""
    await tenancy.providers.delete(call.context, call.path.organization, call.path.provider)


async def read_version(tenancy: Tenancy, _call: Call[Nothing, Nothing, Nothing]) -> VersionRead:
    """Read the name and version of the service."""
    return tenancy.describe()


_REFERENCE = f"{PROJECT}/references/{{reference}}"
_PROVIDERS = f"{ORGANIZATION}/oauth2providers"
_PROVIDER = f"{_PROVIDERS}/{{providerID}}"


def routes() -> list[AnyRoute]:
    """Return all of them, with paths below where identity is mounted."""
    return [*_organizations(), *_projects(), *_providers(), version_route(read_version)]


def _organizations() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=ORGANIZATIONS,
            name="list_organizations",
            summary="List the organizations that the caller belongs to; all, for those who may read all",
            scope="authenticated",
            query_type=wire.OrganizationQuery,
            answer_type=list[wire.OrganizationRead],
            errors=(404,),
            handler=list_organizations,
        ),
        Route(
            method="POST",
            path=ORGANIZATIONS,
            name="create_organization",
            summary="Make an organization",
            scope="everywhere",
            permission=permission("organizations", "create"),
            body_type=wire.OrganizationWrite,
            answer_type=wire.OrganizationRead,
            success=202,
            handler=create_organization,
        ),
        Route(
            method="GET",
            path=ORGANIZATION,
            name="get_organization",
            summary="Read an organization",
            scope="organization",
            permission=permission("organizations", "read"),
            path_type=OrganizationPath,
            answer_type=wire.OrganizationRead,
            handler=get_organization,
        ),
        Route(
            method="PUT",
            path=ORGANIZATION,
            name="update_organization",
            summary="Change an organization",
            scope="organization",
            permission=permission("organizations", "update"),
            path_type=OrganizationPath,
            body_type=wire.OrganizationWrite,
            is_conditional=True,
            handler=update_organization,
        ),
        Route(
            method="DELETE",
            path=ORGANIZATION,
            name="delete_organization",
            summary="Give an organization up, with everything in it",
            scope="everywhere",
            permission=permission("organizations", "delete"),
            path_type=OrganizationPath,
            success=202,
            is_conditional=True,
            handler=delete_organization,
        ),
    ]


def _projects() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path="/api/v1/projects",
            name="list_all_projects",
            summary="List the projects of all organizations",
            description="For services that follow projects, wherever they are. It needs the right everywhere, as the "
            "role of every service has it, and only those have who may read each of them anyway.",
            scope="everywhere",
            permission=permission("projects", "read"),
            query_type=ListQuery,
            answer_type=list[wire.ProjectRead],
            handler=list_all_projects,
        ),
        Route(
            method="GET",
            path=PROJECTS,
            name="list_projects",
            summary="List the projects of an organization that the caller may read",
            scope="project",
            permission=permission("projects", "read"),
            path_type=OrganizationPath,
            query_type=ListQuery,
            answer_type=list[wire.ProjectRead],
            handler=list_projects,
        ),
        Route(
            method="POST",
            path=PROJECTS,
            name="create_project",
            summary="Make a project",
            scope="organization",
            permission=permission("projects", "create"),
            path_type=OrganizationPath,
            body_type=wire.ProjectWrite,
            answer_type=wire.ProjectRead,
            success=202,
            handler=create_project,
        ),
        Route(
            method="GET",
            path=PROJECT,
            name="get_project",
            summary="Read a project",
            scope="project",
            permission=permission("projects", "read"),
            path_type=ProjectPath,
            answer_type=wire.ProjectRead,
            handler=get_project,
        ),
        Route(
            method="PUT",
            path=PROJECT,
            name="update_project",
            summary="Change a project",
            scope="project",
            permission=permission("projects", "update"),
            path_type=ProjectPath,
            body_type=wire.ProjectWrite,
            is_conditional=True,
            handler=update_project,
        ),
        Route(
            method="DELETE",
            path=PROJECT,
            name="delete_project",
            summary="Give a project up: it goes when nothing needs it any more",
            scope="project",
            permission=permission("projects", "delete"),
            path_type=ProjectPath,
            success=202,
            is_conditional=True,
            handler=delete_project,
        ),
        Route(
            method="PUT",
            path=_REFERENCE,
            name="add_project_reference",
            summary="Keep a project from going while something needs it",
            scope="project",
            permission=permission("projects/references", "create"),
            path_type=wire.ReferencePath,
            success=201,
            handler=add_reference,
        ),
        Route(
            method="DELETE",
            path=_REFERENCE,
            name="remove_project_reference",
            summary="Need a project no longer",
            scope="project",
            permission=permission("projects/references", "delete"),
            path_type=wire.ReferencePath,
            success=204,
            handler=remove_reference,
        ),
    ]


def _providers() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path="/api/v1/oauth2providers",
            name="list_platform_providers",
            summary="List the OAuth2 providers of the whole system",
            scope="authenticated",
            query_type=ListQuery,
            answer_type=list[wire.ProviderRead],
            handler=list_platform_providers,
        ),
        Route(
            method="GET",
            path=_PROVIDERS,
            name="list_providers",
            summary="List the OAuth2 providers of an organization",
            scope="organization",
            permission=permission("oauth2providers", "read"),
            path_type=OrganizationPath,
            query_type=ListQuery,
            answer_type=list[wire.ProviderRead],
            handler=list_providers,
        ),
        Route(
            method="POST",
            path=_PROVIDERS,
            name="create_provider",
            summary="Make an OAuth2 provider",
            scope="organization",
            permission=permission("oauth2providers", "create"),
            path_type=OrganizationPath,
            body_type=wire.ProviderWrite,
            answer_type=wire.ProviderRead,
            success=201,
            handler=create_provider,
        ),
        Route(
            method="PUT",
            path=_PROVIDER,
            name="update_provider",
            summary="Change an OAuth2 provider; without a clientSecret it keeps the one that it has",
            scope="organization",
            permission=permission("oauth2providers", "update"),
            path_type=wire.ProviderPath,
            body_type=wire.ProviderWrite,
            is_conditional=True,
            handler=update_provider,
        ),
        Route(
            method="DELETE",
            path=_PROVIDER,
            name="delete_provider",
            summary="Give an OAuth2 provider up: it goes when no domain needs it any more",
            scope="organization",
            permission=permission("oauth2providers", "delete"),
            path_type=wire.ProviderPath,
            is_conditional=True,
            handler=delete_provider,
        ),
    ]
