"""The tenancy room's routes."""

from remuda.http.routes import AnyRoute, ListQuery, Route
from remuda.identity.names import ORGANIZATION, ORGANIZATIONS, PROJECT, PROJECTS, OrganizationPath, ProjectPath
from remuda.identity.permissions import permission
from remuda.identity.tenancy import handlers
from remuda.identity.tenancy import schema as wire
from remuda.resources.service_info import version_route

_REFERENCE = f"{PROJECT}/references/{{reference}}"
_PROVIDERS = f"{ORGANIZATION}/oauth2providers"
_PROVIDER = f"{_PROVIDERS}/{{providerID}}"


def routes() -> list[AnyRoute]:
    """Return all of them, with paths below where identity is mounted."""
    return [*_organizations(), *_projects(), *_providers(), version_route(handlers.read_version)]


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
            handler=handlers.list_organizations,
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
            handler=handlers.create_organization,
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
            handler=handlers.get_organization,
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
            handler=handlers.update_organization,
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
            handler=handlers.delete_organization,
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
            handler=handlers.list_all_projects,
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
            handler=handlers.list_projects,
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
            handler=handlers.create_project,
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
            handler=handlers.get_project,
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
            handler=handlers.update_project,
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
            handler=handlers.delete_project,
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
            handler=handlers.add_reference,
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
            handler=handlers.remove_reference,
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
            handler=handlers.list_platform_providers,
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
            handler=handlers.list_providers,
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
            handler=handlers.create_provider,
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
            handler=handlers.update_provider,
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
            handler=handlers.delete_provider,
        ),
    ]
