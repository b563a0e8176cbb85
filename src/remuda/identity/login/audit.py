"""Audit records of requests from browsers.

A success is written in the same commit as its effect, for every organization that the user agreed to be a member of, or
for the system if there is none. A failure is recorded for the system only. It names the account only if one exists, and
never the text that was typed, which may be a password.
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
class LoginAudit:
    """Audit records of the login pages."""

    store: Store
    log: Log

    async def succeeded(
        self, request: BrowserRequest, user: User, target: AuditTarget | None = None
    ) -> Sequence[Record]:
        """Return the records of a success, for the commit of its effect. The target is the user, unless it is given."""
        return await self._for_organizations(request, user, _DONE, target)

    async def denied(self, request: BrowserRequest, user: User) -> Sequence[Record]:
        """Return the records of a device that a user denied, for the commit of that decision."""
        return await self._for_organizations(request, user, _DENIED)

    def accepted(self, request: BrowserRequest, user: User, organization: str) -> Sequence[Record]:
        """Return the record of an accepted invitation: the first that the organization sees of the user."""
        return [_record(request, user, _DONE, organization)]

    def declined(self, request: BrowserRequest, user: User) -> Sequence[Record]:
        """Return the record of a declined invitation, which is for the system only."""
        return [_record(request, user, _DENIED)]

    async def failed(self, request: BrowserRequest, user: User | None, *more: Record) -> None:
        """Write a record of a failed attempt, with the user if the account exists, and others with it."""
        await self.log.append([_record(request, user, _UNKNOWN_CALLER), *more])

    async def _for_organizations(
        self, request: BrowserRequest, user: User, status: int, target: AuditTarget | None = None
    ) -> Sequence[Record]:
        organizations: Sequence[str | None] = await audited_organizations(self.store, user) or [None]
        return [_record(request, user, status, organization, target) for organization in organizations]


def _record(
    request: BrowserRequest,
    user: User | None,
    status: int,
    organization: str | None = None,
    target: AuditTarget | None = None,
) -> Record:
    return audit_record(
        component="identity",
        actor=Actor(subject="" if user is None else user.spec.subject),
        operation=AuditOperation(method=request.method, route=request.route),
        resource=target or AuditTarget(type=USER.plural, id="" if user is None else user.name),
        status=status,
        trace_id=request.trace_id,
        organization=organization,
    )
