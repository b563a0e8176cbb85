"""The room's port: a short token in a user's name.

A request is carried out once, and on record before there is a token. The command `remuda token issue` sends it to the
process that runs, or carries it out itself while none does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import msgspec

from remuda.access.principal import Context
from remuda.http.audit import Actor, Operation, Target, audit_record
from remuda.identity.kinds.users import USER, User, user_id
from remuda.identity.lookups import organizations_to_tell
from remuda.identity.operator.requests import LONGEST_LIFE, OperatorRequest, open_request
from remuda.identity.operator.wire import PATH, OperatorTokenRead
from remuda.identity.tokens.service import Tokens
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Invalid, Unauthenticated
from remuda.kernel.ids import is_id
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Log, Record

_USED = "idempotency"
"""The stream of what was used; it is kept for a day, which is longer than a request is good."""
_SPENT = "The request was used before: run the command again."
_OK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Operators:
    """Issues tokens to operators."""

    store: Store
    log: Log
    clock: Clock
    sealer: Sealer
    tokens: Tokens

    async def issue_sealed(self, context: Context, sealed: Secret) -> OperatorTokenRead:
        """Carry out a request that was sent, or raise Unauthenticated if it is not good."""
        return await self._issue(open_request(sealed, self.sealer, self.clock.now()), trace_id=context.trace_id)

    async def issue(self, request: OperatorRequest) -> OperatorTokenRead:
        """Carry out a request of this very process, which has the store to itself."""
        return await self._issue(request, trace_id="")

    async def _issue(self, request: OperatorRequest, *, trace_id: str) -> OperatorTokenRead:
        user = await self._user(request.subject)
        life = timedelta(seconds=request.life_s)
        if not timedelta() < life <= LONGEST_LIFE:
            raise Invalid("the lifetime", "is not between a second and an hour", remedy="ask for one such as 15m")
        used = Record(stream=_USED, subject=f"operator/{request.nonce}", data=msgspec.Raw(b"{}"), once=True)
        try:
            await self.log.append([used, *await self._audited(request, user, trace_id)])
        except AlreadyExists:
            raise Unauthenticated(_SPENT) from None
        issued = await self.tokens.issue_for_operator(user, operator=request.operator, life=life)
        return OperatorTokenRead(access_token=issued.token, expiry=issued.expires, subject=user.spec.subject)

    async def _user(self, subject: str) -> User:
        """Return who is meant. Whoever sits at the machine is told why it cannot be this one."""
        user = await find(self.store, User, subject if is_id(subject) else user_id(subject), marked=False)
        if user is None:
            remedy = "give the e-mail address or the id of one that there is"
            raise Invalid("the subject", f"{subject!r} is no user", remedy=remedy)
        if not user.is_active:
            raise Invalid("the subject", f"{subject!r} is {user.spec.state}", remedy="name one who is active")
        return user

    async def _audited(self, request: OperatorRequest, user: User, trace_id: str) -> Sequence[Record]:
        """Tell the system, and every organization in which the token can do something."""
        told = [None, *await organizations_to_tell(self.store, user)]
        return [_record(request, user, trace_id, organization) for organization in told]


def _record(request: OperatorRequest, user: User, trace_id: str, organization: str | None) -> Record:
    return audit_record(
        component="identity",
        actor=Actor(subject=f"operator {request.operator}", actor=user.spec.subject),
        operation=Operation(verb="POST", route=PATH),
        resource=Target(type=USER.plural, id=user.name),
        status=_OK,
        trace_id=trace_id,
        organization=organization,
        scope={"reason": request.reason, "lifetime": f"{request.life_s}s"},
    )
