"""Organizations: who sees them, and who may make, change and remove them.

Whoever may read organizations everywhere sees all of them. Everybody else sees those they belong to, whatever else
they may do there: a user by its memberships, of which a suspended one counts too, a service account by its one home.
A user for whom one organization alone vouches sees no other one.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from remuda.access.checks import allow_everywhere, allow_in_organization
from remuda.access.principal import Context, Principal
from remuda.http.pagination import Places
from remuda.http.responses import Collection, Rendered, bare_all
from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.kinds.tenancy import ORGANIZATION, Organization
from remuda.identity.kinds.users import OrganizationUser, user_id
from remuda.identity.lookups import find_active_user
from remuda.identity.permissions import permission
from remuda.identity.tenancy import rules
from remuda.identity.tenancy.schema import OrganizationQuery, OrganizationRead, OrganizationSpecWire, OrganizationWrite
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Invalid, Malformed, NotFound
from remuda.kernel.text import folded
from remuda.resources import conventions as labels
from remuda.resources.crud import check_state, find_in, request_deletion, until_written
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
