"""Password links for operators on the machine itself, for a user who has lost the password and knows no administrator.

`remuda user password` sends the sealed request (`operator_requests`) to the running process, or creates the link itself
if none runs.
"""

from dataclasses import dataclass
from typing import Annotated

import msgspec

from remuda.access.principal import Context
from remuda.http.routes import AnyRoute, Route
from remuda.http.schema import Moment, Wire
from remuda.identity.login.passwords import Passwords, link_url
from remuda.identity.operator_requests import OperatorRequests, SealedRequest
from remuda.identity.settings import IdentitySettings
from remuda.kernel.secrets import Secret

PATH = "/api/v1/operator/passwords"


class PasswordRequest(SealedRequest, frozen=True, kw_only=True):
    """Request for a password link."""

    context = "operator password request"


class OperatorPasswordWrite(Wire, frozen=True):
    """Request of an operator on the machine itself."""

    request: Annotated[
        Secret,
        msgspec.Meta(description="Request, sealed with the keys of this system.", examples=["the-sealed-request"]),
    ]


class OperatorPasswordRead(Wire, frozen=True):
    """Link that sets a user's password once."""

    link: Annotated[Secret, msgspec.Meta(description="Link, shown only once.")]
    expiry: Annotated[Moment, msgspec.Meta(description="Time at which the link expires.")]
    subject: Annotated[str, msgspec.Meta(description="The user's e-mail address.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPasswords:
    """Service that creates password links for operators."""

    requests: OperatorRequests
    passwords: Passwords
    settings: IdentitySettings

    async def create_sealed(self, context: Context, body: OperatorPasswordWrite) -> OperatorPasswordRead:
        """Create a link for a sealed request, or raise Unauthenticated if it is invalid."""
        return await self._create(self.requests.open(PasswordRequest, body.request), trace_id=context.trace_id)

    async def create(self, request: PasswordRequest) -> OperatorPasswordRead:
        """Create a link for a request of this process, which has the store to itself."""
        return await self._create(request, trace_id="")

    async def _create(self, request: PasswordRequest, *, trace_id: str) -> OperatorPasswordRead:
        user = await self.requests.find_user(request.subject)
        await self.requests.accept(request, user, route=PATH, trace_id=trace_id, scope={})
        created = await self.passwords.create_link(user.name)
        link = link_url(self.settings.issuer, created.secret)
        return OperatorPasswordRead(link=link, expiry=created.expires, subject=user.spec.subject)


ROUTES: list[AnyRoute] = [
    Route(
        method="POST",
        path=PATH,
        name="create_operator_password_link",
        summary="Create a password link for an operator on the machine itself",
        description="For `remuda user password`: the request is sealed with the keys of this system, and valid for a "
        "minute and once. Operator, user and reason are audited.",
        scope="public",
        service=OperatorPasswords,
        calls=OperatorPasswords.create_sealed,
        body_type=OperatorPasswordWrite,
        response_type=OperatorPasswordRead,
        errors=(401,),
        has_secret=True,
        tag="operator",
    )
]
