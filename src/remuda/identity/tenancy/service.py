"""Services of organizations, projects and OAuth2 providers, and of the version.

A caller who may read organizations everywhere sees all of them. Other callers see those that they belong to: a user by
the memberships that it agreed to, suspended ones included, a service account by its own organization. A user whom the
identity provider of one organization authenticated sees no other organization.

Other services protect a project from deletion by references, which are finalizers of the project. OAuth2 providers
belong to the whole system, and every caller may read those, or to an organization. A provider's secret can be written
and not be read. A provider that the domain of its organization uses stays deleting until it is not.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from remuda.access.checks import (
    is_allowed_in_project,
    require_everywhere,
    require_in_organization,
    require_in_project,
    require_organization_access,
)
from remuda.access.principal import Context, OrganizationAccess, Permission, Principal, Verb
from remuda.http.pagination import Cursors
from remuda.http.responses import Collection, Rendered, without_etags
from remuda.identity.consent import agreed_memberships, owner_of_domain
from remuda.identity.kinds.oauth import OAUTH2_PROVIDER, OAuth2Provider
from remuda.identity.kinds.tenancy import CONTROLLER_FINALIZER, ORGANIZATION, PROJECT, Organization, Project
from remuda.identity.kinds.users import Group, user_id
from remuda.identity.lookups import find_active_user
from remuda.identity.names import permission
from remuda.identity.references import OrganizationReferences
from remuda.identity.tenancy import rules, schema
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Invalid, Malformed, NotFound
from remuda.kernel.ids import is_id
from remuda.kernel.text import folded
from remuda.resources.conventions import ORGANIZATION as ORGANIZATION_LABEL
from remuda.resources.conventions import organization_of
from remuda.resources.crud import find_in, get_in
from remuda.resources.service import OrganizationResourceService, ResourceService
from remuda.store.contract import NAME_INDEX
from remuda.store.logs import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Organizations(ResourceService[Organization, schema.OrganizationRead]):
    """Service of organizations."""

    kind, endpoint, view, noun = ORGANIZATION, "identity:organizations", rules.ORGANIZATION_VIEW, "organization"

    clock: Clock

    async def _list_by_name(self, context: Context, visible: frozenset[str]) -> Rendered[list[schema.OrganizationRead]]:
        """Return the organizations with these ids, without deleted ones that a membership still names."""
        version = (await self.store.list_names(Organization, limit=1)).version
        found = []
        for name in sorted(visible):
            with suppress(NotFound):
                found.append(await self.store.get_view(Organization, name, self.view))
        views = without_etags(self.view, found)
        cursor = Cursors(context.principal.access).write(version)
        return Rendered(b"[" + b",".join(views) + b"]", headers={"X-Resource-Version": cursor})

    async def list(
        self, context: Context, query: schema.OrganizationQuery
    ) -> Collection[Organization, list[schema.OrganizationRead]] | Rendered[list[schema.OrganizationRead]]:
        """Return the organizations of the caller, or all. A few are read one by one, by name."""
        visible = await self._visible_to(context, query.email)
        if query.watch and query.email is not None:
            raise Malformed("A list by email cannot be watched: leave watch out, or email.")
        if query.watch and visible is not None:
            # A stream ends when the access list changes, and a suspended membership is not part of that list.
            visible &= context.principal.access.organizations.keys()
        if visible is None or query != schema.OrganizationQuery(email=query.email):
            is_visible = None if visible is None else (lambda organization: organization.name in visible)
            scopes = None if visible is None else [(NAME_INDEX, each) for each in visible]
            return Collection(store=self.store, kind=Organization, view=self.view, scopes=scopes, visible=is_visible)
        return await self._list_by_name(context, visible)

    async def create(self, context: Context, body: schema.OrganizationWrite) -> Organization:
        """Create an organization, named after the request, so that repeating the request creates no second one."""
        require_everywhere(context.principal, Permission(self.endpoint, "create"))
        await self._check(context.operation, body)
        return await self.insert(context, rules.new_organization(context.operation, body, context.principal))

    async def get(self, context: Context, organization: str) -> Organization:
        return await self._find(context, "read", organization)

    async def update(self, context: Context, organization: str, body: schema.OrganizationWrite) -> None:
        async def changed(found: Organization) -> Organization:
            await self._check(organization, body)
            return rules.updated_organization(found, body, context.principal, self.clock.now())

        await self.update_found(context, lambda: self._find(context, "update", organization), changed)

    async def delete(self, context: Context, organization: str) -> None:
        """Request the deletion of an organization and everything in it."""
        require_everywhere(context.principal, Permission(self.endpoint, "delete"))
        await self.delete_found(context, lambda: self.store.get(Organization, organization))

    def audit(self, context: Context, found: Organization) -> Sequence[Record]:
        """Return the audit record of a write: it belongs to the organization itself."""
        return context.audit(ORGANIZATION.plural, found.name, organization=found.name)

    async def _find(self, context: Context, verb: Verb, organization: str) -> Organization:
        require_in_organization(context.principal, Permission(self.endpoint, verb), organization)
        return await self.store.get(Organization, organization)

    async def _visible_to(self, context: Context, email: str | None) -> frozenset[str] | None:
        """Return the ids of the organizations of the caller, or of the user with this address. None means all."""
        principal = context.principal
        if email is None and Permission(self.endpoint, "read") in principal.access.everywhere:
            return None
        if principal.type == "service":
            return frozenset(principal.organizations)
        if email is None and principal.type == "system":
            raise NotFound("User", principal.subject)
        visible = await self._memberships(await self._member(principal, email))
        return visible if principal.member_of_only is None else visible & {principal.member_of_only}

    async def _member(self, principal: Principal, email: str | None) -> str:
        """Return the id of the user whose organizations are listed."""
        own = user_id(principal.subject)
        if email is None or (principal.type == "user" and user_id(email) == own):
            return own
        require_everywhere(principal, permission("users", "read"))
        user = await find_active_user(self.store, user_id(email))
        if user is None:
            raise NotFound("User", user_id(email))
        return user.name

    async def _memberships(self, user: str) -> frozenset[str]:
        return frozenset(organization_of(membership) for membership in await agreed_memberships(self.store, user))

    async def _check(self, organization: str, body: schema.OrganizationWrite) -> None:
        """Raise Invalid for an invalid request. The controller ensures one owner of a domain; this reports it early."""
        rules.check_organization(body.spec)
        if body.spec.organization_type == "domain":
            await self._check_provider(organization, body.spec)
            await self._check_domain(organization, folded(body.spec.domain))

    async def _check_provider(self, organization: str, requested: schema.OrganizationSpecWire) -> None:
        owner = None if requested.provider_scope == "global" else organization
        if await find_in(self.store, OAuth2Provider, requested.provider_id, owner) is None:
            raise Invalid(
                "spec.providerID",
                f"is not a provider of the scope {requested.provider_scope}",
                remedy="name an existing provider",
            )

    async def _check_domain(self, organization: str, domain: str) -> None:
        """Raise Invalid for a domain that another organization has proven. Any number of them may claim it."""
        owner = await owner_of_domain(self.store, domain)
        if owner is not None and owner.name != organization:
            raise Invalid(
                "spec.domain", "belongs to another organization", remedy="choose another, or release it there"
            )


_REFERENCES = "identity:projects/references"
"""Endpoint of the permissions for references of projects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projects(OrganizationResourceService[Project, schema.ProjectRead]):
    """Service of projects."""

    kind, endpoint, view, noun = PROJECT, "identity:projects", rules.PROJECT_VIEW, "project"

    clock: Clock
    references: OrganizationReferences

    def list_all(self, context: Context) -> Collection[Project, list[schema.ProjectRead]]:
        """Return the projects of all organizations, to callers who may read every one of them."""
        require_everywhere(context.principal, Permission(self.endpoint, "read"))
        return Collection(store=self.store, kind=Project, view=self.view)

    async def list(self, context: Context, organization: str) -> Collection[Project, list[schema.ProjectRead]]:
        """Return the projects of an organization that the caller may read. There may be none, which is not an error."""
        read_permission, principal = Permission(self.endpoint, "read"), context.principal
        require_organization_access(principal, read_permission, organization)
        await self.store.get(Organization, organization)

        where = {ORGANIZATION_LABEL: organization}
        if _is_allowed_in_all(context, read_permission, organization):
            return Collection(store=self.store, kind=Project, view=self.view, labels=where)

        def is_readable(project: str) -> bool:
            return is_allowed_in_project(principal, read_permission, organization, project)

        known = principal.access.organizations.get(organization, OrganizationAccess()).projects
        return Collection(
            store=self.store,
            kind=Project,
            view=self.view,
            labels=where,
            scopes=[(NAME_INDEX, project) for project in known if is_readable(project)],
            visible=lambda project: is_readable(project.name),
        )

    async def create(self, context: Context, organization: str, body: schema.ProjectWrite) -> Project:
        """Create a project, named after the request, so that repeating the request creates no second one."""
        self.authorize(context, "create", organization)
        owner = await self.store.get(Organization, organization)
        with self.references.writing(organization):
            await self._check(organization, body)
            return await self.insert(context, rules.new_project(context.operation, owner, body, context.principal))

    async def get(self, context: Context, organization: str, project: str) -> Project:
        return await self.get_authorized(context, "read", organization, project)

    async def update(self, context: Context, organization: str, project: str, body: schema.ProjectWrite) -> None:
        async def changed(found: Project) -> Project:
            await self._check(organization, body)
            return rules.updated_project(found, body, context.principal, self.clock.now())

        with self.references.writing(organization):
            await self.update_with(context, organization, project, changed)

    async def add_reference(self, context: Context, organization: str, project: str, reference: str) -> None:
        """Add a reference of another service, which protects a project from removal."""
        await self.add_finalizer(
            context,
            lambda: self._find(context, Permission(_REFERENCES, "create"), organization, project),
            reference,
            own=CONTROLLER_FINALIZER,
            if_deleting="The project is being deleted and accepts no references: use another project.",
        )

    async def remove_reference(self, context: Context, organization: str, project: str, reference: str) -> None:
        await self.remove_finalizer(
            context,
            lambda: self._find(context, Permission(_REFERENCES, "delete"), organization, project),
            reference,
            own=CONTROLLER_FINALIZER,
        )

    async def get_authorized(self, context: Context, verb: Verb, organization: str, id: str) -> Project:  # noqa: A002  as in the base
        """Return a project for which the caller has this permission, in the organization or in the project."""
        return await self._find(context, Permission(self.endpoint, verb), organization, id)

    async def _find(self, context: Context, needed: Permission, organization: str, project: str) -> Project:
        require_in_project(context.principal, needed, organization, project)
        return await get_in(self.store, Project, project, organization)

    async def _check(self, organization: str, body: schema.ProjectWrite) -> None:
        for group in body.spec.group_ids:
            if not await self._has_group(organization, group):
                raise Malformed(f"group ID {group} does not exist")

    async def _has_group(self, organization: str, group: str) -> bool:
        # Only an id is a valid name of an object.
        return (
            is_id(group) and await find_in(self.store, Group, group, organization, include_deleting=False) is not None
        )


def _is_allowed_in_all(context: Context, read_permission: Permission, organization: str) -> bool:
    access = context.principal.access
    inside = access.organizations.get(organization)
    return read_permission in access.everywhere or (inside is not None and read_permission in inside.permissions)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationProviders(OrganizationResourceService[OAuth2Provider, schema.ProviderRead]):
    """Service of OAuth2 providers."""

    kind, endpoint, view, noun = OAUTH2_PROVIDER, "identity:oauth2providers", rules.PROVIDER_VIEW, "provider"

    clock: Clock

    def list_platform(self) -> Collection[OAuth2Provider, list[schema.ProviderRead]]:
        """Return the global providers at which this service is a client, so that users can log in."""
        return Collection(store=self.store, kind=OAuth2Provider, view=self.view, index=("platform", "login"))

    async def list(self, context: Context, organization: str) -> Collection[OAuth2Provider, list[schema.ProviderRead]]:
        self.authorize(context, "read", organization)
        await self.store.get(Organization, organization)
        where = {ORGANIZATION_LABEL: organization}
        return Collection(store=self.store, kind=OAuth2Provider, view=self.view, labels=where)

    async def create(self, context: Context, organization: str, body: schema.ProviderWrite) -> OAuth2Provider:
        """Create a provider, named after the request, so that repeating the request creates no second one."""
        self.authorize(context, "create", organization)
        owner = await self.store.get(Organization, organization)
        rules.check_issuer(body.spec.issuer)
        return await self.insert(context, rules.new_provider(context.operation, owner, body, context.principal))

    async def update(self, context: Context, organization: str, provider: str, body: schema.ProviderWrite) -> None:
        async def changed(found: OAuth2Provider) -> OAuth2Provider:
            rules.check_issuer(body.spec.issuer)
            return rules.updated_provider(found, body, context.principal, self.clock.now())

        await self.update_with(context, organization, provider, changed)
