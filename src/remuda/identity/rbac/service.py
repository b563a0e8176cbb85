"""Permissions of callers, roles and revocations.

Access lists are cached until one of the objects that they were computed from changes, so a revoked permission is gone
with the next request.
"""

from collections.abc import Awaitable, Callable, Sequence

from remuda.access.checks import require_everywhere, require_in_organization
from remuda.access.principal import Context, Principal
from remuda.http.responses import Collection
from remuda.identity.kinds.factors import LoginProof
from remuda.identity.kinds.tokens import Revocation
from remuda.identity.kinds.users import Role, ServiceAccount, User
from remuda.identity.names import permission
from remuda.identity.rbac.acl import AccessLists, Bindings, ResolvedAccess, check_group_role
from remuda.identity.rbac.roles import check_grant, is_grantable, role_id
from remuda.identity.rbac.schema import AclRead, RevocationRead, RoleRead, read_acl, read_role, revocation_view
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.bearer import Bearer
from remuda.kernel.errors import Invalid, Malformed, NotFound, Unauthenticated
from remuda.resources.conventions import NAME, organization_of
from remuda.store.contract import Store
from remuda.store.derived import DerivedCache

READ_ROLES = permission("roles", "read")
READ_REVOCATIONS = permission("allocations", "read")
"""Global permission to watch revocations: every service's role has it, and no role of a group."""

_CACHE_SIZE = 8192


class Permissions:
    """Service of access lists, roles and revocations. Raises Invalid for invalid bindings in the configuration."""

    def __init__(self, *, store: Store, settings: IdentitySettings) -> None:
        self.store, self.settings = store, settings
        self._bindings = Bindings(settings)
        self._lists = AccessLists(store, self._bindings)
        self._cache: DerivedCache[tuple[str, ...], ResolvedAccess] = DerivedCache(store, _CACHE_SIZE)

    async def check(self) -> None:
        """Raise Invalid if the configuration binds a role that does not exist, or one that groups must not have.

        Call it at the start, after the built-in roles were written: an operator's own roles are only in the store.
        """
        for name, key_path in self._bindings.roles:
            await self._role(name, key_path)
        for name, key_path in self._bindings.group_roles:
            check_group_role(key_path, name, (await self._role(name, key_path)).spec)

    async def _role(self, name: str, key_path: str) -> Role:
        try:
            return await self.store.get(Role, role_id(name))
        except NotFound:
            known = sorted(role.metadata.labels.get(NAME, "") for role in (await self.store.list(Role)).items)
            remedy = f"use one of {', '.join(filter(None, known))}"
            raise Invalid(key_path, f"names the role {name}, which does not exist", remedy=remedy) from None

    async def of_user(
        self, user: User, *, proof: LoginProof, issuer: str = "", groups: Sequence[str] = ()
    ) -> ResolvedAccess:
        """Return the access of a user of an issuer (empty for our own) with these groups there, by a login's proof."""
        if not user.is_active:
            raise Unauthenticated("user identity not found or inactive")
        key = ("user", proof, user.name, user.spec.subject, issuer, *groups)
        return await self._cached(key, lambda: self._lists.of_user(user, issuer, groups, proof))

    async def of_outsider(self, subject: str, *, issuer: str, groups: Sequence[str] = ()) -> ResolvedAccess:
        """Return the access of a user whom only an external issuer knows, from configured bindings."""
        key = ("outsider", subject, issuer, *groups)
        return await self._cached(key, lambda: self._lists.of_outsider(subject, issuer, groups))

    async def of_account(self, account: ServiceAccount) -> ResolvedAccess:
        if account.is_deleting:
            raise Unauthenticated("service account not found")
        key = ("account", account.name, organization_of(account))
        return await self._cached(key, lambda: self._lists.of_account(account))

    async def of_system(self, name: str) -> ResolvedAccess:
        """Return the access of a service, or raise Unauthenticated if it is not configured."""
        return await self._cached(("system", name), lambda: self._lists.of_system(name))

    async def of_role(self, name: str) -> ResolvedAccess:
        """Return the access of a service in this process, which has the role of this name."""
        return await self._cached(("role", name), lambda: self._lists.of_role(role_id(name)))

    async def of_bearer(self, bearer: Bearer, *, with_groups: bool = True) -> ResolvedAccess:
        """Return the access of the bearer of a valid token, restricted to the organization whose provider issued it.

        Groups of an external issuer apply to the bearer's own calls, and not (`with_groups`) if another service is told
        of them.
        """
        if bearer.account is not None:
            return await self.of_account(bearer.account)
        if bearer.type == "system":
            return await self.of_system(bearer.subject)
        groups = bearer.groups if with_groups else ()
        if bearer.user is None:
            return await self.of_outsider(bearer.subject, issuer=bearer.issuer, groups=groups)
        access = await self.of_user(bearer.user, proof=bearer.proof, issuer=bearer.issuer, groups=groups)
        return access.restricted_to(bearer.organization) if bearer.organization else access

    async def _cached(self, key: tuple[str, ...], compute: Callable[[], Awaitable[ResolvedAccess]]) -> ResolvedAccess:
        access = self._cache.find(key)
        if access is None:
            counter = self.store.change_counter()
            access = await compute()
            self._cache.put(key, access.dependencies, counter, access)
        return access

    async def check_grantable(self, principal: Principal, role_ids: Sequence[str], organization: str) -> None:
        """Raise unless every role exists and the principal may assign it to a group of the organization."""
        for each in role_ids:
            try:
                role = await self.store.get(Role, each)
            except NotFound:
                raise Malformed(f"role ID {each} does not exist") from None
            check_grant(principal, role, organization)

    async def list_roles(self, context: Context, organization: str) -> list[RoleRead]:
        """Return the roles that groups can have, by name, and whether the caller may grant each of them."""
        require_in_organization(context.principal, READ_ROLES, organization)
        found = (await self.store.list(Role)).items
        roles = [role for role in found if not role.spec.protected and NAME in role.metadata.labels]
        roles.sort(key=lambda role: (role.metadata.labels[NAME], role.name))
        return [read_role(role, grantable=is_grantable(context.principal, role, organization)) for role in roles]

    def acl(self, context: Context, organization: str | None = None) -> AclRead:
        """Return the permissions of the caller. An unknown organization adds nothing and is not an error."""
        who = context.principal
        return read_acl(who.access, organization, closed=who.closed, caller_name=who.display_name)

    def revocations(self, context: Context) -> Collection[Revocation, list[RevocationRead]]:
        """Return all revocations, for services that verify tokens themselves."""
        require_everywhere(context.principal, READ_REVOCATIONS)
        return Collection(store=self.store, kind=Revocation, view=revocation_view)
