"""The room's port: who may do what.

`of_user`, `of_account` and `of_system` work out an access list, or remember it for as long as nothing has changed that
it was made from: a right that was taken away is gone with the next request. The others answer callers.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from remuda.access.checks import allow_everywhere, allow_in_organization
from remuda.access.principal import Context, Principal
from remuda.http.responses import Collection
from remuda.identity.kinds.roles import Role
from remuda.identity.kinds.tokens import Revocation
from remuda.identity.kinds.users import ServiceAccount, User
from remuda.identity.names import permission
from remuda.identity.rbac.acl import AccessLists, Bindings, Standing, check_group_role
from remuda.identity.rbac.roles import check_grant, is_grantable, role_id
from remuda.identity.rbac.schema import AclRead, RevocationRead, RoleRead, read_acl, read_role, revocation_view
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.bearer import Bearer
from remuda.kernel.errors import Invalid, Malformed, NotFound, Unauthenticated
from remuda.resources.conventions import NAME, organization_of
from remuda.store.contract import Store
from remuda.store.derived import DerivedCache

READ_ROLES = permission("roles", "read")
"""The right to list the roles that an organization's groups can have."""
READ_REVOCATIONS = permission("allocations", "read")
"""The right, held everywhere, to follow what is revoked.

The built-in roles are those that existing clients know, and none has a right of this name. Every service's role holds
this one everywhere, and no role that a group can have holds it at all."""

_STANDINGS = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Who may do what. Construction refuses a configuration that binds roles wrongly (Invalid)."""

    store: Store
    settings: IdentitySettings
    _bindings: Bindings = field(init=False, repr=False)
    _lists: AccessLists = field(init=False, repr=False)
    _kept: DerivedCache[tuple[str, ...], Standing] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_bindings", Bindings(self.settings))
        object.__setattr__(self, "_lists", AccessLists(self.store, self._bindings))
        object.__setattr__(self, "_kept", DerivedCache(self.store, _STANDINGS))

    async def check(self) -> None:
        """Raise Invalid if the configuration names a role that is not there, or gives a group one that it must not.

        Ask at the start, after the built-in roles were written: an operator's own roles are in the store alone.
        """
        for name, place in self._bindings.roles:
            await self._role(name, place)
        for name, place in self._bindings.group_roles:
            check_group_role(place, name, (await self._role(name, place)).spec)

    async def _role(self, name: str, place: str) -> Role:
        try:
            return await self.store.get(Role, role_id(name))
        except NotFound:
            known = sorted(role.metadata.labels.get(NAME, "") for role in (await self.store.list(Role)).items)
            remedy = f"name one of {', '.join(filter(None, known))}"
            raise Invalid(place, f"names the role {name}, which there is not", remedy=remedy) from None

    async def of_user(self, user: User, *, issuer: str = "", groups: Sequence[str] = ()) -> Standing:
        """Return how a user stands, as one of an issuer (ours has the empty name) who is in groups there."""
        if not user.is_active:
            raise Unauthenticated("user identity not found or inactive")
        key = ("user", user.name, user.spec.subject, issuer, *groups)
        return await self._remembered(key, lambda: self._lists.of_user(user, issuer, groups))

    async def of_outsider(self, subject: str, *, issuer: str, groups: Sequence[str] = ()) -> Standing:
        """Return how somebody stands whom only an external issuer knows: as the configuration says, if it does."""
        key = ("outsider", subject, issuer, *groups)
        return await self._remembered(key, lambda: self._lists.of_outsider(subject, issuer, groups))

    async def of_account(self, account: ServiceAccount) -> Standing:
        if account.is_deleting:
            raise Unauthenticated("service account not found")
        key = ("account", account.name, organization_of(account))
        return await self._remembered(key, lambda: self._lists.of_account(account))

    async def of_system(self, name: str) -> Standing:
        """Return how a service stands, or raise Unauthenticated if it is not configured."""
        return await self._remembered(("system", name), lambda: self._lists.of_system(name))

    async def of_bearer(self, bearer: Bearer, *, with_groups: bool = True) -> Standing:
        """Return how whoever shows a good token stands. One organization's word counts in that organization alone.

        The groups into which an external issuer puts somebody count at their own call, and not (`with_groups`) where
        another service is told of them.
        """
        if bearer.account is not None:
            return await self.of_account(bearer.account)
        if bearer.type == "system":
            return await self.of_system(bearer.subject)
        groups = bearer.groups if with_groups else ()
        if bearer.user is None:
            return await self.of_outsider(bearer.subject, issuer=bearer.issuer, groups=groups)
        standing = await self.of_user(bearer.user, issuer=bearer.issuer, groups=groups)
        return standing.only_in(bearer.organization) if bearer.organization else standing

    async def _remembered(self, key: tuple[str, ...], make: Callable[[], Awaitable[Standing]]) -> Standing:
        standing = self._kept.find(key)
        if standing is None:
            stamp = self.store.change_counter()
            standing = await make()
            self._kept.put(key, standing.made_from, stamp, standing)
        return standing

    async def check_grantable(self, principal: Principal, role_ids: Sequence[str], organization: str) -> None:
        """Raise unless every role is there and this principal may put it into a group of the organization."""
        for each in role_ids:
            try:
                role = await self.store.get(Role, each)
            except NotFound:
                raise Malformed(f"role ID {each} does not exist") from None
            check_grant(principal, role, organization)

    async def list_roles(self, context: Context, organization: str) -> list[RoleRead]:
        """Return the roles that groups can have, by name, and whether the caller may give each in this organization."""
        allow_in_organization(context.principal, READ_ROLES, organization)
        found = (await self.store.list(Role)).items
        roles = [role for role in found if not role.spec.protected and NAME in role.metadata.labels]
        roles.sort(key=lambda role: (role.metadata.labels[NAME], role.name))
        return [read_role(role, grantable=is_grantable(context.principal, role, organization)) for role in roles]

    def acl(self, context: Context, organization: str | None = None) -> AclRead:
        """Return what the caller may do. A foreign organization adds nothing and is no fault."""
        return read_acl(context.principal.access, organization)

    def revocations(self, context: Context) -> Collection[Revocation, list[RevocationRead]]:
        """Return everything that was revoked before its time, for services that check tokens themselves."""
        allow_everywhere(context.principal, READ_REVOCATIONS)
        return Collection(store=self.store, kind=Revocation, view=revocation_view)
