"""A door to the methods that routes call: they must reject whatever the pipeline before them rejects."""

from typing import Any, Protocol

import msgspec

from remuda.access.principal import Context, Principal
from remuda.http.invocation import invocations
from remuda.http.responses import Collection
from remuda.http.routes import Call, Table
from remuda.kernel.errors import RemudaError
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.secrets import hide
from tests.kit.proofs.authorization.matrix import Caller
from tests.kit.proofs.authorization.transports import Outcome, Request, listed, typed_path, typed_query


class Knowing(Protocol):
    """Who knows what a service in the same process knows of a caller."""

    async def principal(self, caller: Caller) -> Principal:
        """Return a caller as a service in the same process meets it."""
        ...


class ServiceMethodTransport:
    """The service itself, as a handler asks it: without the pipeline that every HTTP request passes."""

    def __init__(self, table: Table, services: Any, gate: Knowing) -> None:
        self._invocations, self._credentials = invocations(table, services), gate
        self._routes = {route.name: route for route in table.routes}

    async def ask(self, caller: Caller, request: Request) -> Outcome:
        """Ask, with the caller in the context."""
        route = self._routes[request.row.operation]
        principal = await self._credentials.principal(caller)
        operation = random_id(SystemRandomness())
        call = Call(
            context=Context(principal=principal, operation=operation, trace_id=operation.replace("-", "")),
            path=typed_path(route, request),
            query=typed_query(route, request),
            body=msgspec.convert(request.body or {}, route.body_type, dec_hook=hide),
        )
        try:
            answer = await self._invocations[route.name](call)
            if isinstance(answer, Collection):
                answer = await listed(answer)
        except RemudaError as error:
            return Outcome(error.status, error.message)
        return Outcome(request.row.success, answer=answer)
