"""Requests of an operator on the machine itself: to the running process, or to the store if none runs.

The lock of the store tells whether a process runs, since no process can leave it behind. If the lock is free, the store
is opened here; otherwise the request is sent to the address that the process has published.
"""

import os
import pwd
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from remuda.app import IDENTITY_PREFIX, registry
from remuda.cli.client.transport import Connections
from remuda.config.loader import LoadedConfiguration
from remuda.config.reach import public_url
from remuda.config.settings import identity_settings
from remuda.datadir import DataDirectory
from remuda.http.transport import OutboundRequest, encode_body, read_response
from remuda.identity.app import TokenServices, token_services
from remuda.identity.credentials import CredentialsFile
from remuda.identity.operator_requests import OperatorRequests, SealedRequest, seal_request
from remuda.identity.settings import IdentitySettings
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.errors import Invalid, OutcomeUnknown, ServerUnreachable, StoreLocked, Unavailable
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret
from remuda.store.contract import Store
from remuda.store.sqlite.store import SqliteStore, open_store

ResponseT = TypeVar("ResponseT")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalIdentity:
    """The part of identity that fulfils requests of operators, over a store that no process uses."""

    store: Store
    clock: Clock
    randomness: Randomness
    settings: IdentitySettings
    requests: OperatorRequests
    tokens: TokenServices


@dataclass(frozen=True, slots=True)
class OperatorRoute(Generic[ResponseT]):
    """Route of identity that fulfils requests of operators."""

    path: str
    body: Callable[[Secret], Any]
    """Returns the body that carries a sealed request."""
    response: type[ResponseT]


async def fulfil(
    found: LoadedConfiguration,
    request: SealedRequest,
    route: OperatorRoute[ResponseT],
    locally: Callable[[LocalIdentity], Awaitable[ResponseT]],
) -> ResponseT:
    """Return the response of the running process or, if none runs, of `locally`."""
    data = DataDirectory(found.configuration.server.data)
    if not data.store.exists():
        raise Invalid("--data", f"{data.path} has no store", remedy="name the data directory of remuda up")
    data.check_store()
    sealer = data.sealer()
    try:
        store = open_store(data.store, registry(), sealer)
    except StoreLocked:
        return await _send(data, seal_request(request, sealer), route)
    try:
        settings = identity_settings(found.configuration, url=_url(found, data))
        return await locally(_local_identity(store, sealer, settings))
    finally:
        await store.close()


def _local_identity(store: SqliteStore, sealer: Sealer, settings: IdentitySettings) -> LocalIdentity:
    clock, randomness = SystemClock(), SystemRandomness()
    return LocalIdentity(
        store=store,
        clock=clock,
        randomness=randomness,
        settings=settings,
        requests=OperatorRequests(store=store, log=store, clock=clock, sealer=sealer),
        tokens=token_services(store=store, clock=clock, randomness=randomness, settings=settings),
    )


def _url(found: LoadedConfiguration, data: DataDirectory) -> str:
    """Return the URL of the process: the configured one, or the one of its last run."""
    server = found.configuration.server
    configured = public_url(server, server.listen)
    if server.public_url or ("server.listen" in found.origins and server.listen.port):
        return configured
    last = CredentialsFile(data.credentials).read()
    known = "" if last is None else last.endpoints.get("identity", "").removesuffix(IDENTITY_PREFIX)
    return known or configured


async def _send(data: DataDirectory, sealed: Secret, route: OperatorRoute[ResponseT]) -> ResponseT:
    url = data.running_at()
    if url is None:
        message = f"Another process has {data.store} open and has not published its address: try again in a moment."
        raise Unavailable(message)
    target, body = f"{IDENTITY_PREFIX}{route.path}", encode_body(route.body(sealed))
    outbound = OutboundRequest(name="operator request", method="POST", target=target, body=body)
    try:
        async with Connections(certificate=data.certificate_of_process()) as connections:
            response = await connections.at(url)[0].exchange(outbound)
    except (ServerUnreachable, OutcomeUnknown) as error:
        message = f"The process that has {data.store} open does not respond: {error.message}"
        raise Unavailable(message) from None
    return read_response(response.content, route.response, server=url)


def operator_name() -> str:
    """Return the user of this process, with the user who called sudo."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    behind = os.environ.get("SUDO_USER")
    return f"{name} (sudo by {behind})" if behind else name
