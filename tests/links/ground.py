"""Both services, and somebody who follows what they have: in the same process, or over sockets.

::

    async with followed(tmp_path, way) as ground:
        following = ground.follow(PROJECTS)
        assert await following.until_synced() == {ground.house.project}
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remuda.access.principal import Context, Principal
from remuda.clients.identity import IdentityLink, watch_projects
from remuda.clients.transport import Here, Send, ServiceNow, There
from remuda.clients.watch import Anew, Followed, News, Synced, Told, Watch, WatchHere, WatchThere
from remuda.http.asgi import ASGIApp
from remuda.http.client import Client
from remuda.http.routes import Table
from remuda.http.server.server import HttpServer, ListenAddress
from remuda.http.transport import ClientSettings, ServiceCredentials
from remuda.identity.app import TABLE as IDENTITY
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.region.app import TABLE as REGION
from tests.kit.identity.service_credentials import certified
from tests.kit.region.environment import RegionEnvironment, running

SERVICE = "unikorn-compute"
WAYS = ("here", "there")
PATIENCE_S = 30.0
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

    def __init__(self, news: AsyncGenerator[News[Any]]) -> None:
        self._news = news
        self.known: dict[str, Any] = {}
        self.anew = 0
        """How often everything was told."""
        self._fresh: dict[str, Any] = {}
        self._is_synced = False

    async def next(self) -> News[Any]:
        """Hear one thing more."""
        async with asyncio.timeout(PATIENCE_S):
            told = await anext(self._news)
        match told:
            case Anew():
                self.anew += 1
                self._fresh, self._is_synced = {}, False
            case Synced():
                self.known, self._is_synced = self._fresh, True
            case Told(type="deleted", item=item):
                del (self.known if self._is_synced else self._fresh)[item.metadata.id]
            case Told(item=item):
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
            if isinstance(told, Told) and (told.type, told.item.metadata.id) == (type_, id_):
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
class Ground:
    """What a test is given."""

    house: RegionEnvironment
    identity: Watch
    region: Watch
    send: Send
    """The way to identity."""
    servers: tuple["Serving", ...] = ()
    """None where nobody is asked over a socket."""
    _all: list[Following] = field(default_factory=list)

    def follow(self, list_: Followed[Any]) -> Following:
        """Begin to follow a list."""
        watch = self.identity if list_.route == "list_all_projects" else self.region
        self._all.append(Following(watch(list_)))
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
async def followed(directory: Path, way: str, *, service: str = SERVICE) -> AsyncIterator[Ground]:
    """Run both services, which a service follows in this way."""
    async with running(directory) as house, _followed(house, way, service) as ground:
        try:
            yield ground
        finally:
            await ground.close()


@asynccontextmanager
async def _followed(house: RegionEnvironment, way: str, service: str) -> AsyncIterator[Ground]:
    common: dict[str, Any] = {"clock": SystemClock(), "randomness": SystemRandomness()}
    if way == "here":
        reader = _reader(house, service)
        yield Ground(
            house,
            WatchHere(IDENTITY, house.identity.app.services, reader=reader, **common),
            WatchHere(REGION, house.app.services, reader=reader, **common),
            Here(IDENTITY, house.identity.app.services),
        )
        return
    serving = (Serving(house.identity.asgi), Serving(house.asgi))
    async with (
        client_of(await serving[0].start(), service) as one,
        client_of(await serving[1].start(), service) as other,
    ):
        try:
            yield Ground(house, there(IDENTITY, one), there(REGION, other), There(IDENTITY, one), serving)
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


def there(table: Table, client: Client) -> WatchThere:
    """Return what follows a service over a socket."""
    return WatchThere(table, client, clock=SystemClock(), randomness=SystemRandomness())


def _reader(house: RegionEnvironment, service: str) -> ServiceNow:
    async def reader() -> Principal:
        standing = await house.identity.app.services.permissions.of_system(service)
        return Principal(subject=service, type="system", access=standing.access)

    return reader


def link_of(ground: Ground, service: str) -> IdentityLink:
    """Return a service's way to identity."""
    return IdentityLink(
        send=ground.send,
        service=_reader(ground.house, service),
        randomness=SystemRandomness(),
        watch=lambda: watch_projects(ground.identity),
    )


def free_port() -> int:
    """Return a port that nobody has."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
