"""The tenancy room's handlers: each asks the service and renders what it says."""

from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import Call, ListQuery, Nothing
from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.names import OrganizationPath, ProjectPath
from remuda.identity.tenancy import schema as wire
from remuda.identity.tenancy.facade import Tenancy
from remuda.identity.tenancy.provider_rules import PROVIDER_VIEW
from remuda.identity.tenancy.rules import ORGANIZATION_VIEW, PROJECT_VIEW
from remuda.resources.schema import VersionRead


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
