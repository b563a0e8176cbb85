"""Service of suspensions: a platform administrator suspends a person everywhere, and resumes the suspension.

A suspension is part of the stored user, which every authentication reads: from that write on no login, token, browser
or watch of the person is accepted, in any organization and from any issuer. The sessions end next. Resuming ends them
once more, so that none comes back that a crash has left. Memberships and their states stay as they are.

A person whom only an external issuer knows gets a user with the suspension. Callers cannot suspend themselves: so
an administrator remains who can resume.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from remuda.access.checks import require_everywhere
from remuda.access.principal import Context
from remuda.http.responses import Collection
from remuda.identity.kinds.users import USER, Suspension, User, user_id
from remuda.identity.login.browser_sessions import BrowserLogins
from remuda.identity.lookups import audited_organizations
from remuda.identity.names import permission
from remuda.identity.suspensions.schema import SuspensionRead, SuspensionWrite
from remuda.identity.users.rules import email_address, new_user
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Forbidden, NotFound
from remuda.resources.crud import create_once, find, retry_on_conflict
from remuda.store.contract import Store
from remuda.store.logs import Record

READ, UPDATE = permission("users", "read"), permission("users", "update")
"""Permissions that are needed everywhere."""

_YOURSELF = "You cannot suspend yourself: let another platform administrator do it."


def read_suspension(user: User) -> SuspensionRead:
    found = user.spec.suspension
    assert found is not None, "the user is suspended"
    return SuspensionRead(id=user.name, subject=user.spec.subject, since=found.since, by=found.by, reason=found.reason)


def suspension_view(user: User) -> bytes:
    return msgspec.json.encode(read_suspension(user))


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspensions:
    """Service of suspensions."""

    store: Store
    clock: Clock
    logins: BrowserLogins

    def list(self, context: Context) -> Collection[User, list[SuspensionRead]]:
        """Return the suspended persons."""
        require_everywhere(context.principal, READ)
        return Collection(store=self.store, kind=User, view=suspension_view, index=("suspended", "yes"))

    async def create(self, context: Context, body: SuspensionWrite) -> SuspensionRead:
        """Suspend a person and end all sessions. A suspended one stays suspended as before."""
        require_everywhere(context.principal, UPDATE)
        subject = email_address(body.subject, "/subject")
        if user_id(subject) in {user_id(context.principal.subject), user_id(context.principal.actor)}:
            raise Forbidden(_YOURSELF)
        suspension = Suspension(since=self.clock.now(), by=context.principal.actor_name, reason=body.reason)
        user = await retry_on_conflict(lambda: self._suspend(context, subject, suspension))
        await self.logins.end_all(user.name)
        return read_suspension(user)

    async def delete(self, context: Context, suspension: str) -> None:
        """End a suspension. The person has to log in again."""
        require_everywhere(context.principal, UPDATE)
        found = await find(self.store, User, suspension)
        if found is None or found.spec.suspension is None:
            raise NotFound("Suspension", suspension)
        await self.logins.end_all(found.name)
        await retry_on_conflict(lambda: self._resume(context, suspension))

    async def _suspend(self, context: Context, subject: str, suspension: Suspension) -> User:
        found = await find(self.store, User, user_id(subject))
        if found is None:
            new = new_user(subject, (), context.principal)
            new = replace(new, spec=replace(new.spec, suspension=suspension))
            return await create_once(self.store, new, await self._records(context, new))
        if found.spec.suspension is not None:
            return found
        # Without creators an operation that is rolled back does not remove the user, and the suspension with it.
        spec = replace(found.spec, suspension=suspension, creators=())
        return await self.store.update(replace(found, spec=spec), log=await self._records(context, found))

    async def _resume(self, context: Context, name: str) -> None:
        found = await find(self.store, User, name)
        if found is not None and found.spec.suspension is not None:
            changed = replace(found, spec=replace(found.spec, suspension=None, resumed=self.clock.now()))
            await self.store.update(changed, log=await self._records(context, found))

    async def _records(self, context: Context, user: User) -> Sequence[Record]:
        """Return audit records for the user's organizations and, last, for the system, which also receives failures."""
        organizations = [*await audited_organizations(self.store, user), None]
        audited = (context.audit(USER.plural, user.name, organization=each) for each in organizations)
        return [record for records in audited for record in records]
