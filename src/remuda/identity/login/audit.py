"""Audit records of what happens in browsers, where nobody is known before they have logged in.

A success is written in the commit of what it made, into the records of every organization that the user is a member of,
so that each can see who comes and goes; of what belongs to none, into those of the system. A failure goes to the system
alone: it may be a stranger's. It names the account only if there is one, and never what was typed, which may well have
been a password.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.http.audit import Actor, AuditOperation, AuditTarget, audit_record
from remuda.identity.kinds.users import USER, User
from remuda.identity.login.browser_state import BrowserRequest
from remuda.identity.lookups import audited_organizations
from remuda.store.contract import Store
from remuda.store.logs import Log, Record

_DONE, _UNKNOWN_CALLER, _DENIED = 302, 401, 403


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Makes and keeps them."""

    store: Store
    log: Log

    async def succeeded(self, visit: BrowserRequest, user: User) -> Sequence[Record]:
        """Return the records of something that a user did, for the commit of it."""
        return await self._told(visit, user, _DONE)

    async def denied(self, visit: BrowserRequest, user: User) -> Sequence[Record]:
        """Return the records of something that a user did not allow, for the commit of that."""
        return await self._told(visit, user, _DENIED)

    async def failed(self, visit: BrowserRequest, user: User | None) -> None:
        """Keep a record of an attempt that failed, at the account of this user if there is one."""
        await self.log.append([_record(visit, user, _UNKNOWN_CALLER)])

    async def _told(self, visit: BrowserRequest, user: User, status: int) -> Sequence[Record]:
        organizations: Sequence[str | None] = await audited_organizations(self.store, user) or [None]
        return [_record(visit, user, status, organization) for organization in organizations]


def _record(visit: BrowserRequest, user: User | None, status: int, organization: str | None = None) -> Record:
    return audit_record(
        component="identity",
        actor=Actor(subject="" if user is None else user.spec.subject),
        operation=AuditOperation(method=visit.verb, route=visit.route),
        resource=AuditTarget(type=USER.plural, id="" if user is None else user.name),
        status=status,
        trace_id=visit.trace_id,
        organization=organization,
    )
