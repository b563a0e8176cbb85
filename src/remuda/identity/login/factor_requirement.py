"""Organizations that require a second factor of a login.

Such an organization gives no permissions to a login without one (`identity.rbac.acl`), and so do the roles that the
configuration binds to a user, if it says so. A login therefore leads the user
to set one up; who goes on without has only the other organizations. A stored login that lacks one is not used again for
another client: the user logs in once more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from remuda.access.principal import EVERYWHERE
from remuda.identity.kinds.factors import AuthenticationMethod, proof_of
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import User
from remuda.identity.login.browser_sessions import ActiveLogin
from remuda.identity.rbac.service import Permissions
from remuda.identity.tokens.sessions import provider_organization
from remuda.kernel.clock import Clock
from remuda.resources.conventions import NAME
from remuda.resources.crud import find
from remuda.store.contract import Store

DECLINED_FOR = timedelta(minutes=10)
"""Time for which a login serves other pages after its user went on without a second factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorRequirement:
    """Requirement of a second factor by the organizations of a user."""

    store: Store
    clock: Clock
    permissions: Permissions

    async def closed_organizations(
        self, user: User, *, methods: tuple[AuthenticationMethod, ...], provider: str
    ) -> Sequence[str]:
        """Return the names of the organizations that are closed to a login by these methods, at this provider.

        `EVERYWHERE` stands for the roles that the configuration binds to the user.
        """
        access = await self.permissions.of_user(user, proof=proof_of(methods, provider))
        organization = await provider_organization(self.store, provider)
        closed = (access.restricted_to(organization) if organization else access).closed
        if EVERYWHERE in closed:
            return [EVERYWHERE]
        found = [await find(self.store, Organization, each) for each in closed]
        return sorted(each.metadata.labels.get(NAME, each.name) for each in found if each is not None)

    async def is_unmet(self, current: ActiveLogin) -> bool:
        """Tell whether a login lacks a second factor, unless its user has just decided to go on without one."""
        spec = current.login.spec
        now, authenticated = self.clock.now(), spec.authenticated
        if spec.is_declined and authenticated is not None and now < authenticated + DECLINED_FOR:
            return False
        return bool(await self.closed_organizations(current.user, methods=spec.methods, provider=spec.provider))
