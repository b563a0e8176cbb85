"""Operator tokens: short-lived tokens of a user for an operator on the machine itself (break-glass access).

`remuda token issue` sends the sealed request (`operator_requests`) to the running process, or issues the token itself
if none runs.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import msgspec

from remuda.access.principal import Context
from remuda.http.routes import AnyRoute, Route
from remuda.http.schema import Moment, Wire
from remuda.identity.operator_requests import OperatorRequests, SealedRequest, request_of
from remuda.identity.tokens.service import Tokens
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Invalid
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret

DEFAULT_LIFETIME = timedelta(minutes=15)
MAX_LIFETIME = timedelta(hours=1)


class OperatorRequest(SealedRequest, frozen=True, kw_only=True):
    """Request for a token."""

    context = "operator token request"
    lifetime_s: int


def new_request(
    *, clock: Clock, randomness: Randomness, subject: str, lifetime: timedelta, operator: str, reason: str
) -> OperatorRequest:
    return request_of(
        OperatorRequest,
        clock=clock,
        randomness=randomness,
        subject=subject,
        operator=operator,
        reason=reason,
        lifetime_s=int(lifetime.total_seconds()),
    )


PATH = "/api/v1/operator/tokens"


class OperatorTokenWrite(Wire, frozen=True):
    """Request of an operator on the machine itself."""

    request: Annotated[
        Secret,
        msgspec.Meta(description="Request, sealed with the keys of this system.", examples=["the-sealed-request"]),
    ]


class OperatorTokenRead(Wire, frozen=True):
    """Token of a user."""

    access_token: Annotated[Secret, msgspec.Meta(description="Token, shown only once.")]
    expiry: Annotated[Moment, msgspec.Meta(description="Time at which the token expires.")]
    subject: Annotated[str, msgspec.Meta(description="The user's e-mail address.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTokens:
    """Service that issues tokens to operators."""

    requests: OperatorRequests
    tokens: Tokens

    async def issue_sealed(self, context: Context, body: OperatorTokenWrite) -> OperatorTokenRead:
        """Issue a token for a sealed request, or raise Unauthenticated if it is invalid."""
        return await self._issue(self.requests.open(OperatorRequest, body.request), trace_id=context.trace_id)

    async def issue(self, request: OperatorRequest) -> OperatorTokenRead:
        """Issue a token for a request of this process, which has the store to itself."""
        return await self._issue(request, trace_id="")

    async def _issue(self, request: OperatorRequest, *, trace_id: str) -> OperatorTokenRead:
        user = await self.requests.find_user(request.subject)
        lifetime = timedelta(seconds=request.lifetime_s)
        if not timedelta() < lifetime <= MAX_LIFETIME:
            raise Invalid("the lifetime", "is not between a second and an hour", remedy="use one such as 15m")
        scope = {"lifetime": f"{request.lifetime_s}s"}
        await self.requests.accept(request, user, route=PATH, trace_id=trace_id, scope=scope)
        issued = await self.tokens.issue_for_operator(user, operator=request.operator, lifetime=lifetime)
        return OperatorTokenRead(access_token=issued.token, expiry=issued.expires, subject=user.spec.subject)


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
