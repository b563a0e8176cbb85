"""Audit records of the endpoints for programs, where nobody is known before they have shown something.

What is done with a session or a token is on record as the doing of whose it is: whoever comes with a stolen one cannot
be told from its owner. Each record is in the commit of what it tells, and goes to every organization that the user is a
member of; to that of a service account; of what belongs to none, to the system. Its status is the one of the answer, so
a session that ends because a request was refused has that refusal's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.http.audit import Actor, AuditOperation, AuditTarget, audit_record
from remuda.identity.kinds.tokens import REVOCATION, SESSION, Session
from remuda.identity.kinds.users import User
from remuda.identity.lookups import audited_organizations
from remuda.identity.tokens.jwt import Claims
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Record

TOKEN = AuditOperation(method="POST", route="/oauth2/v2/token")
"""Somebody asked for tokens."""
REVOKE = AuditOperation(method="POST", route="/oauth2/v2/revoke")
"""Somebody gave one back."""

_OK, _REFUSED = 200, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Makes those of one request."""

    store: Store
    operation: AuditOperation
    trace_id: str
    operator: str = ""
    """Who sat at the machine itself and took the user's name, if somebody did."""

    async def of_session(self, session: str, *, user: str, client: str) -> Sequence[Record]:
        """Return the records of a session that is begun, gone on with or ended as was asked for; all by their ids."""
        return await self._of_user(user, AuditTarget(type=SESSION.plural, id=session), client, _OK)

    async def of_forced_end(self, session: Session) -> Sequence[Record]:
        """Return the records of a session that ends because of a request that is refused."""
        target = AuditTarget(type=SESSION.plural, id=session.name)
        return await self._of_user(session.spec.user, target, session.spec.client, _REFUSED)

    async def of_revocation(self, claims: Claims) -> Sequence[Record]:
        """Return the records of an access token that is revoked by itself."""
        target = AuditTarget(type=REVOCATION.plural, id=claims.jti)
        if claims.uid:
            return await self._of_user(claims.uid, target, claims.cid, _OK)
        return [self._record(claims.sub, target, "", _OK, claims.oid or None)]

    async def _of_user(self, name: str, target: AuditTarget, client: str, status: int) -> Sequence[Record]:
        user = await find(self.store, User, name)
        if user is None:  # it is being deleted, and everything of its with it
            return [self._record(name, target, client, status, None)]
        told: Sequence[str | None] = await audited_organizations(self.store, user) or [None]
        return [self._record(user.spec.subject, target, client, status, each) for each in told]

    def _record(self, subject: str, target: AuditTarget, client: str, status: int, organization: str | None) -> Record:
        return audit_record(
            component="identity",
            actor=Actor(subject=subject, service=f"operator {self.operator}" if self.operator else None),
            operation=self.operation,
            resource=target,
            status=status,
            trace_id=self.trace_id,
            organization=organization,
            scope={"client": client} if client else {},
        )
