"""Both services, and somebody who follows what they have: in the same process, or over sockets.

::

    async with followed(tmp_path, transport) as environment:
        following = environment.follow(environment.identity.watch_all_projects())
        assert await following.until_synced() == {environment.system.project}
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from remuda.access.principal import Context, Principal
from remuda.clients.delegation import Delegation, ServicePrincipal
from remuda.clients.transport import local, remote
from remuda.clients.watch import Changed, LocalWatch, Restarted, Synced, WatchMessage
from remuda.http.asgi import ASGIApp
from remuda.http.client import Client
from remuda.http.routes import Table
from remuda.http.server.server import HttpServer, ListenAddress
from remuda.http.transport import ClientSettings, ServiceCredentials
from remuda.identity.api import IdentityApi
from remuda.identity.app import TABLE as IDENTITY
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.quota.client import QuotaClient
from remuda.region.api import RegionApi
from remuda.region.app import TABLE as REGION
from tests.kit.identity.service_credentials import certified
from tests.kit.region.environment import RegionEnvironment, running

PortT = TypeVar("PortT")
SERVICE = "unikorn-compute"
TRANSPORTS = ("local", "remote")
TIMEOUT_S = 120.0
QUICK = ClientSettings(first_pause_s=0.01, longest_pause_s=0.2, silence_s=5)


class Certified:
    """The credentials of a service that a proxy vouches for."""

    def __init__(self, service: str = SERVICE) -> None:
        self._service = service

    def headers(self, context: Context | None) -> Mapping[str, str]:
        shown = certified(self._service, {}, now=SystemClock().now())
        claimed = {name.lower(): value for name, value in ServiceCredentials(self._service).headers(context).items()}
        return {**shown, **claimed}


class Following:
    """Somebody who follows a list, and remembers what was told."""

    def __init__(self, news: AsyncGenerator[WatchMessage[Any]]) -> None:
        self._news = news
        self.known: dict[str, Any] = {}
        self.restarts = 0
        """How often the list began."""
        self._fresh: dict[str, Any] = {}
        self._is_synced = False

    async def next(self) -> WatchMessage[Any]:
        """Hear one thing more."""
        async with asyncio.timeout(TIMEOUT_S):
            told = await anext(self._news)
        match told:
            case Restarted():
                self.restarts += 1
                self._fresh, self._is_synced = {}, False
            case Synced():
                self.known, self._is_synced = self._fresh, True
            case Changed(type="deleted", item=item):
                del (self.known if self._is_synced else self._fresh)[item.metadata.id]
            case Changed(item=item):
                (self.known if self._is_synced else self._fresh)[item.metadata.id] = item
        return told

    async def until_synced(self) -> dict[str, Any]:
        """Hear all that is there."""
        while not isinstance(await self.next(), Synced):
            pass
        return self.known

    async def until_told(self, type_: str, id_: str) -> Any:
        """Hear until something is told of one thing, and return it."""
        while True:
            told = await self.next()
            if isinstance(told, Changed) and (told.type, told.item.metadata.id) == (type_, id_):
                return told.item

    async def until_marked(self, id_: str) -> None:
        """Hear until something is being deleted."""
        while (await self.until_told("modified", id_)).metadata.deletion_time is None:
            pass

    async def for_ever(self) -> None:
        """Hear until there is nothing more to hear."""
        while True:
            await self.next()

    async def close(self) -> None:
        """Hear no more."""
        await self._news.aclose()


@dataclass
class FollowedServices:
    """Both services with a client of each."""

    system: RegionEnvironment
    identity: IdentityApi
    region: RegionApi
    servers: tuple["Serving", ...] = ()
    """The HTTP servers; none if the clients are local."""
    _all: list[Following] = field(default_factory=list)

    def follow(self, messages: AsyncGenerator[WatchMessage[Any]]) -> Following:
        """Begin to follow a list-watch."""
        self._all.append(Following(messages))
        return self._all[-1]

    async def close(self) -> None:
        """Let nobody follow anything."""
        for each in self._all:
            await each.close()


class Serving:
    """A service on a port, which stays the same when it is started again."""

    def __init__(self, app: ASGIApp, port: int = 0) -> None:
        self._app, self._address = app, ListenAddress("127.0.0.1", port)
        self._server: HttpServer | None = None

    async def start(self) -> str:
        """Serve, and return where."""
        self._server = HttpServer(
            self._app,
            clock=SystemClock(),
            randomness=SystemRandomness(),
            count_closed=lambda _: None,
            closing=asyncio.Event(),
            grace_s=0.1,
        )
        self._address = await self._server.start(self._address)
        return f"http://{self._address}"

    async def stop(self) -> None:
        """Cut everybody off."""
        if self._server is not None:
            self._server.hurry()
            await self._server.stop()
            self._server = None


@asynccontextmanager
async def followed(directory: Path, transport: str, *, service: str = SERVICE) -> AsyncIterator[FollowedServices]:
    """Run both services, which a service calls and follows by this transport."""
    async with running(directory) as system, _followed(system, transport, service) as environment:
        try:
            yield environment
        finally:
            await environment.close()


@asynccontextmanager
async def _followed(system: RegionEnvironment, transport: str, service: str) -> AsyncIterator[FollowedServices]:
    if transport == "local":
        watch = LocalWatch(reader=principal_of(system, service), clock=SystemClock(), randomness=SystemRandomness())
        yield FollowedServices(
            system,
            local(IdentityApi, IDENTITY, system.identity.app.services, watch=watch),
            local(RegionApi, REGION, system.app.services, watch=watch),
        )
        return
    serving = (Serving(system.identity.asgi), Serving(system.asgi))
    async with (
        client_of(await serving[0].start(), service) as one,
        client_of(await serving[1].start(), service) as other,
    ):
        try:
            yield FollowedServices(
                system, remote_of(IdentityApi, IDENTITY, one), remote_of(RegionApi, REGION, other), serving
            )
        finally:
            for each in serving:
                await each.stop()


def client_of(url: str, service: str) -> Client:
    """Return the client of a service, quick to try again."""
    return Client(
        url,
        credentials=Certified(service),
        clock=SystemClock(),
        randomness=SystemRandomness(),
        settings=QUICK,
    )


def remote_of(port: type[PortT], table: Table, client: Client) -> PortT:
    """Return what implements a port over a socket."""
    return remote(port, table, client, clock=SystemClock(), randomness=SystemRandomness())


def principal_of(system: RegionEnvironment, service: str) -> ServicePrincipal:
    async def principal() -> Principal:
        standing = await system.identity.app.services.permissions.of_system(service)
        return Principal(subject=service, type="system", access=standing.access)

    return principal


def quota_client_of(environment: FollowedServices, service: str) -> QuotaClient:
    """Return a service's client of identity."""
    principal = principal_of(environment.system, service)
    return QuotaClient(
        identity=environment.identity, delegation=Delegation(service=principal, randomness=SystemRandomness())
    )


def free_port() -> int:
    """Return a port that nobody has."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
