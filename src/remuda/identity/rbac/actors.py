"""Actors: users, service accounts and services that were authenticated earlier, and what they may do now.

What an actor was given then, such as the address of a console, is good only as long as its permissions are.
"""

from dataclasses import dataclass
from datetime import datetime

from remuda.access.principal import AccessList
from remuda.identity.kinds.common import LOCAL_ISSUER
from remuda.identity.kinds.users import ServiceAccount, User, user_id
from remuda.identity.rbac.service import Permissions
from remuda.identity.tokens.sessions import has_newer_password, lost_factors
from remuda.kernel.errors import Unauthenticated
from remuda.kernel.ids import is_id
from remuda.resources.crud import find
from remuda.store.contract import Store

_NO_ACCESS = AccessList()


@dataclass(frozen=True, slots=True, kw_only=True)
class Actors:
    """Present permissions of actors."""

    store: Store
    permissions: Permissions

    async def access(self, name: str, since: datetime, *, issuer: str = "", organization: str = "") -> AccessList:
        """Return the present permissions of an actor of an issuer (empty for our own) that was authenticated then.

        `organization` is the only one in which its identity provider vouches for it. There are no permissions without
        the actor, during and after a suspension, or after a new password or the loss of a second factor: each ends
        the logins before it.
        """
        try:
            if is_id(name):
                account = await find(self.store, ServiceAccount, name)
                return _NO_ACCESS if account is None else (await self.permissions.of_account(account)).access
            user = await find(self.store, User, user_id(name))
            if user is None:
                return await self._unknown(name, issuer)
            if await self._has_logged_out(user, since):
                return _NO_ACCESS
            # A login without the second factor that an organization requires was not let in there.
            resolved = await self.permissions.of_user(user, proof="factor", issuer=issuer)
        except Unauthenticated:
            return _NO_ACCESS
        return (resolved.restricted_to(organization) if organization else resolved).access

    async def _has_logged_out(self, user: User, since: datetime) -> bool:
        return (
            user.was_suspended_since(since)
            or await has_newer_password(self.store, user.name, since)
            or await lost_factors(self.store, user.name, since)
        )

    async def _unknown(self, name: str, issuer: str) -> AccessList:
        """Return the access of a service, or of a user whom only an external issuer knows, by the configuration."""
        if issuer not in {"", LOCAL_ISSUER}:
            return (await self.permissions.of_outsider(name, issuer=issuer)).access
        return (await self.permissions.of_system(name)).access
