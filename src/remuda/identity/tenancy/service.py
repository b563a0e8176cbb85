"""Organizations: who sees them, and who may make, change and remove them.

Whoever may read organizations everywhere sees all of them. Everybody else sees those they belong to, whatever else
they may do there: a user by its memberships, of which a suspended one counts too, a service account by its one home.
A user for whom one organization alone vouches sees no other one.

Projects, and what keeps them: references of other services, which are finalizers of the project.

OAuth2 providers: those of the whole system, which everybody may know of, and those of an organization.

A provider's secret goes in and never comes out. A provider that its organization's domain names is kept by that: asked
to go, it is marked, and goes when the organization names another, or goes itself.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from msgspec.structs import replace

from remuda.access.checks import (
    allow_everywhere,
    allow_in_organization,
    allow_in_project,
    allow_naming_organization,
    is_allowed_in_project,
)
from remuda.access.principal import Context, Permission, Principal, Verb
from remuda.http.pagination import Places
from remuda.http.responses import Collection, Rendered, bare_all
from remuda.identity.kinds.oauth import OAUTH2_PROVIDER, OAuth2Provider
from remuda.identity.kinds.tenancy import IN_CARE, ORGANIZATION, PROJECT, Organization, Project
from remuda.identity.kinds.users import Group, OrganizationUser, user_id
from remuda.identity.lookups import find_active_user
from remuda.identity.names import permission
from remuda.identity.tenancy import rules
from remuda.identity.tenancy.schema import (
    OrganizationQuery,
    OrganizationRead,
    OrganizationSpecWire,
    OrganizationWrite,
    ProjectRead,
    ProjectWrite,
    ProviderRead,
    ProviderWrite,
)
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Invalid, Malformed, NotFound
from remuda.kernel.ids import is_id
from remuda.kernel.text import folded
from remuda.resources import conventions as labels
from remuda.resources.crud import (
    check_reference,
    check_state,
    find_in,
    get_in,
    request_deletion,
    until_written,
    witnessed,
)
from remuda.resources.metadata import check_tags
from remuda.store.contract import Store
from remuda.store.logs import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Organizations:
    """What can be asked of organizations."""

    store: Store
    clock: Clock

    async def list_seen(
        self, context: Context, query: OrganizationQuery
    ) -> Collection[Organization, list[OrganizationRead]] | Rendered[list[OrganizationRead]]:
        """Return those that the caller belongs to, or all. Few are read one by one, not looked for among all."""
        seen = await self._seen_by(context, query.email)
        if query.watch and query.email is not None:
            raise Malformed("A list by email cannot be watched: leave watch out, or email.")
        if query.watch and seen is not None:
            # A stream ends when access changes, which a suspended membership is no part of.
            seen &= context.principal.access.organizations.keys()
        if seen is None or query.watch or query.limit is not None or query.continue_ is not None:
            visible = None if seen is None else (lambda organization: organization.name in seen)
            return Collection(store=self.store, kind=Organization, view=rules.ORGANIZATION_VIEW, visible=visible)
        return await self._few(context, seen)

    async def _few(self, context: Context, seen: frozenset[str]) -> Rendered[list[OrganizationRead]]:
        """Return those with these ids; one that is gone, though a membership still names it, is left out."""
        version = (await self.store.list_names(Organization, limit=1)).version
        found = []
        for name in sorted(seen):
            with suppress(NotFound):
                found.append(await self.store.get_view(Organization, name, rules.ORGANIZATION_VIEW))
        views = bare_all(rules.ORGANIZATION_VIEW, found)
        place = Places(context.principal.access).write(version)
        return Rendered(b"[" + b",".join(views) + b"]", headers={"X-Resource-Version": place})

    async def _seen_by(self, context: Context, email: str | None) -> frozenset[str] | None:
        """Return the ids of those to show: the caller's, or those of the user with this address. None means all."""
        principal = context.principal
        if email is None and permission("organizations", "read") in principal.access.everywhere:
            return None
        if principal.type == "service":
            return frozenset(principal.organizations)
        if email is None and principal.type == "system":
            raise NotFound("User", principal.subject)
        seen = await self._memberships(await self._member(principal, email))
        return seen if principal.vouched_by is None else seen & {principal.vouched_by}

    async def create(self, context: Context, wanted: OrganizationWrite) -> Organization:
        """Make an organization. It is named after the request, so sending that again does not make another."""
        allow_everywhere(context.principal, permission("organizations", "create"))
        await self._check(context.operation, wanted)
        organization = rules.new_organization(context.operation, wanted, context.principal)
        try:
            return await self.store.create(organization, log=_witnessed(context, organization))
        except AlreadyExists:  # the same request, whose answer was lost
            return await self.store.get(Organization, organization.name)

    async def get(self, context: Context, organization: str) -> Organization:
        allow_in_organization(context.principal, permission("organizations", "read"), organization)
        return await self.store.get(Organization, organization)

    async def update(self, context: Context, organization: str, wanted: OrganizationWrite) -> None:
        """Replace what a client may change of an organization."""
        allow_in_organization(context.principal, permission("organizations", "update"), organization)

        async def change() -> None:
            found = await self.store.get(Organization, organization)
            check_state(context, found, rules.writable_organization(found))
            await self._check(organization, wanted)
            changed = rules.changed_organization(found, wanted, context.principal, self.clock.now())
            await self.store.update(changed, log=_witnessed(context, found))

        await until_written(change)

    async def delete(self, context: Context, organization: str) -> None:
        """Ask for an organization to go, and for everything in it."""
        allow_everywhere(context.principal, permission("organizations", "delete"))

        async def delete() -> None:
            found = await self.store.get(Organization, organization)
            writable = rules.writable_organization(found)
            await request_deletion(self.store, context, found, writable, _witnessed(context, found))

        await until_written(delete)

    async def _member(self, principal: Principal, email: str | None) -> str:
        """Return the id of the user whose organizations are asked for."""
        own = user_id(principal.subject)
        if email is None or (principal.type == "user" and user_id(email) == own):
            return own
        allow_everywhere(principal, permission("users", "read"))
        user = await find_active_user(self.store, user_id(email))
        if user is None:
            raise NotFound("User", user_id(email))
        return user.name

    async def _memberships(self, user: str) -> frozenset[str]:
        page = await self.store.list(OrganizationUser, labels={labels.USER: user})
        return frozenset(labels.organization_of(membership) for membership in page.items)

    async def _check(self, organization: str, wanted: OrganizationWrite) -> None:
        """Refuse what breaks a rule. That a domain has one owner, the controller keeps: here it is only told early."""
        check_tags(wanted.metadata.tags)
        rules.check_organization(wanted.spec)
        if wanted.spec.organization_type == "domain":
            await self._check_provider(organization, wanted.spec)
            await self._check_domain(organization, folded(wanted.spec.domain))

    async def _check_provider(self, organization: str, wanted: OrganizationSpecWire) -> None:
        home = None if wanted.provider_scope == "global" else organization
        if await find_in(self.store, OAuth2Provider, wanted.provider_id, home) is None:
            raise Invalid(
                "spec.providerID",
                f"is no provider of the scope {wanted.provider_scope}",
                remedy="name one that is there",
            )

    async def _check_domain(self, organization: str, domain: str) -> None:
        others = (await self.store.list(Organization, index=("domain", domain))).items
        if any(other.name != organization and not other.is_marked for other in others):
            raise Invalid(
                "spec.domain", "belongs to another organization", remedy="choose another, or have it given up there"
            )


def _witnessed(context: Context, organization: Organization) -> Sequence[Record]:
    """Return the audit record of a write: it belongs to the organization itself."""
    return context.witness(ORGANIZATION.plural, organization.name, organization=organization.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Projects:
    """What can be asked of projects."""

    store: Store
    clock: Clock

    def list_all(self, context: Context) -> Collection[Project, list[ProjectRead]]:
        """Return the projects of all organizations, to those who may read every one of them."""
        allow_everywhere(context.principal, permission("projects", "read"))
        return Collection(store=self.store, kind=Project, view=rules.PROJECT_VIEW)

    async def list_in(self, context: Context, organization: str) -> Collection[Project, list[ProjectRead]]:
        """Return the projects of an organization that the caller may read: perhaps none, but that is no refusal."""
        right, principal = permission("projects", "read"), context.principal
        allow_naming_organization(principal, right, organization)
        await self.store.get(Organization, organization)

        def visible(project: Project) -> bool:
            return is_allowed_in_project(principal, right, organization, project.name)

        return Collection(
            store=self.store,
            kind=Project,
            view=rules.PROJECT_VIEW,
            labels={labels.ORGANIZATION: organization},
            visible=None if _is_allowed_in_all(context, right, organization) else visible,
        )

    async def create(self, context: Context, organization: str, wanted: ProjectWrite) -> Project:
        """Make a project. It is named after the request, so sending that again does not make another."""
        allow_in_organization(context.principal, permission("projects", "create"), organization)
        home = await self.store.get(Organization, organization)
        await self._check(organization, wanted)
        project = rules.new_project(context.operation, home, wanted, context.principal)
        try:
            return await self.store.create(project, log=witnessed(context, PROJECT.plural, project))
        except AlreadyExists:  # the same request, whose answer was lost
            return await self.store.get(Project, project.name)

    async def get(self, context: Context, organization: str, project: str) -> Project:
        return await self._project(context, permission("projects", "read"), organization, project)

    async def update(self, context: Context, organization: str, project: str, wanted: ProjectWrite) -> None:
        """Replace what a client may change of a project."""

        async def change() -> None:
            found = await self._project(context, permission("projects", "update"), organization, project)
            check_state(context, found, rules.writable_project(found))
            await self._check(organization, wanted)
            changed = rules.changed_project(found, wanted, context.principal, self.clock.now())
            await self.store.update(changed, log=witnessed(context, PROJECT.plural, found))

        await until_written(change)

    async def delete(self, context: Context, organization: str, project: str) -> None:
        """Ask for a project to go, as soon as nothing needs it."""

        async def delete() -> None:
            found = await self._project(context, permission("projects", "delete"), organization, project)
            log = witnessed(context, PROJECT.plural, found)
            await request_deletion(self.store, context, found, rules.writable_project(found), log)

        await until_written(delete)

    async def add_reference(self, context: Context, organization: str, project: str, reference: str) -> None:
        """Keep a project from going, for something of another service."""

        async def change() -> None:
            right = permission("projects/references", "create")
            found = await self._project(context, right, organization, project)
            check_reference(reference, own=IN_CARE)
            if found.is_marked:
                raise Malformed("the project is being deleted: nothing new can keep it, choose another")
            if reference not in found.metadata.finalizers:
                await self._write_finalizers(context, found, (*found.metadata.finalizers, reference))

        await until_written(change)

    async def remove_reference(self, context: Context, organization: str, project: str, reference: str) -> None:
        """Let a project go, as far as something of another service is concerned."""

        async def change() -> None:
            right = permission("projects/references", "delete")
            found = await self._project(context, right, organization, project)
            check_reference(reference, own=IN_CARE)
            if reference in found.metadata.finalizers:
                kept = tuple(each for each in found.metadata.finalizers if each != reference)
                await self._write_finalizers(context, found, kept)

        await until_written(change)

    async def _project(self, context: Context, right: Permission, organization: str, project: str) -> Project:
        allow_in_project(context.principal, right, organization, project)
        return await get_in(self.store, Project, project, organization)

    async def _write_finalizers(self, context: Context, project: Project, finalizers: Sequence[str]) -> None:
        changed = replace(project, metadata=replace(project.metadata, finalizers=tuple(finalizers)))
        await self.store.update(changed, log=witnessed(context, PROJECT.plural, project))

    async def _check(self, organization: str, wanted: ProjectWrite) -> None:
        check_tags(wanted.metadata.tags)
        await self._check_groups(organization, wanted.spec.group_ids)

    async def _check_groups(self, organization: str, groups: Iterable[str]) -> None:
        for group in groups:
            if not await self._has_group(organization, group):
                raise Malformed(f"group ID {group} does not exist")

    async def _has_group(self, organization: str, group: str) -> bool:
        # Only an id is a name that can be looked for.
        return is_id(group) and await find_in(self.store, Group, group, organization, marked=False) is not None


def _is_allowed_in_all(context: Context, right: Permission, organization: str) -> bool:
    access = context.principal.access
    inside = access.organizations.get(organization)
    return right in access.everywhere or (inside is not None and right in inside.permissions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Providers:
    """What can be asked of providers."""

    store: Store
    clock: Clock

    def list_platform(self) -> Collection[OAuth2Provider, list[ProviderRead]]:
        """Return those of the whole system at which we are a client: the others are nowhere to log in."""
        return Collection(store=self.store, kind=OAuth2Provider, view=rules.PROVIDER_VIEW, index=("platform", "login"))

    async def list_in(self, context: Context, organization: str) -> Collection[OAuth2Provider, list[ProviderRead]]:
        await self._home(context, "read", organization)
        where = {labels.ORGANIZATION: organization}
        return Collection(store=self.store, kind=OAuth2Provider, view=rules.PROVIDER_VIEW, labels=where)

    async def create(self, context: Context, organization: str, wanted: ProviderWrite) -> OAuth2Provider:
        """Make a provider. It is named after the request, so sending that again does not make another."""
        home = await self._home(context, "create", organization)
        _check(wanted)
        provider = rules.new_provider(context.operation, home, wanted, context.principal)
        try:
            return await self.store.create(provider, log=witnessed(context, OAUTH2_PROVIDER.plural, provider))
        except AlreadyExists:  # the same request, whose answer was lost
            return await self.store.get(OAuth2Provider, provider.name)

    async def update(self, context: Context, organization: str, provider: str, wanted: ProviderWrite) -> None:
        """Replace what a client may change of a provider."""

        async def change() -> None:
            found = await self._provider(context, "update", organization, provider)
            check_state(context, found, rules.writable_provider(found))
            _check(wanted)
            changed = rules.changed_provider(found, wanted, context.principal, self.clock.now())
            await self.store.update(changed, log=witnessed(context, OAUTH2_PROVIDER.plural, found))

        await until_written(change)

    async def delete(self, context: Context, organization: str, provider: str) -> None:
        """Ask for a provider to go, as soon as no domain names it."""

        async def delete() -> None:
            found = await self._provider(context, "delete", organization, provider)
            log = witnessed(context, OAUTH2_PROVIDER.plural, found)
            await request_deletion(self.store, context, found, rules.writable_provider(found), log)

        await until_written(delete)

    async def _home(self, context: Context, verb: Verb, organization: str) -> Organization:
        allow_in_organization(context.principal, permission("oauth2providers", verb), organization)
        return await self.store.get(Organization, organization)

    async def _provider(self, context: Context, verb: Verb, organization: str, provider: str) -> OAuth2Provider:
        allow_in_organization(context.principal, permission("oauth2providers", verb), organization)
        return await get_in(self.store, OAuth2Provider, provider, organization)


def _check(wanted: ProviderWrite) -> None:
    check_tags(wanted.metadata.tags)
    rules.check_issuer(wanted.spec.issuer)
