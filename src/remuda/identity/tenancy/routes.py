"""Routes of organizations, projects and OAuth2 providers."""

from functools import partial

from remuda.http.crud import crud
from remuda.http.routes import AnyRoute, Route
from remuda.http.schema import NamedListQuery
from remuda.identity.names import ORGANIZATION, ORGANIZATIONS, PROJECT, PROJECTS, ProjectPath, permission
from remuda.identity.tenancy import schema
from remuda.identity.tenancy.domains import Domains
from remuda.identity.tenancy.rules import ORGANIZATION_VIEW, PROJECT_VIEW, PROVIDER_VIEW
from remuda.identity.tenancy.service import OrganizationProviders, Organizations, Projects
from remuda.resources.schema import OrganizationPath

_DOMAIN = f"{ORGANIZATION}/domain"
_REFERENCE = f"{PROJECT}/references/{{reference}}"

ROUTES: list[AnyRoute] = [
    *crud(
        Organizations,
        path=ORGANIZATIONS,
        item=OrganizationPath,
        name="organization",
        noun="an organization",
        scope="organization",
        permission=partial(permission, "organizations"),
        view=ORGANIZATION_VIEW,
        query=schema.OrganizationQuery,
        create=schema.OrganizationWrite,
        update=schema.OrganizationWrite,
        read=schema.OrganizationRead,
        accepted=("create", "delete"),
        summaries={
            "list": "List the organizations that the caller belongs to; all, for a caller who may read all",
            "delete": "Delete an organization and everything in it",
        },
        overrides={
            "list": {"scope": "authenticated", "permission": None, "errors": (404,)},
            "create": {"scope": "everywhere", "errors": ()},
            "delete": {"scope": "everywhere"},
        },
    ),
    Route(
        method="GET",
        path=_DOMAIN,
        name="get_domain",
        summary="Read the domain that an organization claims, and the DNS record that proves it",
        scope="organization",
        permission=permission("organizations", "read"),
        path_type=OrganizationPath,
        response_type=schema.DomainRead,
        errors=(404,),
        service=Domains,
        calls=Domains.get,
    ),
    Route(
        method="PUT",
        path=f"{_DOMAIN}/approval",
        name="approve_domain",
        summary="Approve the domain that an organization claims, so that it needs no DNS record",
        scope="everywhere",
        permission=permission("organizations", "update"),
        path_type=OrganizationPath,
        body_type=schema.DomainApproval,
        response_type=schema.DomainRead,
        errors=(404,),
        service=Domains,
        calls=Domains.approve,
    ),
    Route(
        method="DELETE",
        path=f"{_DOMAIN}/approval",
        name="withdraw_domain_approval",
        summary="Withdraw the approval of a domain, which then needs its DNS record",
        scope="everywhere",
        permission=permission("organizations", "update"),
        path_type=OrganizationPath,
        success=204,
        errors=(404,),
        service=Domains,
        calls=Domains.withdraw,
    ),
    Route(
        method="GET",
        path="/api/v1/projects",
        name="list_all_projects",
        summary="List the projects of all organizations",
        description="For services that watch the projects of all organizations. It needs the permission everywhere, "
        "which the role of every service has.",
        scope="everywhere",
        permission=permission("projects", "read"),
        query_type=NamedListQuery,
        response_type=list[schema.ProjectRead],
        service=Projects,
        calls=Projects.list_all,
    ),
    *crud(
        Projects,
        path=PROJECTS,
        item=ProjectPath,
        parent=OrganizationPath,
        name="project",
        noun="a project",
        permission=partial(permission, "projects"),
        view=PROJECT_VIEW,
        create=schema.ProjectWrite,
        update=schema.ProjectWrite,
        read=schema.ProjectRead,
        accepted=("create", "delete"),
        summaries={
            "list": "List the projects of an organization that the caller may read",
            "delete": "Delete a project, which is removed when it has no references",
        },
        overrides={"create": {"scope": "organization"}},
    ),
    Route(
        method="PUT",
        path=_REFERENCE,
        name="add_project_reference",
        summary="Add a reference, which protects a project from removal",
        scope="project",
        permission=permission("projects/references", "create"),
        path_type=schema.ReferencePath,
        success=201,
        service=Projects,
        calls=Projects.add_reference,
    ),
    Route(
        method="DELETE",
        path=_REFERENCE,
        name="remove_project_reference",
        summary="Remove a reference of a project",
        scope="project",
        permission=permission("projects/references", "delete"),
        path_type=schema.ReferencePath,
        success=204,
        service=Projects,
        calls=Projects.remove_reference,
    ),
    Route(
        method="GET",
        path="/api/v1/oauth2providers",
        name="list_platform_providers",
        summary="List the global OAuth2 providers",
        scope="authenticated",
        query_type=NamedListQuery,
        response_type=list[schema.ProviderRead],
        service=OrganizationProviders,
        calls=OrganizationProviders.list_platform,
    ),
    *crud(
        OrganizationProviders,
        path=f"{ORGANIZATION}/oauth2providers",
        item=schema.ProviderPath,
        parent=OrganizationPath,
        name="provider",
        noun="an OAuth2 provider",
        scope="organization",
        permission=partial(permission, "oauth2providers"),
        view=PROVIDER_VIEW,
        create=schema.ProviderWrite,
        update=schema.ProviderWrite,
        read=schema.ProviderRead,
        without=("get",),
        accepted=(),
        summaries={
            "list": "List the OAuth2 providers of an organization",
            "update": "Update an OAuth2 provider; without a clientSecret the stored one stays",
            "delete": "Delete an OAuth2 provider, which is removed when no domain names it",
        },
    ),
]
