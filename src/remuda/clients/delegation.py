"""Delegation: the context in which one service calls another, with the caller's, the service's or both permissions."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from remuda.access.principal import AccessList, Context, Principal, intersection
from remuda.http.authentication import acting_for, claim_of
from remuda.kernel.ids import random_id
from remuda.kernel.memo import IdentityMemo
from remuda.kernel.randomness import Randomness

ServicePrincipal = Callable[[], Awaitable[Principal]]
"""Returns the principal of the calling service with its present permissions."""

_MAX_CALLERS = 1_000
"""Callers whose shared permissions are remembered."""


class SharedAccess:
    """The permissions that a service shares with its callers, computed once for each while neither's change."""

    def __init__(self) -> None:
        self._own: AccessList | None = None

    def of(self, own: AccessList, callers: AccessList) -> AccessList:
        """Return the permissions that both the service and the caller have."""
        if self._own is not own:
            self._own, self._shared = own, IdentityMemo(partial(intersection, own), limit=_MAX_CALLERS)
        return self._shared(callers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """Contexts for the calls of one service. The permissions are those at the time of the call."""

    service: ServicePrincipal
    randomness: Randomness
    _shared_access: SharedAccess = field(default_factory=SharedAccess)

    async def as_service(
        self,
        organization: str | None = None,
        project: str | None = None,
        *,
        actor: str = "",
        operation: str | None = None,
        key: str | None = None,
    ) -> Context:
        """Return the context of a call with the service's own permissions, paid by a project."""
        principal = await self.service()
        if organization is not None:
            principal = replace(principal, organization=organization, project=project, actor=actor)
        elif actor:
            principal = replace(principal, actor=actor)
        return Context(
            principal=principal,
            operation=operation or random_id(self.randomness),
            key=key or operation,
        )

    async def reading(self, organization: str | None = None, project: str | None = None) -> Context:
        """Return the context of a read with the service's own permissions; it creates nothing and needs no id."""
        principal = await self.service()
        if organization is not None:
            principal = principal.with_payer(organization, project)
        return Context(principal=principal, operation="")

    async def on_behalf_of(self, context: Context) -> Context:
        """Return the context of a call with the service's permissions, for a caller whose own it has checked."""
        principal = acting_for(await self.service(), claim_of(context.principal))
        return Context(principal=principal, operation=context.operation, trace_id=context.trace_id)

    async def impersonating(self, context: Context, organization: str, project: str | None = None) -> Context:
        """Return the context of a call for an organization, with the permissions that both caller and service have."""
        caller = context.principal
        caller = replace(caller, organization=organization, project=project or caller.project)
        service = await self.service()
        shared = replace(service, access=self._shared_access.of(service.access, caller.access))
        principal = acting_for(shared, claim_of(caller))
        return Context(principal=principal, operation=context.operation, trace_id=context.trace_id, impersonated=caller)
