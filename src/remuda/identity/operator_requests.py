"""Requests of operators on the machine itself.

An operator is authenticated by a request sealed with the keys of this system; an operator who can read the key file has
full access anyway. The request is valid for one minute and once. It names the user, the operator and the reason, and is
audited before it has an effect. The routes are public, because the sealed request is the proof.

A command sends the request to the running process, or fulfils it itself if none runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar

import msgspec

from remuda.http.audit import Actor, AuditOperation, AuditTarget, audit_record
from remuda.identity.kinds.users import USER, User, user_id
from remuda.identity.lookups import audited_organizations
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Invalid, Unauthenticated, Unsealable
from remuda.kernel.ids import is_id
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Log, Record

_VALID_FOR = timedelta(seconds=60)
_NOT_OURS = "The request was sealed with other keys: run the command with the data directory of this system."
_STALE = "The request is older than a minute, or its clock is ahead: run the command again."
_USED = "idempotency"
"""Stream of used requests; it is kept for a day, which is longer than a request is valid."""
_REUSED = "The request was used before: run the command again."
_OK = 200


class SealedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the requests of operators. A request of one type is never accepted as another."""

    context: ClassVar[str]
    nonce: str
    created: datetime
    subject: str
    """User, by e-mail address or id."""
    operator: str
    """Login name of the operator."""
    reason: str = ""


RequestT = TypeVar("RequestT", bound=SealedRequest)


def request_of(
    kind: type[RequestT],
    *,
    clock: Clock,
    randomness: Randomness,
    subject: str,
    operator: str,
    reason: str,
    **details: Any,
) -> RequestT:
    """Return a request of this kind, with the details that the kind adds."""
    nonce, created = randomness.token_bytes(16).hex(), clock.now()
    return kind(nonce=nonce, created=created, subject=subject, operator=operator, reason=reason, **details)


def seal_request(request: SealedRequest, sealer: Sealer) -> Secret:
    """Return a sealed request, which is a secret: it is valid for one minute."""
    return Secret(sealer.seal(Secret(msgspec.json.encode(request).decode()), context=request.context))


def open_request(kind: type[RequestT], sealed: Secret, sealer: Sealer, now: datetime) -> RequestT:
    """Return a request, or raise Unauthenticated if it was sealed with other keys or is too old."""
    try:
        opened = sealer.open(sealed.reveal(), context=kind.context)
        request = msgspec.json.decode(opened.reveal(), type=kind)
    except (Unsealable, msgspec.MsgspecError):
        raise Unauthenticated(_NOT_OURS) from None
    if not timedelta() <= now - request.created <= _VALID_FOR:
        raise Unauthenticated(_STALE)
    return request


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRequests:
    """Verification and audit of the requests of operators."""

    store: Store
    log: Log
    clock: Clock
    sealer: Sealer

    def open(self, kind: type[RequestT], sealed: Secret) -> RequestT:
        """Return a request, or raise Unauthenticated if it is invalid."""
        return open_request(kind, sealed, self.sealer, self.clock.now())

    async def find_user(self, subject: str) -> User:
        """Return the user, or raise Invalid with the cause: the operator may know it."""
        user = await find(self.store, User, subject if is_id(subject) else user_id(subject), include_deleting=False)
        if user is None:
            remedy = "use the e-mail address or the id of an existing user"
            raise Invalid("the subject", f"{subject!r} is not a user", remedy=remedy)
        if not user.is_active:
            raise Invalid("the subject", f"{subject!r} is {user.effective_state}", remedy="name an active user")
        return user

    async def accept(
        self, request: SealedRequest, user: User, *, route: str, trace_id: str, scope: Mapping[str, str]
    ) -> None:
        """Audit a request for the system and for every organization of the user, or raise Unauthenticated if used.

        Only the record of the system has the reason, which may be about another organization.
        """
        organizations: Sequence[str | None] = [None, *await audited_organizations(self.store, user)]
        used = Record(stream=_USED, subject=f"operator/{request.nonce}", data=msgspec.Raw(b"{}"), once=True)
        records = (
            audit_record(
                component="identity",
                actor=Actor(subject=f"operator {request.operator}", actor=user.spec.subject),
                operation=AuditOperation(method="POST", route=route),
                resource=AuditTarget(type=USER.plural, id=user.name),
                status=_OK,
                trace_id=trace_id,
                organization=organization,
                scope=scope if organization else {"reason": request.reason, **scope},
            )
            for organization in organizations
        )
        try:
            await self.log.append([used, *records])
        except AlreadyExists:
            raise Unauthenticated(_REUSED) from None
