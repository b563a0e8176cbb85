"""Operator tokens: short-lived tokens in a user's name for an operator on the machine itself (break-glass access).

An operator proves themselves with a request that is sealed with the keys of this system: a person who can read the file
with these keys could read and write everything anyway. The request is valid for one minute and once. It says for whom
the token is, for how long, who asks and why, and it is audited before a token exists. The route is public, because the
sealed request is the proof.

`remuda token issue` sends the request to the running process, or carries it out itself if none runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from remuda.access.principal import Context
from remuda.http.audit import Actor, AuditOperation, AuditTarget, audit_record
from remuda.http.routes import AnyRoute, Route, Wire
from remuda.identity.kinds.users import USER, User, user_id
from remuda.identity.lookups import organizations_to_tell
from remuda.identity.tokens.service import Tokens
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Invalid, Unauthenticated, Unsealable
from remuda.kernel.ids import is_id
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Log, Record

DEFAULT_LIFE = timedelta(minutes=15)
"""How long a token is good unless somebody asks for less or more."""
LONGEST_LIFE = timedelta(hours=1)
"""How long it is good at most."""

_CONTEXT = "identity/operator-request"
_GOOD_FOR = timedelta(seconds=60)
_STRANGE = "The request was not sealed with this system's keys: run the command with the data directory of this one."
_STALE = "The request is older than a minute, or from a clock that is ahead: run the command again."


class OperatorRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator asks for."""

    nonce: str
    made: datetime
    subject: str
    """A user, by e-mail address or id."""
    life_s: int
    operator: str
    """Who asks, as the operating system calls them."""
    reason: str = ""


def new_request(
    *, clock: Clock, randomness: Randomness, subject: str, life: timedelta, operator: str, reason: str
) -> OperatorRequest:
    return OperatorRequest(
        nonce=randomness.token_bytes(16).hex(),
        made=clock.now(),
        subject=subject,
        life_s=int(life.total_seconds()),
        operator=operator,
        reason=reason,
    )


def seal_request(request: OperatorRequest, sealer: Sealer) -> Secret:
    """Return a request as it is sent: whoever has this text has the token, for a minute."""
    return Secret(sealer.seal(Secret(msgspec.json.encode(request).decode()), context=_CONTEXT))


def open_request(sealed: Secret, sealer: Sealer, now: datetime) -> OperatorRequest:
    """Return a request that was sent, or raise Unauthenticated if it is not ours or not of this minute."""
    try:
        opened = sealer.open(sealed.reveal(), context=_CONTEXT)
        request = msgspec.json.decode(opened.reveal(), type=OperatorRequest)
    except (Unsealable, msgspec.MsgspecError):
        raise Unauthenticated(_STRANGE) from None
    if not timedelta() <= now - request.made <= _GOOD_FOR:
        raise Unauthenticated(_STALE)
    return request


PATH = "/api/v1/operator/tokens"
"""Where the request is sent."""


class OperatorTokenWrite(Wire, frozen=True):
    """A request of an operator on the machine itself."""

    request: Annotated[Secret, msgspec.Meta(description="The request, sealed with the keys of this system.")]


class OperatorTokenRead(Wire, frozen=True):
    """A token in a user's name."""

    access_token: Annotated[Secret, msgspec.Meta(description="The token: it is shown this once.")]
    expiry: datetime
    subject: str


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

    async def issue_sealed(self, context: Context, body: OperatorTokenWrite) -> OperatorTokenRead:
        """Carry out a sealed request, or raise Unauthenticated if it is not valid."""
        return await self._issue(open_request(body.request, self.sealer, self.clock.now()), trace_id=context.trace_id)

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
        operation=AuditOperation(method="POST", route=PATH),
        resource=AuditTarget(type=USER.plural, id=user.name),
        status=_OK,
        trace_id=trace_id,
        organization=organization,
        scope={"reason": request.reason, "lifetime": f"{request.life_s}s"},
    )


ROUTES: list[AnyRoute] = [
    Route(
        method="POST",
        path=PATH,
        name="create_operator_token",
        summary="Issue a short-lived token to an operator on the machine itself",
        description="For `remuda token issue`: the request is sealed with the keys of this system, good for a "
        "minute and once. Who asked, for whom and why is audited.",
        scope="public",
        service=Operators,
        calls=Operators.issue_sealed,
        body_type=OperatorTokenWrite,
        response_type=OperatorTokenRead,
        errors=(401,),
        holds_secret=True,
        tag="operator",
    )
]
