"""Three services as if each were in a process of its own: nothing is shared but the network between them.

Each has its own store, with its own kinds and no others. Region and compute ask identity who stands behind a request,
and whatever else a service wants of another it asks over HTTP, by the same client and server as in production: on real
sockets in real time (`apart`), or on simulated ones in simulated time (`apart_in`).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from remuda.access.principal import Context, Principal
from remuda.clients.delegation import Delegation
from remuda.clients.transport import remote
from remuda.compute.kinds import KINDS as COMPUTE_KINDS
from remuda.compute.ports import RegionClient
from remuda.http.asgi import ASGIApp, ClientDisconnect, Receive, Scope, Send
from remuda.http.client import Client
from remuda.http.server.server import ListenAddress, Listener, Server
from remuda.http.transport import ClientCredentials, ClientSettings, ServiceCredentials
from remuda.identity.app import TABLE as IDENTITY
from remuda.identity.federation.provider_client import Fetcher
from remuda.identity.kinds import KINDS as IDENTITY_KINDS
from remuda.identity.port import IdentityApi
from remuda.identity.rbac.remote_authenticator import RemoteAuthenticator
from remuda.identity.rbac.revocation_feed import RevocationFeed
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.errors import RemudaError
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.quota.client import QuotaClient
from remuda.region.app import TABLE as REGION
from remuda.region.kinds import KINDS as REGION_KINDS
from remuda.region.port import RegionApi
from remuda.store.kinds import Registry
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.clients.both_transports import QUICK, free_port
from tests.kit.compute.house import SERVICE, ComputeHouse, Given, at_once, running, with_compute
from tests.kit.compute.stores import Stores
from tests.kit.identity.household import ISSUER
from tests.kit.identity.proving import certified
from tests.kit.region.house import housed
from tests.kit.simulation.network import SimNetwork
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import SEALER, sim_ports
from tests.resources.room import with_machinery

_OF_REGION = "unikorn-region"
_GRACE_S = 0.1
_KINDS = {"identity": IDENTITY_KINDS, "region": REGION_KINDS, "compute": COMPUTE_KINDS}

Place = ListenAddress | Listener
"""Where something answers."""


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What the services run on."""

    clock: Clock
    randomness: Randomness
    opened: Callable[[str, Registry], SqliteStore]
    """Opens a store by its name."""
    urls: tuple[str, str]
    """Where identity and region are reached."""
    issuer: str = ISSUER
    directory: Path | None = None
    settings: ClientSettings = field(default_factory=ClientSettings)
    aside: Mapping[str, Any] = field(default_factory=dict)


@asynccontextmanager
async def apart(directory: Path) -> AsyncIterator[ComputeHouse]:
    """Run everything in real time for the time of a block."""

    def opened(name: str, kinds: Registry) -> SqliteStore:
        return open_store(directory / f"{name}.db", kinds, SEALER)

    places = ListenAddress("127.0.0.1", free_port()), ListenAddress("127.0.0.1", free_port())
    ground = Ground(
        clock=SystemClock(),
        randomness=SystemRandomness(),
        opened=opened,
        urls=(f"http://{places[0]}", f"http://{places[1]}"),
        directory=directory,
        settings=QUICK,
    )
    async with _apart(ground, places, Given(is_instant=True)) as house:
        yield house


EITHER_WAY = pytest.mark.parametrize(
    "begun",
    [pytest.param(running, id="together"), pytest.param(apart, id="apart", marks=pytest.mark.thorough)],
)
"""Runs a test in real time in both ways: it says `async with begun(tmp_path) as house`."""
Begun = Callable[[Path], AbstractAsyncContextManager[ComputeHouse]]


def databases(directory: Path) -> list[Path]:
    """Return all files of the services' stores there."""
    return sorted(path for name in ("remuda", *_KINDS) for path in directory.glob(f"{name}.db*"))


@asynccontextmanager
async def apart_in(world: World, given: Given) -> AsyncIterator[ComputeHouse]:
    """Run everything in simulated time for the time of a block."""

    def opened(name: str, kinds: Registry) -> SqliteStore:
        return open_store(world.disk.directory / f"{name}.db", kinds, SEALER, ports=sim_ports(world))

    with SimNetwork(world.loop) as network:
        ground = Ground(
            clock=world.clock,
            randomness=world.randomness,
            opened=opened,
            urls=(network.url(1), network.url(2)),
            aside={"aside": at_once},
        )
        async with _apart(ground, (network.listener(1), network.listener(2)), given) as house:
            yield house


@asynccontextmanager
async def _apart(ground: Ground, places: tuple[Place, Place], given: Given) -> AsyncIterator[ComputeHouse]:
    async with AsyncExitStack() as stack:
        identity, region, compute = (ground.opened(name, with_machinery(kinds)) for name, kinds in _KINDS.items())
        stack.push_async_callback(compute.close)
        stack.push_async_callback(region.close)
        reaching = Reaching(ground, stack)
        of_region = await reaching.identity_of(_OF_REGION, region)
        house = await stack.enter_async_context(
            housed(
                identity,
                ground.clock,
                ground.randomness,
                directory=ground.directory,
                is_instant=given.is_instant,
                aside=dict(ground.aside),
                more=of_region | dict(given.regional),
            )
        )
        house.store = cast("SqliteStore", Stores(compute, region, identity))
        await reaching.serve(house.identity.asgi, places[0], house.identity.app.ports.closing)
        await reaching.serve(house.asgi, places[1], house.app.ports.closing)
        of_compute = await reaching.identity_of(SERVICE, compute)
        of_compute["region"] = await reaching.region_of(SERVICE)
        await reaching.until_believed()
        yield await stack.enter_async_context(with_compute(house, of_compute | dict(given.ports)))


class Reaching:
    """How services reach each other."""

    def __init__(self, ground: Ground, stack: AsyncExitStack) -> None:
        self._ground, self._stack = ground, stack
        self._feeds: list[RevocationFeed] = []

    async def serve(self, app: ASGIApp, place: Place, closing: asyncio.Event) -> None:
        """Answer there until the end, of which streams hear."""
        ground = self._ground

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            with suppress(ClientDisconnect):  # as the outermost layer does in production
                await app(scope, receive, send)

        server = Server(
            answer,
            clock=ground.clock,
            randomness=ground.randomness,
            count_closed=lambda _: None,
            closing=closing,
            grace_s=_GRACE_S,
        )
        await server.start(place)
        self._stack.push_async_callback(server.stop)

    async def identity_of(self, service: str, store: SqliteStore) -> dict[str, Any]:
        """Return the ports of a service that has this store and identity elsewhere."""
        ground, url = self._ground, self._ground.urls[0]
        client = await self._client(url, Certified(service, ground.clock))
        feed = RevocationFeed(client, ground.clock)
        self._feeds.append(feed)
        following = asyncio.create_task(feed.run())
        self._stack.push_async_callback(asyncio.wait, [following])
        self._stack.callback(following.cancel)
        fetch = Plain(allow_loopback=True)
        self._stack.push_async_callback(fetch.close)
        return {
            "store": store,
            "log": store,
            "authenticator": RemoteAuthenticator(
                issuer=ground.issuer, server=url, fetch=fetch, feed=feed, clock=ground.clock
            ),
            "identity": QuotaClient(
                identity=remote(IdentityApi, IDENTITY, client, clock=ground.clock, randomness=ground.randomness),
                delegation=self._delegation(service),
            ),
        }

    async def region_of(self, service: str) -> RegionClient:
        """Return a service's client of region elsewhere."""
        ground = self._ground
        client = await self._client(ground.urls[1], Certified(service, ground.clock))
        api = remote(RegionApi, REGION, client, clock=ground.clock, randomness=ground.randomness)
        return RegionClient(api, self._delegation(service))

    def _delegation(self, service: str) -> Delegation:
        """Return a service's contexts. It names itself; its permissions the other service looks up."""

        async def principal() -> Principal:
            return Principal(subject=service, type="system")

        return Delegation(service=principal, randomness=self._ground.randomness)

    async def until_believed(self) -> None:
        """Wait until all have heard of identity."""
        while not all(map(_is_believed, self._feeds)):
            await self._ground.clock.sleep(0.01)

    async def _client(self, url: str, credentials: ClientCredentials) -> Client:
        ground = self._ground
        made = Client(
            url,
            credentials=credentials,
            clock=ground.clock,
            randomness=ground.randomness,
            settings=ground.settings,
        )
        return await self._stack.enter_async_context(made)


class Certified:
    """The credentials of a service that a proxy vouches for."""

    def __init__(self, service: str, clock: Clock) -> None:
        self._service, self._clock = service, clock
        self._claiming = ServiceCredentials(service)

    def headers(self, context: Context | None) -> Mapping[str, str]:
        shown = certified(self._service, {}, now=self._clock.now())
        return {**shown, **{name.lower(): value for name, value in self._claiming.headers(context).items()}}


class Plain(Fetcher):
    """Fetches without TLS, and so without a thread in which to read whom to trust."""

    async def _client(self) -> httpx2.AsyncClient:
        self._http = self._http or httpx2.AsyncClient(verify=False, trust_env=False)
        return self._http


def _is_believed(feed: RevocationFeed) -> bool:
    try:
        feed.check()
    except RemudaError:
        return False
    return True
