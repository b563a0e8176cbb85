"""Operator tokens: short-lived tokens of a user for an operator on the machine itself (break-glass access).

An operator is authenticated by a request sealed with the keys of this system; an operator who can read the key file has
full access anyway. The request is valid for one minute and once. It names the user, the lifetime, the operator and the
reason, and is audited before the token is issued. The route is public, because the sealed request is the proof.

`remuda token issue` sends the request to the running process, or issues the token itself if none runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from remuda.access.principal import Context
from remuda.http.audit import Actor, AuditOperation, AuditTarget, audit_record
from remuda.http.routes import AnyRoute, Route
from remuda.http.schema import Wire
from remuda.identity.kinds.users import USER, User, user_id
from remuda.identity.lookups import audited_organizations
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

DEFAULT_LIFETIME = timedelta(minutes=15)
MAX_LIFETIME = timedelta(hours=1)

_CONTEXT = "operator token request"
_VALID_FOR = timedelta(seconds=60)
_NOT_OURS = "The request was sealed with other keys: run the command with the data directory of this system."
_STALE = "The request is older than a minute, or its clock is ahead: run the command again."


class OperatorRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request for a token."""

    nonce: str
    created: datetime
    subject: str
    """User, by e-mail address or id."""
    lifetime_s: int
    operator: str
    """Login name of the operator."""
    reason: str = ""


def new_request(
    *, clock: Clock, randomness: Randomness, subject: str, lifetime: timedelta, operator: str, reason: str
) -> OperatorRequest:
    return OperatorRequest(
        nonce=randomness.token_bytes(16).hex(),
        created=clock.now(),
        subject=subject,
        lifetime_s=int(lifetime.total_seconds()),
        operator=operator,
        reason=reason,
    )


def seal_request(request: OperatorRequest, sealer: Sealer) -> Secret:
    """Return a sealed request, which is a secret: it can be exchanged for a token for one minute."""
    return Secret(sealer.seal(Secret(msgspec.json.encode(request).decode()), context=_CONTEXT))


def open_request(sealed: Secret, sealer: Sealer, now: datetime) -> OperatorRequest:
    """Return a request, or raise Unauthenticated if it was sealed with other keys or is too old."""
    try:
        opened = sealer.open(sealed.reveal(), context=_CONTEXT)
        request = msgspec.json.decode(opened.reveal(), type=OperatorRequest)
    except (Unsealable, msgspec.MsgspecError):
        raise Unauthenticated(_NOT_OURS) from None
    if not timedelta() <= now - request.created <= _VALID_FOR:
        raise Unauthenticated(_STALE)
    return request


PATH = "/api/v1/operator/tokens"


class OperatorTokenWrite(Wire, frozen=True):
    """Request of an operator on the machine itself."""

    request: Annotated[Secret, msgspec.Meta(description="Request, sealed with the keys of this system.")]


class OperatorTokenRead(Wire, frozen=True):
    """Token of a user."""

    access_token: Annotated[Secret, msgspec.Meta(description="Token, shown only once.")]
    expiry: datetime
    subject: str


_USED = "idempotency"
"""Stream of used requests; it is kept for a day, which is longer than a request is valid."""
_REUSED = "The request was used before: run the command again."
_OK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTokens:
    """Service that issues tokens to operators."""

    store: Store
    log: Log
    clock: Clock
    sealer: Sealer
    tokens: Tokens

    async def issue_sealed(self, context: Context, body: OperatorTokenWrite) -> OperatorTokenRead:
        """Issue a token for a sealed request, or raise Unauthenticated if it is invalid."""
        return await self._issue(open_request(body.request, self.sealer, self.clock.now()), trace_id=context.trace_id)

    async def issue(self, request: OperatorRequest) -> OperatorTokenRead:
        """Issue a token for a request of this process, which has the store to itself."""
        return await self._issue(request, trace_id="")

    async def _issue(self, request: OperatorRequest, *, trace_id: str) -> OperatorTokenRead:
        user = await self._user(request.subject)
        lifetime = timedelta(seconds=request.lifetime_s)
        if not timedelta() < lifetime <= MAX_LIFETIME:
            raise Invalid("the lifetime", "is not between a second and an hour", remedy="use one such as 15m")
        used = Record(stream=_USED, subject=f"operator/{request.nonce}", data=msgspec.Raw(b"{}"), once=True)
        try:
            await self.log.append([used, *await self._audited(request, user, trace_id)])
        except AlreadyExists:
            raise Unauthenticated(_REUSED) from None
        issued = await self.tokens.issue_for_operator(user, operator=request.operator, lifetime=lifetime)
        return OperatorTokenRead(access_token=issued.token, expiry=issued.expires, subject=user.spec.subject)

    async def _user(self, subject: str) -> User:
        """Return the user, or raise Invalid with the cause: the operator may know it."""
        user = await find(self.store, User, subject if is_id(subject) else user_id(subject), include_deleting=False)
        if user is None:
            remedy = "use the e-mail address or the id of an existing user"
            raise Invalid("the subject", f"{subject!r} is not a user", remedy=remedy)
        if not user.is_active:
            raise Invalid("the subject", f"{subject!r} is {user.effective_state}", remedy="name an active user")
        return user

    async def _audited(self, request: OperatorRequest, user: User, trace_id: str) -> Sequence[Record]:
        """Return audit records for the system and for every organization of the user."""
        organizations = [None, *await audited_organizations(self.store, user)]
        return [_record(request, user, trace_id, organization) for organization in organizations]


def _record(request: OperatorRequest, user: User, trace_id: str, organization: str | None) -> Record:
    return audit_record(
        component="identity",
        actor=Actor(subject=f"operator {request.operator}", actor=user.spec.subject),
        operation=AuditOperation(method="POST", route=PATH),
        resource=AuditTarget(type=USER.plural, id=user.name),
        status=_OK,
        trace_id=trace_id,
        organization=organization,
        scope={"reason": request.reason, "lifetime": f"{request.lifetime_s}s"},
    )


ROUTES: list[AnyRoute] = [
    Route(
        method="POST",
        path=PATH,
        name="create_operator_token",
        summary="Issue a short-lived token to an operator on the machine itself",
        description="For `remuda token issue`: the request is sealed with the keys of this system, and valid for a "
        "minute and once. Operator, user and reason are audited.",
        scope="public",
        service=OperatorTokens,
        calls=OperatorTokens.issue_sealed,
        body_type=OperatorTokenWrite,
        response_type=OperatorTokenRead,
        errors=(401,),
        has_secret=True,
        tag="operator",
    )
]
