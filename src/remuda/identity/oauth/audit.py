"""Audit records of the token and revocation endpoints.

Each record names the owner of the session or token, and is written in the commit of its effect: for every organization
of the user, for that of a service account, or for the system. Its status is that of the response, so a session that
ends because of a rejected request is recorded with the error's status.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.http.audit import Actor, AuditOperation, AuditTarget, audit_record
from remuda.identity.kinds.tokens import REVOCATION, SESSION, Session
from remuda.identity.kinds.users import ServiceAccount, User
from remuda.identity.lookups import audited_organizations
from remuda.identity.tokens.jwt import Claims
from remuda.kernel.names import display_name
from remuda.resources.conventions import NAME
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Record

TOKEN = AuditOperation(method="POST", route="/oauth2/v2/token")
REVOKE = AuditOperation(method="POST", route="/oauth2/v2/revoke")

_OK, _REJECTED = 200, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAudit:
    """Audit records of one request."""

    store: Store
    operation: AuditOperation
    trace_id: str
    operator: str = ""
    """Operator of the machine who used an operator token, or empty."""

    async def of_session(self, session: str, *, user: str, client: str) -> Sequence[Record]:
        """Return the records of a session that begins, is refreshed or ends on request. All arguments are ids."""
        return await self._of_user(user, AuditTarget(type=SESSION.plural, id=session), client, _OK)

    async def of_forced_end(self, session: Session) -> Sequence[Record]:
        """Return the records of a session that ends because a request is rejected."""
        target = AuditTarget(type=SESSION.plural, id=session.name)
        return await self._of_user(session.spec.user, target, session.spec.client, _REJECTED)

    async def of_revocation(self, claims: Claims) -> Sequence[Record]:
        target = AuditTarget(type=REVOCATION.plural, id=claims.jti)
        if claims.uid:
            return await self._of_user(claims.uid, target, claims.cid, _OK)
        account = await find(self.store, ServiceAccount, claims.sub) if claims.oid else None
        name = "" if account is None else display_name(account.metadata.labels.get(NAME, ""))
        return [self._record(claims.sub, target, "", _OK, claims.oid or None, name=name)]

    async def _of_user(self, name: str, target: AuditTarget, client: str, status: int) -> Sequence[Record]:
        user = await find(self.store, User, name)
        if user is None:  # it is being deleted
            return [self._record(name, target, client, status, None)]
        organizations: Sequence[str | None] = await audited_organizations(self.store, user) or [None]
        return [self._record(user.spec.subject, target, client, status, each) for each in organizations]

    def _record(
        self,
        subject: str,
        target: AuditTarget,
        client: str,
        status: int,
        organization: str | None,
        *,
        name: str = "",
    ) -> Record:
        return audit_record(
            component="identity",
            actor=Actor(subject=subject, service=f"operator {self.operator}" if self.operator else None, name=name),
            operation=self.operation,
            resource=target,
            status=status,
            trace_id=self.trace_id,
            organization=organization,
            scope={"client": client} if client else {},
        )
